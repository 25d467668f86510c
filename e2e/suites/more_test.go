// SPDX-License-Identifier: Apache-2.0

//go:build lab && more

package suites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// `make test-more` has what `make test` has no time for: what goes another way in a story that `make test` plays.

func TestARenewedCertificateIsShownByDragonfly(t *testing.T) {
	renewedIsShown(t, v1alpha1.CacheDragonfly)
}

// An update that goes wrong stops where no failover needs the site, says so, and goes on once it is corrected.
func TestUpdateThatGoesWrongStops(t *testing.T) {
	t.Parallel() // it waits for two minutes
	g := ownGroup(t, &stage.Group{Stage: lab, Namespace: "suite-wrong", Name: "wrong"}, stage.DefaultSpec("wrong"))
	before, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	o := watchOrder(t, g)
	edit(t, g, func(spec *v1alpha1.MysqlFailoverGroupSpec) {
		spec.MysqlConf = map[string]string{"lower_case_table_names": "1"} // on a volume that was made without, mysqld does not start
	})
	if _, err := g.Await(t.Context(), rolling, "the update to stop", func(group *v1alpha1.MysqlFailoverGroup) error {
		c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionProgressing)
		if c == nil || c.Reason != "SiteNotBack" || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "south") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := o.look(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.sites, []string{"south"}) {
		t.Errorf("updated %v: it must stop at south", o.sites)
	}
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.MysqlConf = nil }); err != nil {
		t.Fatal(err)
	}
	after, err := g.Await(t.Context(), rolling, "the correction", stage.NotUpdated)
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.ActiveSite != before.Status.ActiveSite || after.Status.Epoch != before.Status.Epoch {
		t.Errorf("%s under epoch %d, before %s under %d: nothing but south had to change",
			after.Status.ActiveSite, after.Status.Epoch, before.Status.ActiveSite, before.Status.Epoch)
	}
}

// The key is lost while no operator runs, so no operator can vouch for a site: the sites stay as they are, because their peers vouch for
// them, and get the new key with new pods, one after the other. The active site is the last; it gives its role away once no peer
// takes its word any more. Nothing is lost, and no two sites write.
func TestALostKeyReachesTheSitesWithNewPods(t *testing.T) {
	g, _ := whole(t)
	former, err := signingKey(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	w := witnesses(t, g)
	at := load.Now()
	withoutOperator(t)
	deleteKey(t, g)
	if err := lab.ScaleOperator(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), 15*time.Minute, "every site to trust the new key", func(ctx context.Context) error {
		key, err := signingKey(ctx, g)
		if err != nil {
			return err
		}
		if key.Public().Equal(former.Public()) {
			return errors.New("the key is the former one")
		}
		for _, site := range stage.Sites {
			if anchor, err := anchorOf(ctx, g, site); err != nil || !key.Chain.Has(anchor) {
				return fmt.Errorf("%s trusts %x: %w", site, anchor, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), bringUp); err != nil {
		t.Fatal(err)
	}
	signedWith(t, g, former.Public())
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	v, _ := judge(t, w, at)
	checkLoss(t, g, v)
	if len(v.Missing) > 0 {
		t.Errorf("%d acknowledged rows are missing", len(v.Missing))
	}
}

// The key that signs statements is lost while an operator runs that has it: it is made again, the former one vouches for it, and no
// client notices. The old key cannot make a site fence any more.
func TestTheKeyIsReplacedUnderARunningGroup(t *testing.T) {
	g, group := whole(t)
	before := runs(t, g)
	former, err := signingKey(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	w := witnesses(t, g)
	at := load.Now()
	deleteKey(t, g)
	signedWith(t, g, former.Public())
	pushForged(t, g, group, former.Private)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	// An operator that was restarted has the new key alone.
	if err := lab.KillOperator(t.Context()); err != nil {
		t.Fatal(err)
	}
	sleep(t, lease+10*time.Second)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	if after := runs(t, g); after != before {
		t.Errorf("containers were restarted:\n%s\nbefore\n%s", after, before)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
	moveRole(t, g)
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
}
