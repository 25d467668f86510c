// SPDX-License-Identifier: Apache-2.0

package securing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/secure"
)

// TestWhatAnotherPodSaidDoesNotCount: a site is as far as the pod that is there.
func TestWhatAnotherPodSaidDoesNotCount(t *testing.T) {
	end := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		change func(*scope.Scope)
		want   secure.Site
	}{
		"all is there":        {func(*scope.Scope) {}, secure.Site{Name: "b", Loaded: true, Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"no pod":              {func(s *scope.Scope) { delete(s.Pods, "b") }, secure.Site{Name: "b"}},
		"a pod that goes":     {func(s *scope.Scope) { s.Pods["b"].DeletionTimestamp = new(metav1.Now()) }, secure.Site{Name: "b"}},
		"another pod said so": {func(s *scope.Scope) { s.Pods["b"].UID = "new" }, secure.Site{Name: "b"}},
		"nothing was said":    {func(s *scope.Scope) { s.Facts.Sites["b"] = scope.SiteFacts{PodUID: "one"} }, secure.Site{Name: "b"}},
		"MySQL does not take it": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.Problem = "no" },
			secure.Site{Name: "b", Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"MySQL shows none": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.NotAfter = nil },
			secure.Site{Name: "b", Verified: true, Plain: &secure.Plain{Connections: 2}}},
		"clients were not counted": {func(s *scope.Scope) { s.Facts.Sites["b"].Certificate.Plain = nil }, secure.Site{Name: "b", Loaded: true, Verified: true}},
	} {
		group := scopetest.Group()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "one"}}
		s := &scope.Scope{Group: group, Pods: map[string]*corev1.Pod{"b": pod}, Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"b": {
			PodUID: "one", ReceiverVerifies: true, Certificate: &wire.CertificateReport{NotAfter: &end, Plain: &wire.PlainReport{Connections: 2}},
		}}}}
		tc.change(s)
		got := secureSite(s, "b")
		if got.Name != tc.want.Name || got.Loaded != tc.want.Loaded || got.Verified != tc.want.Verified ||
			(got.Plain == nil) != (tc.want.Plain == nil) || got.Plain != nil && *got.Plain != *tc.want.Plain {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestNumbersThatGoUpAndDownAreWrittenOnceAMinute: but at once when the first client comes or the last one goes.
func TestNumbersThatGoUpAndDownAreWrittenOnceAMinute(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := metav1.NewTime(now.Add(-30 * time.Second))
	count := func(n int32) []v1alpha1.SiteTLSStatus {
		return []v1alpha1.SiteTLSStatus{{Name: "a", PlainConnections: n}}
	}
	for name, tc := range map[string]struct {
		before   []v1alpha1.SiteTLSStatus
		clients  int
		at       metav1.Time
		want     int32
		wantTime time.Time
	}{
		"one more":                 {count(3), 4, at, 3, at.Time},
		"one more, a minute ago":   {count(3), 4, metav1.NewTime(now.Add(-time.Minute)), 4, now},
		"the last one has gone":    {count(3), 0, at, 0, now},
		"the first one":            {count(0), 3, at, 3, now},
		"a site more":              {nil, 3, at, 3, now},
		"another site than before": {[]v1alpha1.SiteTLSStatus{{Name: "b", PlainConnections: 3}}, 3, at, 3, now},
	} {
		g := secure.Group{Status: v1alpha1.TLSStatus{Phase: v1alpha1.TLSClients, Later: true, Sites: tc.before, CountedAt: &tc.at}, Sites: []secure.Site{{Name: "a", Plain: &secure.Plain{Connections: tc.clients}}}}
		got := tlsStatus(&scope.Scope{Now: now}, g, secure.Decision{Phase: v1alpha1.TLSClients, Later: true})
		if len(got.Sites) != 1 || got.Sites[0].PlainConnections != tc.want || !got.CountedAt.Time.Equal(tc.wantTime) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	g := secure.Group{Status: v1alpha1.TLSStatus{Phase: v1alpha1.TLSClients, CountedAt: &at}, Sites: []secure.Site{{Name: "a", Plain: &secure.Plain{}}}}
	if got := tlsStatus(&scope.Scope{Now: now}, g, secure.Decision{Phase: v1alpha1.TLSRequired}); got.Sites != nil || got.CountedAt != nil || !got.Since.Time.Equal(now) {
		t.Errorf("nobody is counted any more: %+v", got)
	}
}
