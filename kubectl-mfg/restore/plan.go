// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// planned is the new group, and what plan found out.
type planned struct {
	group *v1alpha1.MysqlFailoverGroup
	// storage is where the backup is, and identity the Secret that opens it; empty if it is in the clear.
	storage  v1alpha1.BackupStorage
	identity string
	checks   []screen.Line
}

func (p *planned) say(label, format string, args ...any) {
	p.checks = append(p.checks, screen.Line{Label: label, Text: fmt.Sprintf(format, args...)})
}

// plan makes the new group. It decides on plain values; check does what needs a look into the cluster.
func (op *Op) plan(t template, known []v1alpha1.MysqlBackup, now time.Time) (*planned, error) {
	p := &planned{group: &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Name: op.Group, Namespace: op.Namespace}, Spec: t.spec}}
	chosen, err := op.choose(p, report.NewBackupList(known))
	if err != nil {
		return nil, err
	}
	init := &v1alpha1.InitFromBackupSpec{From: &v1alpha1.RestoreFrom{Namespace: op.FromNamespace, Group: op.From}, Backup: op.Backup}
	if chosen != nil {
		init.Backup = chosen.Metadata.Name
	}
	p.group.Spec.InitFromBackup = init
	var profile *v1alpha1.BackupProfile
	if t.storage != nil {
		init.Storage, p.storage = t.storage, *t.storage
	} else {
		if profile, err = op.profile(t.spec, chosen); err != nil {
			return nil, err
		}
		init.Profile, p.storage = profile.Name, profile.Storage
	}
	p.say("Storage", "%s", report.StorageWords(p.storage))
	if err := op.identity(p, profile, chosen); err != nil {
		return nil, err
	}
	if op.Namespace == op.FromNamespace && op.Group == op.From {
		op.moveOut(p, now)
	}
	op.adjust(p, t)
	return p, nil
}

// moveOut makes the backups of the new group go elsewhere: a place in a storage belongs to one group for good, known by its UID, so that
// two of one name never remove each other's backups. The lost group's are read where they are.
func (op *Op) moveOut(p *planned, now time.Time) {
	init := p.group.Spec.InitFromBackup
	if init.Profile != "" {
		init.Profile, init.Storage = "", p.storage.DeepCopy()
		if p.identity != "" {
			init.Encryption = &v1alpha1.RestoreEncryption{IdentitySecretName: p.identity}
		}
	}
	if p.group.Spec.Backup == nil {
		return
	}
	p.group.Spec.Backup = p.group.Spec.Backup.DeepCopy()
	since := "since-" + now.UTC().Format("20060102-150405")
	for i := range p.group.Spec.Backup.Profiles {
		s := &p.group.Spec.Backup.Profiles[i].Storage
		switch {
		case s.S3 != nil:
			s.S3.Prefix = path.Join(s.S3.Prefix, since)
		case s.GCS != nil:
			s.GCS.Prefix = path.Join(s.GCS.Prefix, since)
		case s.Azure != nil:
			s.Azure.Prefix = path.Join(s.Azure.Prefix, since)
		case s.Volume != nil:
			s.Volume.SubPath = path.Join(s.Volume.SubPath, since)
		}
		p.say("Changed", "backups by profile %s go to %s: the place of the lost group belongs to that one for good", p.group.Spec.Backup.Profiles[i].Name, report.StorageWords(*s))
	}
}

// choose finds the backup among those that the cluster knows; nil if it knows no such backup.
func (op *Op) choose(p *planned, known report.BackupList) (*report.Backup, error) {
	if op.Backup != "" {
		i := slices.IndexFunc(known.Items, func(b report.Backup) bool { return b.Metadata.Name == op.Backup })
		if i < 0 {
			p.say("Backup", "%s, of which this cluster does not know; the operator looks for it in the storage", op.Backup)
			return nil, nil //nolint:nilnil // the storage may have it
		}
		b := &known.Items[i]
		if !b.Completed() || b.Metadata.DeletionTimestamp != nil {
			return nil, cli.Refused("refused: backup %s is %s, and there is nothing to restore from it\n  see those that are complete: kubectl mfg backup list %s -n %s", op.Backup, b.Phase, op.From, op.FromNamespace)
		}
		if b.NotRestorable() {
			p.say("Warning", "the last verification of this backup failed: %s", b.Verified.Message)
		}
		p.say("Backup", "%s", backupWords(b))
		return b, nil
	}
	for i := range known.Items {
		b := &known.Items[i]
		usable := b.Completed() && b.Metadata.DeletionTimestamp == nil && (op.Profile == "" || b.Profile == op.Profile)
		switch {
		case !usable:
		case b.NotRestorable():
			p.say("Passed", "over %s: its verification failed", b.Metadata.Name)
		default:
			p.say("Backup", "%s, the newest that can be restored as far as this cluster knows", backupWords(b))
			return b, nil
		}
	}
	if len(known.Items) > 0 {
		return nil, cli.Refused("refused: none of the %d backups of %s that this cluster knows can be restored\n  see why: kubectl mfg backup list %s -n %s; to take one of the storage all the same: --backup NAME", len(known.Items), op.From, op.From, op.FromNamespace)
	}
	p.say("Backup", "the newest in the storage")
	return nil, nil //nolint:nilnil // the storage may have one
}

func backupWords(b *report.Backup) string {
	words := fmt.Sprintf("%s (%s, %s", b.Metadata.Name, cmp.Or(b.Method, "method not known"), cmp.Or(b.Size, "size not known"))
	if b.FinishedAt != nil {
		words += ", of " + b.FinishedAt.UTC().Format("2006-01-02 15:04:05Z")
	}
	if !b.Proven() {
		words += ", never verified"
	}
	return words + ")"
}

// profile returns the profile whose storage holds the backup.
func (op *Op) profile(spec v1alpha1.MysqlFailoverGroupSpec, chosen *report.Backup) (*v1alpha1.BackupProfile, error) {
	var all []v1alpha1.BackupProfile
	if spec.Backup != nil {
		all = spec.Backup.Profiles
	}
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.Name)
	}
	want := op.Profile
	if want == "" && chosen != nil {
		want = chosen.Profile
	}
	switch at := slices.Index(names, want); {
	case at >= 0:
		return &all[at], nil
	case op.Profile != "":
		return nil, cli.Usage("there is no profile %q; the profiles are %s", op.Profile, cmp.Or(strings.Join(names, ", "), "none"))
	case len(all) == 1 && chosen == nil:
		return &all[0], nil
	case len(all) == 0 || chosen != nil:
		return nil, cli.Refused("refused: no profile says where the backup is\n  say it: --storage-file FILE, with what stands in storage of a profile")
	}
	return nil, cli.Usage("several profiles may hold the backup: choose one with --profile: %s", strings.Join(names, ", "))
}

// identity sets the Secret that opens the backup. Without one no part of an encrypted backup can be read, and the restore would stop.
func (op *Op) identity(p *planned, profile *v1alpha1.BackupProfile, chosen *report.Backup) error {
	encrypted := chosen != nil && chosen.Encrypted || chosen == nil && profile != nil && profile.Encryption != nil
	switch {
	case op.IdentitySecret != "":
		p.identity = op.IdentitySecret
		p.group.Spec.InitFromBackup.Encryption = &v1alpha1.RestoreEncryption{IdentitySecretName: op.IdentitySecret}
	case encrypted && profile != nil && profile.Encryption != nil:
		p.identity = profile.Encryption.IdentitySecretName
	}
	switch {
	case encrypted && p.identity == "":
		return cli.Refused("refused: the backup is encrypted, and nothing says which Secret has the age identity that opens it\n  make the Secret in namespace %s (kubectl mfg backup keygen --help says how), and name it: --identity-secret NAME", op.Namespace)
	case p.identity != "":
		p.say("Identity", "key %s of Secret %s", v1alpha1.BackupIdentityKey, p.identity)
	case chosen == nil:
		p.say("Identity", "none: the backup is taken for one in the clear; else name the Secret with its age identity: --identity-secret NAME")
	}
	return nil
}

// sharesSecret is true if the living group has its certificate in the same Secret.
func (t template) sharesSecret(tls *v1alpha1.TLSSpec) bool {
	return t.living != nil && t.living.TLS != nil && t.living.TLS.SecretName == tls.SecretName
}

// adjust removes from the specification what only one group can have.
func (op *Op) adjust(p *planned, t template) {
	spec := &p.group.Spec
	if tls := spec.TLS; tls != nil && tls.IssuerRef != nil && t.sharesSecret(tls) && op.Namespace == op.FromNamespace {
		name := op.Group + "-tls"
		if name == tls.SecretName {
			name = op.Group + "-restored-tls"
		}
		p.say("Changed", "spec.tls.secretName is %s: the certificate in %s names the Services of %s", name, tls.SecretName, op.From)
		copied := *tls
		copied.SecretName = name
		spec.TLS = &copied
	}
	if spec.DNS != nil && t.living != nil && t.living.DNS != nil && t.living.DNS.Name == spec.DNS.Name {
		spec.DNS = nil
		p.say("Left out", "spec.dns: two groups would publish one name; add it once %s is gone", op.From)
	}
	p.say("First", "one site is loaded, and nothing opens before it has everything; then the other sites are cloned from it")
	p.say("Accounts", "those of the backup; the operator's own get the passwords of the new group")
}
