// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// surroundings are what a person should know who deletes a backup. Retention spares what is used; a person may not know that it is.
type surroundings struct {
	// restored is the group that is being restored from it; empty if there is none.
	restored string
	// stays says why the operator cannot remove what is stored.
	stays    string
	warnings []string
}

func (op *Delete) lookAround(ctx context.Context, c Remover, b *v1alpha1.MysqlBackup, all []v1alpha1.MysqlBackup) (out surroundings, err error) {
	groups, err := c.Groups(ctx, "")
	if err != nil { // not everybody may look into all namespaces
		if groups, err = c.Groups(ctx, op.Namespace); err == nil {
			out.warnings = append(out.warnings, "groups of other namespaces could not be listed, so whether one of them is being restored from it is not known; "+
				"someone who may: kubectl get mfg -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,RESTORES:.status.restore.backup")
		}
	}
	if apierrors.IsForbidden(err) {
		out.warnings = []string{"you may not list groups, so whether one is being restored from it is not known"}
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var own *v1alpha1.MysqlFailoverGroup
	for i := range groups {
		g := &groups[i]
		if g.Namespace == b.Namespace && g.Name == b.Spec.Group {
			own = g
		}
		switch name, is := restores(g, b); {
		case is && name == b.Name:
			out.restored = g.Namespace + "/" + g.Name
		case is && name == "":
			out.warnings = append(out.warnings, "group "+g.Namespace+"/"+g.Name+" is to be restored from the newest backup, and has not chosen one yet")
		}
	}
	out.stays = whyItStays(own, b)
	if own != nil && isBase(own, b, all) {
		out.warnings = append(out.warnings, "the archive of binary logs builds on it: without it no moment can be recovered between this backup and the next one "+
			"that the archive reaches")
	}
	return out, nil
}

// restores is true for a group that is to begin with a backup of the same group, and the name of that backup if it is known.
func restores(g *v1alpha1.MysqlFailoverGroup, b *v1alpha1.MysqlBackup) (name string, is bool) {
	if g.Spec.InitFromBackup == nil || !g.IsNew() {
		return "", false
	}
	if namespace, group := g.RestoreSource(); namespace != b.Namespace || group != b.Spec.Group {
		return "", false
	}
	if st := g.Status.Restore; st != nil && st.Backup != "" {
		return st.Backup, true
	}
	return g.Spec.InitFromBackup.Backup, true
}

// whyItStays says why the operator will find nothing to remove, or must not.
func whyItStays(g *v1alpha1.MysqlFailoverGroup, b *v1alpha1.MysqlBackup) string {
	if b.Status.Location == "" {
		return "" // nothing was stored
	}
	if g == nil {
		return "group " + b.Spec.Group + ", which knows the storage, is gone"
	}
	if g.Spec.Backup != nil {
		for _, p := range g.Spec.Backup.Profiles {
			if p.Name != b.Spec.Profile {
				continue
			}
			if now := p.Storage.Digest(g.Namespace, g.Name); b.Status.StorageDigest != "" && now != "" && now != b.Status.StorageDigest {
				return "profile " + p.Name + " has another storage now"
			}
			return ""
		}
	}
	return "profile " + b.Spec.Profile + ", which knows the storage, is gone"
}

// isBase is true for the newest complete backup that the archive of binary logs has reached: what came after it is recovered from there.
func isBase(g *v1alpha1.MysqlFailoverGroup, b *v1alpha1.MysqlBackup, all []v1alpha1.MysqlBackup) bool {
	spec, status := g.Spec.Backup, g.Status.Backup
	if spec == nil || spec.PITR == nil || !spec.PITR.Enabled || status == nil || status.PITR == nil || status.PITR.Latest == nil {
		return false
	}
	reached := func(other v1alpha1.MysqlBackup) bool {
		return other.Status.Phase == v1alpha1.BackupCompleted && other.Spec.Profile == spec.PITR.Profile && !finished(&other).After(status.PITR.Latest.Time)
	}
	return reached(*b) && !slices.ContainsFunc(all, func(other v1alpha1.MysqlBackup) bool {
		return reached(other) && finished(&other).After(finished(b))
	})
}

func finished(b *v1alpha1.MysqlBackup) time.Time {
	if b.Status.FinishedAt == nil {
		return time.Time{}
	}
	return b.Status.FinishedAt.Time
}
