// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// campaignWorld is a sealed group whose sites status knows to be what they are, with a campaign that is asked for.
func campaignWorld(t *testing.T, order string) *world {
	t.Helper()
	freshMetrics(t)
	w := sealedWorld(t)
	w.order(v1alpha1.AnnotationRotateKeyring, order)
	return w
}

func (w *world) campaign() v1alpha1.CampaignStatus {
	w.t.Helper()
	if at := w.group().Status.EncryptionAtRest; at != nil && at.Campaign != nil {
		return *at.Campaign
	}
	return v1alpha1.CampaignStatus{}
}

// turn takes the site that the campaign rotates through its rotation.
func (w *world) turn(site, keyring string, version int64) {
	w.t.Helper()
	w.reconcile()
	if st := w.keyring(site); st.Phase != v1alpha1.KeyringUnsealed || st.Work != v1alpha1.KeyringRotation {
		w.t.Fatalf("%s is %s for %s, the campaign is %+v", site, st.Phase, st.Work, w.campaign())
	}
	w.boot("one", site)
	w.reconcile()
	key := scope.SiteKey{Group: scopetest.Key, Site: site}
	w.r.Work.BeginRotation(key, func() {}).Finish(nil)
	w.live(site, func(k *wire.KeyringReport) { k.Digest = wire.KeyringDigest([]byte(keyring)) })
	w.reconcile()
	w.push(site, version, keyring)
	w.rest()
	w.rest()
	w.boot("", site)
	w.rest()
	w.rest()
	if st := w.keyring(site); st.Phase != v1alpha1.KeyringSealed && st.RotatedVersion != version {
		w.t.Fatalf("%s is %+v", site, st)
	}
}

// moved plays the monitor: the planned failover that is asked for is carried out.
func (w *world) moved(to string, epoch int64) {
	w.t.Helper()
	g := w.group()
	q, stands := asks.Of(g, v1alpha1.RequestPlannedFailover)
	if !stands || q.Value != to || q.ID == "" || q.ID != w.campaign().StepID {
		w.t.Fatalf("it asks for %+v (%t), the campaign is %+v", q, stands, w.campaign())
	}
	w.must(asks.Writer{Client: w.c, Owner: v1alpha1.ManagerMonitor}.Answer(w.ctx, g, q, asks.Done("it is open")))
	w.monitorStatus(to, epoch)
	w.facts.Open(to)
	w.boot("", "a", "b", "c")
}

// The replicas one by one, the role by a planned failover, and the former active site once it is a replica; then the answer.
func TestCampaignOfAllSitesI20(t *testing.T) {
	w := campaignWorld(t, "*")
	w.order(v1alpha1.AnnotationRotation, "2026-11-03T12:00:00Z a=1 b=1 c=1") // what an older plugin left
	w.reconcile()
	if c := w.campaign(); c.Request == "" || c.Order != "*" || c.Step != "" || w.phases() != "Sealed Sealed Sealed" {
		t.Fatalf("something is done before it is durable that the campaign began: %+v, %s", c, w.phases())
	}
	if _, still := w.group().Annotations[v1alpha1.AnnotationRotation]; still {
		t.Error("the note of an older plugin stays")
	}
	w.reconcile()
	w.turn("a", "two", 2)
	if c := w.campaign(); c.Step != v1alpha1.CampaignRotating || c.Site != "c" || w.group().Annotations[v1alpha1.AnnotationRotateKeyring] != "*" {
		t.Fatalf("%+v, annotations %v", c, w.group().Annotations)
	}
	w.turn("c", "three", 2)
	if c := w.campaign(); c.Step != v1alpha1.CampaignMoving || c.Site != "a" {
		t.Fatalf("%+v", c)
	}
	w.reconcile()
	if c := w.campaign(); !c.Asked || w.keyring("b").Phase != v1alpha1.KeyringSealed {
		t.Errorf("I20: b is active, and %s; %+v", w.keyring("b").Phase, c)
	}
	w.moved("a", 3)
	w.rest()
	w.turn("b", "four", 2)
	w.rest()
	if c := w.campaign(); c.Outcome != v1alpha1.CampaignDone || c.Moves != 1 || len(c.Left()) != 0 {
		t.Errorf("%+v", c)
	}
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "*: Done (Completed): new master keys, in escrow and sealed: a v1 -> v2, b v1 -> v2, c v1 -> v2") {
		t.Error(last)
	}
	if g := w.group(); len(g.Annotations) != 0 {
		t.Errorf("annotations %v", g.Annotations)
	}
	for reason, want := range map[v1alpha1.Reason]int{v1alpha1.ReasonKeyringCampaignBegan: 1, v1alpha1.ReasonKeyringCampaignDone: 1,
		v1alpha1.ReasonKeyringCampaignWaits: 0, v1alpha1.ReasonKeyringRotationRefused: 0} {
		if n := w.said.Count(reason); n != want {
			t.Errorf("%s is told %d times", reason, n)
		}
	}
	before := w.campaign()
	w.rest()
	if now := w.campaign(); fmt.Sprint(now) != fmt.Sprint(before) || w.phases() != "Sealed Sealed Sealed" {
		t.Errorf("it goes on after its end: %+v", now)
	}
}

// A person who takes the annotation off ends it: a site that was not unsealed yet stays sealed, and nothing else begins.
func TestACampaignIsCancelled(t *testing.T) {
	w := campaignWorld(t, "*:replicas")
	w.reconcile()
	w.reconcile()
	if st := w.keyring("a"); st.Phase != v1alpha1.KeyringPending {
		t.Fatalf("a is %s", st.Phase)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { delete(g.Annotations, v1alpha1.AnnotationRotateKeyring) })
	w.reconcile()
	c := w.campaign()
	if c.Outcome != v1alpha1.CampaignCancelled || !strings.HasSuffix(c.Message, "left: a, c") || w.phases() != "Sealed Sealed Sealed" || w.keyring("a").RotatedVersion != 0 {
		t.Errorf("%+v, %s", c, w.phases())
	}
	if n := w.said.Count(v1alpha1.ReasonKeyringCampaignStopped); n != 1 || w.last(v1alpha1.RequestRotateKeyring) != "" {
		t.Errorf("told %d times, answered %s", n, w.last(v1alpha1.RequestRotateKeyring))
	}
	w.rest()
	if w.phases() != "Sealed Sealed Sealed" {
		t.Errorf("it goes on: %s", w.phases())
	}
}

// A planned failover that was asked for and not begun does not come after the campaign's end.
func TestACancelledCampaignTakesItsMoveBack(t *testing.T) {
	w := campaignWorld(t, "*")
	w.reconcile()
	w.reconcile()
	w.turn("a", "two", 2)
	w.turn("c", "three", 2)
	w.order(v1alpha1.AnnotationRotateKeyring, "*:replicas") // another order takes its place
	if again := w.reconcile(); again > scope.WhenMoving {
		t.Errorf("the next one begins after %s", again)
	}
	if c := w.campaign(); c.Outcome != v1alpha1.CampaignCancelled || w.group().Annotations[v1alpha1.AnnotationPlannedFailover] != "" {
		t.Errorf("%+v, annotations %v", c, w.group().Annotations)
	}
	w.reconcile()
	if c := w.campaign(); c.Order != "*:replicas" || len(c.Left()) != 0 {
		t.Errorf("it does not go on with what was done: %+v", c)
	}
	w.reconcile()
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "*:replicas: Done") {
		t.Error(last)
	}
}

// What is in its way is waited for, and told; nothing is refused that may be over a moment later.
func TestACampaignWaits(t *testing.T) {
	w := campaignWorld(t, "*")
	w.diverge("a")
	w.reconcile()
	if again := w.reconcile(); again > scope.WhenWaiting {
		t.Errorf("it is looked at again after %s", again)
	}
	c := w.campaign()
	if c.Step != v1alpha1.CampaignWaiting || c.Site != "a" || c.Reason != v1alpha1.AnswerSiteDiverged || c.Message == "" {
		t.Fatalf("%+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonKeyringCampaignWaits); n != 0 {
		t.Errorf("told %d times at once", n)
	}
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		since := s.EncryptionAtRest.Campaign.Since
		since.Time = since.Add(-time.Minute)
	})
	w.reconcile()
	w.reconcile()
	if n := w.said.Count(v1alpha1.ReasonKeyringCampaignWaits); n != 1 {
		t.Errorf("told %d times", n)
	}
	if last := w.last(v1alpha1.RequestRotateKeyring); last != "" || w.group().Annotations[v1alpha1.AnnotationRotateKeyring] != "*" {
		t.Errorf("answered %s", last)
	}
	w.order(v1alpha1.AnnotationRecloneSite, "c")
	if q := w.campaign(); q.Outcome != "" {
		t.Errorf("%+v", q)
	}
}

// A step that takes long is told of once, like a wait: nobody looks at status for hours.
func TestACampaignWhoseStepTakesLong(t *testing.T) {
	w := campaignWorld(t, "*")
	w.reconcile()
	w.reconcile()
	if c := w.campaign(); c.Step != v1alpha1.CampaignRotating || w.said.Count(v1alpha1.ReasonKeyringCampaignWaits) != 0 {
		t.Fatalf("%+v, told %d times", c, w.said.Count(v1alpha1.ReasonKeyringCampaignWaits))
	}
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		since := s.EncryptionAtRest.Campaign.Since
		since.Time = since.Add(-30 * time.Minute)
	})
	w.reconcile()
	w.reconcile()
	if n := w.said.Count(v1alpha1.ReasonKeyringCampaignWaits); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// What cannot be carried out is answered.
func TestACampaignIsRefused(t *testing.T) {
	for order, want := range map[string]string{
		"*:everything": "*:everything: Refused (NotUnderstood)", "*:to=nowhere": "*:to=nowhere: Refused (NotACandidate)", "*:to=b": "*:to=b: Refused (IsActiveSite)",
	} {
		w := campaignWorld(t, order)
		w.reconcile()
		if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, want) || w.campaign().Request != "" || len(w.group().Annotations) != 0 {
			t.Errorf("%s: %s, %+v", order, last, w.campaign())
		}
		if n := w.said.Count(v1alpha1.ReasonKeyringRotationRefused); n != 1 {
			t.Errorf("%s: told %d times", order, n)
		}
	}
}

// An operator that ends after the outcome is durable, and before it is answered, leaves that to the next one.
func TestTheEndOfACampaignIsAnswered(t *testing.T) {
	w := campaignWorld(t, "*:replicas")
	w.reconcile()
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for i := range s.EncryptionAtRest.Campaign.Sites {
			s.EncryptionAtRest.Campaign.Sites[i].FromVersion = 0
		}
		for i := range s.EncryptionAtRest.Sites {
			s.EncryptionAtRest.Sites[i].RotatedVersion = 1
		}
	})
	w.fail[groupType] = errors.New("ends here")
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("no error")
	}
	clear(w.fail)
	if c := w.campaign(); c.Outcome != v1alpha1.CampaignDone || w.group().Annotations[v1alpha1.AnnotationRotateKeyring] == "" {
		t.Fatalf("%+v, annotations %v", c, w.group().Annotations)
	}
	w.reconcile()
	w.reconcile()
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "*:replicas: Done") || len(w.group().Annotations) != 0 {
		t.Errorf("%s, annotations %v", last, w.group().Annotations)
	}
}

// A group that was never encrypted, and one whose adoption a person has to accept, have nothing that could be rotated.
func TestACampaignWithoutKeyrings(t *testing.T) {
	w := runningWorld(t)
	w.order(v1alpha1.AnnotationRotateKeyring, "*")
	w.reconcile()
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "*: Refused (NotEncrypted)") {
		t.Error(last)
	}
	w = runningWorld(t)
	w.r.encryption.Escrow, w.r.encryption.EscrowURL, w.r.Install.EscrowURL = vault{w.c}, "https://operator:8443", "https://operator:8443"
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.change(scopetest.WithEncryption)
	w.order(v1alpha1.AnnotationRotateKeyring, "*")
	w.reconcile()
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "*: Refused (NotEncrypted)") || w.group().Status.EncryptionAtRest != nil {
		t.Errorf("%s, %+v", last, w.group().Status.EncryptionAtRest)
	}
}

// The rotation of one site is what it was, also beside the record of a campaign.
func TestASingleSiteAfterACampaign(t *testing.T) {
	w := campaignWorld(t, "*:replicas")
	w.reconcile()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { delete(g.Annotations, v1alpha1.AnnotationRotateKeyring) })
	w.reconcile()
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	w.reconcile()
	w.turn("c", "two", 2)
	if last := w.last(v1alpha1.RequestRotateKeyring); !strings.HasPrefix(last, "c: Done (Completed)") || w.campaign().Outcome != v1alpha1.CampaignCancelled {
		t.Errorf("%s, %+v", last, w.campaign())
	}
}

// An API server that drops the campaign, because its definition of groups is older, has nothing rotated: every look would begin one.
func TestACampaignThatIsNotKept(t *testing.T) {
	w := campaignWorld(t, "*")
	w.drops = true
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil || !strings.Contains(err.Error(), "older than the operator") {
		t.Errorf("error %v", err)
	}
}
