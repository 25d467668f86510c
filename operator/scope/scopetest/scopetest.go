// SPDX-License-Identifier: Apache-2.0

// Package scopetest is what tests of the controller and its wings share: a group, what the poll loop saw of it, and what was said.
package scopetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// Key is the key of the tests' group.
var Key = types.NamespacedName{Namespace: "shop", Name: "orders"}

// Option changes a group.
type Option func(*v1alpha1.MysqlFailoverGroup)

// Running makes a group that has run: a is the active site, all sites are provisioned.
func Running(g *v1alpha1.MysqlFailoverGroup) {
	g.Status.ActiveSite, g.Status.Epoch = "a", 1
	for _, s := range g.Spec.Sites {
		g.Status.Sites = append(g.Status.Sites, v1alpha1.SiteStatus{Name: s.Name, Provisioned: true})
	}
}

// Group returns a group of three sites; the last one is never promoted.
func Group(options ...Option) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Key.Namespace, Name: Key.Name, UID: "group-uid", Generation: 1},
		Spec: v1alpha1.MysqlFailoverGroupSpec{
			Image: "mysql:9.7", ImagePullPolicy: corev1.PullIfNotPresent, DeletionPolicy: v1alpha1.DeletionRetain,
			Sites: []v1alpha1.Site{
				{Name: "a", Role: v1alpha1.PrimaryCandidate}, {Name: "b", Role: v1alpha1.PrimaryCandidate},
				{Name: "c", Role: v1alpha1.DROnly},
			},
		},
	}
	for _, o := range options {
		o(g)
	}
	return g
}

// Facts is a poll loop's snapshot.
type Facts struct {
	Mu sync.Mutex
	G  scope.GroupFacts
}

// Sites implements scope.Facts.
func (f *Facts) Sites(string, string) (scope.GroupFacts, bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	g := f.G
	g.Sites = maps.Clone(f.G.Sites)
	return g, g.Sites != nil
}

// Set sets the facts about a site.
func (f *Facts) Set(site string, s scope.SiteFacts) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.G.Sites == nil {
		f.G.Sites = map[string]scope.SiteFacts{}
	}
	f.G.Sites[site] = s
}

// SignedBy lets the loop sign with a key; the zero key means a loop that has none yet.
func (f *Facts) SignedBy(key signing.Key) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.G.SignedBy, f.G.Vouch = nil, nil
	if key.Private != nil {
		f.G.SignedBy, f.G.Vouch = key.Public(), key.Vouch
	}
}

// Open makes a site active and seen open; an empty name means no site.
func (f *Facts) Open(site string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.G.ActiveSite, f.G.Open = site, site != ""
}

// Under sets the epoch that was seen.
func (f *Facts) Under(epoch int64) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.G.Epoch = epoch
}

// Closed makes a site active, but not seen open.
func (f *Facts) Closed(site string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.G.ActiveSite, f.G.Open = site, false
}

// Events keeps the emitted events.
type Events struct {
	mu   sync.Mutex
	List []string
}

// Eventf takes an event.
func (s *Events) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.List = append(s.List, reason+": "+fmt.Sprintf(note, args...))
}

// Count returns the number of events of a reason.
func (s *Events) Count(reason v1alpha1.Reason) int {
	return len(s.Of(reason))
}

// Of returns the events of a reason.
func (s *Events) Of(reason v1alpha1.Reason) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.List), func(line string) bool { return !strings.HasPrefix(line, string(reason)+":") })
}

// Change changes the facts about a site.
func (f *Facts) Change(site string, do func(*scope.SiteFacts)) {
	f.Mu.Lock()
	s := f.G.Sites[site]
	f.Mu.Unlock()
	do(&s)
	f.Set(site, s)
}

// WithEncryption makes a group whose specification asks for encryption.
func WithEncryption(g *v1alpha1.MysqlFailoverGroup) {
	g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true, Keyring: v1alpha1.KeyringSpec{
		DataFileDir: "/run/mysql-keyring", MysqldDir: "/usr/sbin", PluginDir: "/usr/lib/mysql/plugin", RetainVersions: 2, EscrowTimeoutSeconds: 600,
	}}
}
