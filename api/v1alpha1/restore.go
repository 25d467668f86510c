// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// IsNew is true for a group in which nothing was ever open.
func (g *MysqlFailoverGroup) IsNew() bool { return g.Status.Epoch == 0 }

// AwaitsRestore is true for a new group that is to begin with a backup, until its first site has all of it. Nothing may open meanwhile.
func (g *MysqlFailoverGroup) AwaitsRestore() bool {
	return g.IsNew() && g.Spec.InitFromBackup != nil && !g.isRestored()
}

// RestoredSite is the site of a new group that has the data of the backup, and is the only one that may be opened first; empty if the
// group was not restored, or has been open.
func (g *MysqlFailoverGroup) RestoredSite() string {
	if !g.IsNew() || g.Spec.InitFromBackup == nil || !g.isRestored() {
		return ""
	}
	return g.Status.Restore.Site
}

// isRestored is false, too, for another backup, place or point in time than the one that is asked for. Two places of one name are told apart by the
// Deployment's note of the order (operator/restoring).
func (g *MysqlFailoverGroup) isRestored() bool {
	st, from := g.Status.Restore, g.Spec.InitFromBackup
	return st != nil && st.Phase == RestoreCompleted && st.Target == from.PointInTime.String() &&
		(from.Backup == "" || from.Backup == st.Backup) && st.Location == g.RestoreLocation()
}

// RestoreLocation names for people the place where the backup is, as status.restore does; empty if the specification names none.
func (g *MysqlFailoverGroup) RestoreLocation() string {
	storage, _, ok := g.Spec.RestoreStorage()
	if !ok {
		return ""
	}
	return storage.Location(g.RestoreSource())
}

// RestoreStorage is where the backup is that the group begins with, and the Secret with the age identity that opens it; empty without one.
// It is false if the profile that is named is not there.
func (s *MysqlFailoverGroupSpec) RestoreStorage() (storage BackupStorage, identity string, ok bool) {
	from := s.InitFromBackup
	if from == nil {
		return BackupStorage{}, "", false
	}
	if from.Encryption != nil {
		identity = from.Encryption.IdentitySecretName
	}
	if from.Storage != nil {
		return *from.Storage, identity, true
	}
	if s.Backup == nil {
		return BackupStorage{}, "", false
	}
	for _, p := range s.Backup.Profiles {
		if p.Name != from.Profile {
			continue
		}
		if identity == "" && p.Encryption != nil {
			identity = p.Encryption.IdentitySecretName
		}
		return p.Storage, identity, true
	}
	return BackupStorage{}, "", false
}

// RestoreSource is the namespace and the name of the group whose backup it is.
func (g *MysqlFailoverGroup) RestoreSource() (namespace, group string) {
	namespace, group = g.Namespace, g.Name
	if from := g.Spec.InitFromBackup; from != nil && from.From != nil {
		if from.From.Namespace != "" {
			namespace = from.From.Namespace
		}
		if from.From.Group != "" {
			group = from.From.Group
		}
	}
	return namespace, group
}
