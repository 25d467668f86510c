// SPDX-License-Identifier: Apache-2.0

// Package recipients finds age recipients that encrypt nothing, before a pod is given them.
package recipients

import (
	"encoding/json"
	"fmt"
	"strings"

	"filippo.io/age"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
)

// Refusal says which recipients of a group cannot be used, and what to do; empty if all can. The schema cannot check the sum of their letters.
func Refusal(spec *v1alpha1.MysqlFailoverGroupSpec) string {
	if spec.Backup == nil {
		return ""
	}
	var bad []string
	for _, p := range spec.Backup.Profiles {
		for i := range malformed(p) {
			bad = append(bad, fmt.Sprintf("%s (recipients[%d])", p.Name, i))
		}
	}
	if len(bad) == 0 {
		return ""
	}
	return fmt.Sprintf("an age recipient in spec.backup.profiles is malformed: %s; its backups fail. The archive keeps the recipients that it has, and without any it ends or does not begin: "+
		"give the public key as age-keygen prints it, not one of a plugin", strings.Join(bad, ", "))
}

// malformed yields the indexes of recipients that are none.
func malformed(p v1alpha1.BackupProfile) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if p.Encryption == nil {
			return
		}
		for i, text := range p.Encryption.Recipients {
			if all, err := age.ParseRecipients(strings.NewReader(text)); (err != nil || len(all) != 1) && !yield(i) {
				return
			}
		}
	}
}

// Usable returns the group as the pods of a site are made of it. If the profile of the archive has a malformed recipient, the archiver keeps
// those that it has in the Deployment of the site. Without any it is left out: nothing is archived in the clear that was to be encrypted.
func Usable(group *v1alpha1.MysqlFailoverGroup, live *appsv1.Deployment) *v1alpha1.MysqlFailoverGroup {
	profile, archives := render.ArchiveProfile(&group.Spec)
	if !archives {
		return group
	}
	bad := false
	for range malformed(profile) {
		bad = true
	}
	if !bad {
		return group
	}
	out, kept := group.DeepCopy(), inPlace(live)
	out.Spec.Backup.PITR.Enabled = len(kept) > 0
	for i := range out.Spec.Backup.Profiles {
		if p := &out.Spec.Backup.Profiles[i]; p.Name == profile.Name {
			p.Encryption.Recipients = kept
		}
	}
	return out
}

// inPlace are the recipients of the archiver in a Deployment, if all of them can be used.
func inPlace(live *appsv1.Deployment) []string {
	if live == nil {
		return nil
	}
	for _, c := range live.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			var config wire.ArchiverConfig
			if c.Name != render.ContainerArchiver || e.Name != wire.EnvArchiverConfig || json.Unmarshal([]byte(e.Value), &config) != nil {
				continue
			}
			p := v1alpha1.BackupProfile{Encryption: &v1alpha1.BackupEncryption{Recipients: config.Recipients}}
			for range malformed(p) {
				return nil // an earlier version of the operator gave it them
			}
			return config.Recipients
		}
	}
	return nil
}
