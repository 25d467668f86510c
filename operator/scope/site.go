// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Encrypted is true for a group with data-at-rest encryption.
func Encrypted(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.EncryptionAtRest != nil && group.Spec.EncryptionAtRest.Enabled
}

// KeyringStatus returns the persisted status of a site's keyring.
func KeyringStatus(group *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.SiteKeyringStatus {
	if e := group.Status.EncryptionAtRest; e != nil {
		for _, st := range e.Sites {
			if st.Name == site {
				return st
			}
		}
	}
	return v1alpha1.SiteKeyringStatus{Name: site}
}

// IsNew is true for a site that has no pod and never had data: nobody relies on it yet.
func IsNew(s *Scope, site string) bool {
	return s.Deployments[site] == nil && s.Pods[site] == nil && !s.Provisioned[site] && s.Volumes[site] == ""
}

// Steady is true if the facts and status name the same active site, and it is not changing.
func Steady(s *Scope) bool {
	return s.Facts.ActiveSite == s.ActiveSite() && s.Group.Status.Transition == nil
}

// Replaced is true if a site is seen on another volume than the one it was provisioned on. An unknown volume may be the
// same.
func Replaced(s *Scope, site string) bool {
	noted, seen := s.Volumes[site], s.Facts.Sites[site].VolumeID
	return noted != "" && seen != "" && noted != seen
}

// HealthyCopy is true for a replica that holds the group's data and keeps receiving it.
func HealthyCopy(s *Scope, site string) bool {
	f := s.Facts.Sites[site]
	return s.Provisioned[site] && !Replaced(s, site) && f.MysqlUp && f.Following && !f.Diverged && !f.Filtered && !f.Cloning && s.Busy[site] == ""
}

// LastingCopy is true for a healthy copy that is still there when its pod ends: only such a copy lets another one be given up.
func LastingCopy(s *Scope, site string) bool { return HealthyCopy(s, site) && !s.Terminating[site] }

// ReplacedBy returns the record of the failover that took a site's role away; nil if there was none, or if the site was active again later.
func ReplacedBy(group *v1alpha1.MysqlFailoverGroup, site string) *v1alpha1.FailoverRecord {
	for i, record := range group.Status.Failovers {
		if record.To == site {
			return nil
		}
		if record.From == site {
			return &group.Status.Failovers[i]
		}
	}
	return nil
}

// Keeps is true for a group whose data outlives it.
func Keeps(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Spec.DeletionPolicy != v1alpha1.DeletionDelete
}
