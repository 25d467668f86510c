// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	bodies "github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/leading"
)

type anybody struct{}

func (anybody) Answer(bodies.Ask) (bodies.Signed, error) { return "signed", nil }

func TestAStandbyNeedsAnElectionAndAName(t *testing.T) {
	base := []string{"--auxiliary-url=http://a:8082", "--sidecar-image=sidecar", "--namespace=mfg-system"}
	for _, tc := range []struct {
		args []string
		pod  string
		ok   bool
	}{
		{nil, "", true},
		{[]string{"--hot-standby"}, "mfg-operator-1", true},
		{[]string{"--hot-standby"}, "", false},
		{[]string{"--hot-standby", "--leader-elect=false"}, "mfg-operator-1", false},
	} {
		t.Setenv("POD_NAME", tc.pod)
		if _, err := parse(slices.Concat(base, tc.args)); (err == nil) != tc.ok {
			t.Errorf("%v in pod %q: %v", tc.args, tc.pod, err)
		}
	}
}

// TestOnlyAStandbyChangesTheElection covers I4: an operator that promises when it stops answering keeps the promise, and one without a standby
// works as it always did.
func TestOnlyAStandbyChangesTheElection(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	mgr, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: false})
	if err != nil {
		t.Fatal(err)
	}
	for _, standby := range []bool{false, true} {
		s := settings{leaderElect: true, hotStandby: standby, namespace: "mfg-system", holder: "mfg-operator-1"}
		term := &leading.Term{Lease: s.lease()}
		lock, err := s.lock(config, term)
		if err != nil || (lock != nil) != standby {
			t.Fatalf("standby %t: lock %v, %v", standby, lock, err)
		}
		speaks, err := addStandby(mgr, s, standbyParts{anybody{}, term, slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := speaks.Answer(bodies.Ask{}); (err == nil) == standby {
			t.Errorf("I4: standby %t answers before it renewed: %v", standby, err)
		}
		if !standby {
			continue
		}
		if id := lock.Identity(); id != term.Own || !strings.HasSuffix(id, "_answers-"+leading.SpeaksFor.String()) || strings.Count(id, "_") < 2 {
			t.Errorf("I4: identity %q promises nothing that the next one could believe", id)
		}
		if s.retryPeriod()*2 >= leading.SpeaksFor || leading.SpeaksFor >= renewDeadline || renewDeadline >= leaseDuration {
			t.Error("I4: it would fall silent between two renewals, or speak when another one leads")
		}
	}
}
