// SPDX-License-Identifier: Apache-2.0

package keyrings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Kind of the report.
const Kind = "MfgKeyringReport"

// Report tells what is in escrow for a group, and what each site is sealed with. It never holds a byte of a key.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	// Sealed is what status says of the group as a whole.
	Sealed bool `json:"sealed"`
	// Verified is true if the content of every Secret was read and hashed for this report.
	Verified bool   `json:"verified"`
	Sites    []Site `json:"sites"`
	// Findings are the results of the checks; only in a verified report.
	Findings []Finding `json:"findings,omitempty"`
}

// Site is the keyring of one site.
type Site struct {
	Name string `json:"name"`
	// Phase is empty for a site without a keyring in status.
	Phase   string     `json:"phase,omitempty"`
	Work    string     `json:"work,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Message string     `json:"message,omitempty"`
	// Secret, Version and Digest are as in status.
	Secret  string `json:"secret,omitempty"`
	Version int64  `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// PodSecret is the Secret that the site's pod has mounted as its keyring; empty if that could not be seen.
	PodSecret string `json:"podSecret,omitempty"`
	// Versions are the versions in escrow, the newest first.
	Versions []Version `json:"versions"`
}

// Version is one keyring in escrow.
type Version struct {
	Version int64  `json:"version"`
	Secret  string `json:"secret"`
	// Digest is the digest that it was stored with.
	Digest string `json:"digest,omitempty"`
	// Content is the digest of its present content; only in a verified report.
	Content string `json:"content,omitempty"`
	State   State  `json:"state"`
	// Created is when it was stored.
	Created *time.Time `json:"created,omitempty"`
}

// State says what a version is for.
type State string

// The states.
const (
	// Current: status names it.
	Current State = "Current"
	// Missing: status names it, and it does not exist.
	Missing State = "Missing"
	// Kept: superseded, and kept for a roll-back.
	Kept State = "Kept"
	// Newer: newer than what status names. It was pushed, and the site is not sealed with it yet.
	Newer State = "Newer"
	// Deleting: it is being deleted.
	Deleting State = "Deleting"
)

// Facts are the input of a report.
type Facts struct {
	Group *v1alpha1.MysqlFailoverGroup
	// Secrets are all that look like keyrings of the group, with their content if the report should verify it.
	Secrets []corev1.Secret
	// Pods are the group's pods; PodsUnseen says why they are unknown.
	Pods       []corev1.Pod
	PodsUnseen string
	Verify     bool
}

// Build makes the report.
func Build(f Facts) Report {
	g := f.Group
	r := Report{
		APIVersion: report.APIVersion, Kind: Kind, Metadata: report.Metadata{Name: g.Name, Namespace: g.Namespace}, Verified: f.Verify,
		Sites: []Site{},
	}
	if e := g.Status.EncryptionAtRest; e != nil {
		r.Sealed = e.Sealed
	}
	for _, name := range siteNames(f) {
		r.Sites = append(r.Sites, buildSite(f, name))
	}
	if f.Verify {
		r.Findings = examine(f, r.Sites)
	}
	return r
}

// siteNames returns the sites of the specification, then those that left it and whose keyrings still exist.
func siteNames(f Facts) []string {
	var names, left []string
	for _, s := range f.Group.Spec.Sites {
		names = append(names, s.Name)
	}
	for _, s := range f.Secrets {
		if site := s.Labels[v1alpha1.LabelSite]; site != "" && !slices.Contains(names, site) {
			left = append(left, site)
		}
	}
	slices.Sort(left)
	return append(names, slices.Compact(left)...)
}

func buildSite(f Facts, name string) Site {
	st, _, _ := StatusOf(f.Group, name)
	s := Site{
		Name: name, Phase: string(st.Phase), Work: string(st.Work), Message: st.Message,
		Secret: st.KeyringSecret, Version: st.KeyringVersion, Digest: st.KeyringDigest,
		PodSecret: podSecret(f, name), Versions: []Version{},
	}
	if st.Since != nil {
		s.Since = &st.Since.Time
	}
	for i := range f.Secrets {
		secret := &f.Secrets[i]
		if number, ours := numberOf(f.Group.Name, name, secret.Name); ours {
			s.Versions = append(s.Versions, buildVersion(f, st, secret, number))
		}
	}
	if st.KeyringSecret != "" && s.current() == nil {
		s.Versions = append(s.Versions, Version{Version: st.KeyringVersion, Secret: st.KeyringSecret, Digest: st.KeyringDigest, State: Missing})
	}
	slices.SortFunc(s.Versions, func(a, b Version) int { return cmp.Compare(b.Version, a.Version) })
	return s
}

// current returns the version that status names, if it exists.
func (s Site) current() *Version {
	i := slices.IndexFunc(s.Versions, func(v Version) bool { return v.Secret == s.Secret && v.State != Missing })
	if i < 0 {
		return nil
	}
	return &s.Versions[i]
}

func buildVersion(f Facts, st v1alpha1.SiteKeyringStatus, secret *corev1.Secret, number int64) Version {
	v := Version{Version: number, Secret: secret.Name, Digest: secret.Annotations[v1alpha1.AnnotationKeyringDigest], State: Kept}
	if !secret.CreationTimestamp.IsZero() {
		v.Created = &secret.CreationTimestamp.Time
	}
	if f.Verify {
		v.Content = Digest(secret)
	}
	switch {
	case secret.Name == st.KeyringSecret:
		v.State = Current
	case secret.DeletionTimestamp != nil:
		v.State = Deleting
	case number > st.KeyringVersion:
		v.State = Newer
	}
	return v
}

// numberOf reads the number in a name, as the operator does: no two Secrets share one.
func numberOf(group, site, name string) (int64, bool) {
	prefix := strings.TrimSuffix(v1alpha1.KeyringSecret(group, site, 0), "0")
	digits, found := strings.CutPrefix(name, prefix)
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, found && err == nil && number > 0
}

// podSecret returns what the running pod of a site has mounted as its keyring.
func podSecret(f Facts, site string) string {
	dir := strings.TrimSuffix(File(f.Group), "/"+fileName)
	for _, p := range f.Pods {
		if p.Labels[v1alpha1.LabelSite] != site || p.DeletionTimestamp != nil {
			continue
		}
		volume := ""
		for _, c := range p.Spec.Containers {
			for _, m := range c.VolumeMounts {
				if c.Name == containerMySQL && m.MountPath == dir {
					volume = m.Name
				}
			}
		}
		for _, v := range p.Spec.Volumes {
			if v.Name == volume && v.Secret != nil {
				return v.Secret.SecretName
			}
		}
	}
	return ""
}

const containerMySQL = "mysql"
