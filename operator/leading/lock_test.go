// SPDX-License-Identifier: Apache-2.0

package leading

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func record(holder string, second int64) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, RenewTime: metav1.Time{Time: time.Unix(second, 0)}}
}

// TestOnlyARenewalThatSucceededCounts covers I4.
func TestOnlyARenewalThatSucceededCounts(t *testing.T) {
	p := &path{lease: &lease{}, id: Promise("a")}
	lock := &Lock{Interface: p, Term: &Term{Lease: own}}
	if err := lock.Create(t.Context(), record(p.id, 1)); err != nil || !lock.Term.MaySpeak(time.Now()) {
		t.Fatalf("it made the Lease, and may not speak: %v", err)
	}
	long := time.Now().Add(-time.Hour)
	lock.Term.Renewed(long)
	p.read-- // somebody else wrote
	if err := lock.Update(t.Context(), record(p.id, 2)); err == nil || lock.Term.MaySpeak(time.Now()) {
		t.Errorf("I4: a renewal that was refused counts: %v", err)
	}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(t.Context(), record("", 2)); err != nil || lock.Term.MaySpeak(time.Now()) {
		t.Errorf("I4: a Lease that was given back counts as renewed: %v", err)
	}
	if err := lock.Create(t.Context(), record(p.id, 3)); err == nil || lock.Term.MaySpeak(time.Now()) {
		t.Errorf("I4: a Lease that could not be made counts: %v", err)
	}
}

// TestItCountsFromWhenARenewalWasAskedFor covers I4: the answer may take long, and the next leader sees the renewal before.
func TestItCountsFromWhenARenewalWasAskedFor(t *testing.T) {
	p := &path{lease: &lease{}, id: Promise("a"), latency: 30 * time.Millisecond}
	lock := &Lock{Interface: p, Term: &Term{Lease: own}}
	before := time.Now()
	if err := lock.Create(t.Context(), record(p.id, 1)); err != nil {
		t.Fatal(err)
	}
	if lock.Term.renewed.Sub(before) > 20*time.Millisecond {
		t.Errorf("I4: it counts from %s after it was asked for", lock.Term.renewed.Sub(before))
	}
}

// TestOwnRenewalsAreNoTakeover covers I4: what is known of the leader before stays as it is.
func TestOwnRenewalsAreNoTakeover(t *testing.T) {
	l := &lease{version: 1, record: record(Promise("a"), 1)}
	p := &path{lease: l, id: Promise("b")}
	lock := &Lock{Interface: p, Term: &Term{Lease: own}}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	for second := int64(2); second < 5; second++ {
		if err := lock.Update(t.Context(), record(p.id, second)); err != nil {
			t.Fatal(err)
		}
	}
	if lock.Term.former.IsZero() {
		t.Error("it forgot until when the one before answered")
	}
	if err := (&path{lease: l, id: p.id}).Update(t.Context(), record("c", 9)); err == nil {
		t.Error(errors.New("the double takes writes on what was not read"))
	}
}
