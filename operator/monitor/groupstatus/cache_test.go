// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestCacheOfAGroup: GET /status says all that status says, and nothing of a cache that is off.
func TestCacheOfAGroup(t *testing.T) {
	at := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	behind, used := int64(7), resource.MustParse("2Ki")
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey}
	if cacheOf(group) != nil {
		t.Error("nothing is known of it yet")
	}
	group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionCacheReady, Status: metav1.ConditionFalse, Reason: "Because", Message: "words"}}
	group.Status.Cache = &v1alpha1.CacheStatus{
		ActiveSite: "paris",
		Transition: &v1alpha1.CacheTransition{Kind: v1alpha1.CacheMovePlanned, From: "paris", To: "rome", StartedAt: metav1.NewMicroTime(at)},
		LastPromotion: &v1alpha1.CachePromotion{At: metav1.NewMicroTime(at), Kind: v1alpha1.CacheMoveEmergency, From: "rome", To: "paris",
			Method: v1alpha1.CacheByPromotion, TookMillis: 12, Reason: "Gone", Message: "it was gone"},
		Sites: []v1alpha1.CacheSiteStatus{{Name: "rome", Role: v1alpha1.CacheReplica, Link: "Up", OffsetBehind: &behind, UsedMemory: &used, Image: "i", Message: "m"}},
	}
	got, err := json.Marshal(cacheOf(group))
	const want = `{"ready":false,"reason":"Because","message":"words","activeSite":"paris",` +
		`"transition":{"kind":"Planned","from":"paris","to":"rome","startedAt":"2026-11-03T12:00:00Z"},` +
		`"lastPromotion":{"at":"2026-11-03T12:00:00Z","kind":"Emergency","from":"rome","to":"paris","method":"Promotion","sessionsPreserved":false,"tookMillis":12,"reason":"Gone","message":"it was gone"},` +
		`"sites":[{"name":"rome","role":"replica","link":"Up","behindBytes":7,"usedMemoryBytes":2048,"image":"i","message":"m"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	group.Spec.Cache.Engine = v1alpha1.CacheDragonfly
	if s := cacheOf(group).Sites[0]; s.BehindBytes != nil || s.BehindChanges == nil || *s.BehindChanges != 7 {
		t.Errorf("Dragonfly counts changes, not bytes: %+v", s)
	}
	group.Spec.Cache.Enabled = false
	if cacheOf(group) != nil {
		t.Error("it is off")
	}
}
