// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// backupStore looks at the backups, at a restore, and at what both need. No finding keeps MySQL from failing over.
func backupStore(ctx context.Context, w World) []Finding {
	out := restoring(w)
	b := report.BackupsOf(w.Group)
	if b == nil {
		return out
	}
	out = slices.Concat(out, backupConditions(w, b), backupProfiles(ctx, w), backupSecrets(w), backupSchedules(w), backupProof(w, b), archive(w))
	if len(out) > 0 {
		return out
	}
	last, proven := b.Last()
	if p := report.PITROf(w.Group); p != nil {
		return one(OK, wire.Remedy{}, "the newest is %s old, the last verification passed %s ago, and any moment until %s ago can be brought back", w.ago(*last), w.ago(*proven), w.ago(*p.Latest))
	}
	return one(OK, wire.Remedy{}, "the newest is %s old, and the last verification passed %s ago", w.ago(*last), w.ago(*proven))
}

// ago returns the age of a time.
func (w World) ago(t time.Time) string {
	return duration.HumanDuration(max(0, w.clock().Sub(t)))
}

// restoring finds a restore that cannot continue.
func restoring(w World) []Finding {
	r := report.RestoreOf(w.Group)
	switch {
	case r == nil || r.Over():
		return nil
	case r.Phase == string(v1alpha1.RestoreFailed), r.Ready != nil && !*r.Ready && r.Phase == "":
		return one(Fail, wire.Remedy{Text: "nothing opens before it has everything; see what was said", Command: fmt.Sprintf("kubectl mfg events %s -n %s --warnings", w.Group.Name, w.Group.Namespace)},
			"the restore from %s does not go on: %s [%s]", r.From, r.Message, r.Reason)
	}
	return one(Warn, wire.Remedy{Command: fmt.Sprintf("kubectl mfg status %s -n %s -w", w.Group.Name, w.Group.Namespace)}, "the group is being restored from %s, and does not serve yet", r.From)
}

// backupConditions tells what the operator itself says.
func backupConditions(w World, b *report.Backups) []Finding {
	var out []Finding
	remedy := wire.Remedy{Command: fmt.Sprintf("kubectl mfg backup list %s -n %s", w.Group.Name, w.Group.Namespace)}
	if b.Ready != nil && !*b.Ready {
		out = append(out, one(Fail, remedy, "not ready: %s [%s]", b.Message, b.Reason)...)
	}
	if b.Verified != nil && !*b.Verified {
		out = append(out, one(Fail, remedy, "not verified: %s [%s]", b.VerifiedMessage, b.VerifiedReason)...)
	}
	for _, p := range b.Profiles {
		if p.Reason != "" && p.Message != b.Message { // a missing right to delete, for one
			out = append(out, one(Warn, remedy, "profile %s: %s [%s]", p.Name, p.Message, p.Reason)...)
		}
	}
	return out
}

// backupProfiles finds backups that reveal too much, or that would be lost with the data that they should replace.
func backupProfiles(ctx context.Context, w World) []Finding {
	var out []Finding
	encrypted := w.Group.Spec.EncryptionAtRest != nil && w.Group.Spec.EncryptionAtRest.Enabled
	for _, p := range profilesOf(w.Group) {
		if encrypted && p.Encryption == nil {
			out = append(out, one(Warn, wire.Remedy{Text: "set encryption.recipients of the profile", Command: "kubectl mfg backup keygen"},
				"the group is encrypted at rest, and its backups by profile %s are not: anyone who can read %s can read the data", p.Name, report.StorageWords(p.Storage))...)
		}
		v := p.Storage.Volume
		if v == nil {
			continue
		}
		out = append(out, one(Warn, wire.Remedy{Text: "add a profile whose storage is outside of this cluster"},
			"backups by profile %s are on a volume of this cluster, and are lost with it", p.Name)...)
		_, err := w.Kube.CoreV1().PersistentVolumeClaims(w.Group.Namespace).Get(ctx, v.ClaimName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, one(Fail, wire.Remedy{Text: "make it, with a class whose volumes several nodes can mount"}, "profile %s: no PersistentVolumeClaim %s", p.Name, v.ClaimName)...)
		case err != nil:
			out = append(out, cannotSee(err, "get", "persistentvolumeclaims", w.Group.Namespace)...)
		}
	}
	return out
}

func profilesOf(g *v1alpha1.MysqlFailoverGroup) []v1alpha1.BackupProfile {
	if g.Spec.Backup == nil {
		return nil
	}
	return g.Spec.Backup.Profiles
}

// backupSecretNames returns the Secrets that backups need, each with its purpose.
func backupSecretNames(g *v1alpha1.MysqlFailoverGroup) map[string]string {
	all := map[string]string{}
	need := func(name, what string) {
		if name != "" {
			all[name] = what
		}
	}
	storage := func(s v1alpha1.BackupStorage, who string) {
		switch {
		case s.S3 != nil:
			need(s.S3.SecretName, who+": credentials of the storage")
			need(s.S3.CASecretName, who+": certificates that the storage is checked against")
		case s.GCS != nil:
			need(s.GCS.SecretName, who+": credentials of the storage")
		case s.Azure != nil:
			need(s.Azure.SecretName, who+": credentials of the storage")
		}
	}
	if g.Spec.Backup != nil && g.Spec.Backup.PITR != nil && g.Spec.Backup.PITR.Enabled {
		need(g.Spec.Backup.PITR.SecretName, "backup.pitr: credentials of the storage for the pods of MySQL")
	}
	for _, p := range profilesOf(g) {
		storage(p.Storage, "profile "+p.Name)
		if p.Encryption != nil {
			need(p.Encryption.IdentitySecretName, "profile "+p.Name+": the age identity for verifications and restores")
		}
	}
	return all
}

// backupSecrets: the metadata tells whether a Secret exists; its contents are not read.
func backupSecrets(w World) []Finding {
	var out []Finding
	names := backupSecretNames(w.Group)
	for _, name := range sortedKeys(names) {
		err, looked := w.BackupSecrets[name]
		switch {
		case !looked || err == nil:
		case apierrors.IsNotFound(err):
			out = append(out, one(Fail, wire.Remedy{Text: "make it; docs/backups.md has the keys that it must hold"}, "no Secret %s (%s)", name, names[name])...)
		default:
			out = append(out, cannotSee(err, "get", "secrets/"+name, w.Group.Namespace)...)
		}
	}
	return out
}

func sortedKeys(all map[string]string) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// backupSchedules: a backup that a person must remember is missing on the day when it counts.
func backupSchedules(w World) []Finding {
	var suspended []string
	scheduled := false
	for _, p := range profilesOf(w.Group) {
		switch {
		case p.Schedule == nil:
		case p.Schedule.Suspend:
			suspended = append(suspended, p.Name)
		default:
			scheduled = true
		}
	}
	switch {
	case len(suspended) > 0:
		return one(Warn, wire.Remedy{Text: "set schedule.suspend to false there"}, "the schedule of %s is suspended", strings.Join(suspended, " and "))
	case !scheduled && len(profilesOf(w.Group)) > 0:
		return one(Warn, wire.Remedy{Text: "add schedule.cron to a profile"}, "no profile has a schedule: backups are made only on demand")
	}
	return nil
}

// backupProof: a backup that was never restored is only a hope.
func backupProof(w World, b *report.Backups) []Finding {
	last, proven := b.Last()
	create := wire.Remedy{Command: fmt.Sprintf("kubectl mfg backup create %s -n %s", w.Group.Name, w.Group.Namespace)}
	switch {
	case last == nil && (b.Ready == nil || *b.Ready): // else a condition said so
		return one(Warn, create, "there is no backup yet")
	case last != nil && proven == nil && (b.Verified == nil || *b.Verified):
		return one(Warn, wire.Remedy{Text: "and set verification in a profile", Command: fmt.Sprintf("kubectl mfg backup verify %s -n %s", w.Group.Name, w.Group.Namespace)},
			"no backup was ever restored: it is unknown whether one can be")
	}
	return nil
}

// lookForBackupSecrets asks only for the metadata of Secrets.
func lookForBackupSecrets(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) map[string]error {
	found := map[string]error{}
	for name := range backupSecretNames(g) {
		found[name] = c.Kube().CoreV1().RESTClient().Get().Namespace(g.Namespace).Resource("secrets").Name(name).
			SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Do(ctx).Error()
	}
	return found
}
