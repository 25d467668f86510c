// SPDX-License-Identifier: Apache-2.0

package controller

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

// testKey is the key of the group of tests.
var testKey = types.NamespacedName{Namespace: "shop", Name: "orders"}

// groupOption changes a group.
type groupOption func(*v1alpha1.MysqlFailoverGroup)

// running is a group that has run: a is the active site, all sites are provisioned.
func running(g *v1alpha1.MysqlFailoverGroup) {
	g.Status.ActiveSite, g.Status.Epoch = "a", 1
	for _, s := range g.Spec.Sites {
		g.Status.Sites = append(g.Status.Sites, v1alpha1.SiteStatus{Name: s.Name, Provisioned: true})
	}
}

// testGroup is a group of three sites, the last of which is never promoted.
func testGroup(options ...groupOption) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: testKey.Namespace, Name: testKey.Name, UID: "group-uid", Generation: 1},
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

// fakeFacts is a poll loop's snapshot.
type fakeFacts struct {
	mu sync.Mutex
	g  scope.GroupFacts
}

// Sites implements scope.Facts.
func (f *fakeFacts) Sites(string, string) (scope.GroupFacts, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.g
	g.Sites = maps.Clone(f.g.Sites)
	return g, g.Sites != nil
}

// set puts what was seen of a site.
func (f *fakeFacts) set(site string, s scope.SiteFacts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.g.Sites == nil {
		f.g.Sites = map[string]scope.SiteFacts{}
	}
	f.g.Sites[site] = s
}

// signedBy has the loop sign with a key; the zero one stands for a loop that has none yet.
func (f *fakeFacts) signedBy(key signing.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.g.SignedBy, f.g.Vouch = nil, nil
	if key.Private != nil {
		f.g.SignedBy, f.g.Vouch = key.Public(), key.Vouch
	}
}

// open has a site be active, and seen open; nobody if it is empty.
func (f *fakeFacts) open(site string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.g.ActiveSite, f.g.Open = site, site != ""
}

// under is the epoch that was seen.
func (f *fakeFacts) under(epoch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.g.Epoch = epoch
}

// closed is the active site, not seen open.
func (f *fakeFacts) closed(site string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.g.ActiveSite, f.g.Open = site, false
}

// eventSink keeps what is said in events.
type eventSink struct {
	mu   sync.Mutex
	list []string
}

// Eventf takes an event.
func (s *eventSink) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, reason+": "+fmt.Sprintf(note, args...))
}

// count is how many events of a reason were said.
func (s *eventSink) count(reason v1alpha1.Reason) int {
	return len(s.of(reason))
}

// of are the events of a reason.
func (s *eventSink) of(reason v1alpha1.Reason) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(line string) bool { return !strings.HasPrefix(line, string(reason)+":") })
}
