// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr/pitrtest"
	"github.com/mysql-mfg/mfg/kubectl-mfg/restore"
)

const id = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func to(at string) restore.Op {
	return restore.Op{Namespace: "shop", Group: "orders-2", From: "orders", At: at, Check: true, OperatorNamespace: "mfg-system", Wait: true, Timeout: time.Minute}
}

// TestAt: each form of --at becomes the field that it means, and the backup from which the archive leads there.
func TestAt(t *testing.T) {
	yes, moment := true, v1alpha1.NewMoment(pitrtest.Noon.Add(123456*time.Microsecond))
	for at, want := range map[string]v1alpha1.PointInTime{
		"latest":                              {Latest: &yes},
		"2026-11-25T13:00:00.123456789+01:00": {Time: &moment},
		id + ":7":                             {GTID: id + ":7"},
		"gtid:" + strings.ToUpper(id) + ":7":  {GTID: id + ":7"},
		id + ":nightly:7":                     {GTID: id + ":nightly:7"},
		"before:" + id + ":7":                 {BeforeGTID: id + ":7"},
		"before-failover:3":                   {BeforeFailover: 3},
	} {
		t.Run(at, func(t *testing.T) {
			c := pitrtest.New(t, wire.InspectLine{Timeline: pitrtest.Timeline()}, wire.InspectLine{Check: &wire.TargetCheck{Backup: "orders-nightly-1", Files: 3, Bytes: 4096}}, pitrtest.End())
			op := to(at)
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			var out pitrtest.Output
			if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil {
				t.Fatal(err)
			}
			init := c.Made.Spec.InitFromBackup
			if diff := cmp.Diff(&want, init.PointInTime); diff != "" || init.Backup != "orders-nightly-1" || init.Profile != "nightly" {
				t.Errorf("%+v (-want +got):\n%s", init, diff)
			}
			if !strings.Contains(out.Out.String(), "pointInTime:") || !strings.Contains(out.Err.String(), "orders-nightly-1: the newest from which the archive leads there") {
				t.Errorf("%s\n%s", out.Out.String(), out.Err.String())
			}
			if diff := cmp.Diff(pitrtest.PullSecrets, c.Pod.Spec.ImagePullSecrets); diff != "" {
				t.Errorf("a private registry refuses the image (-want +got):\n%s", diff)
			}
			if c.Asked.Timeline.Target == nil || c.Asked.Identity != "" {
				t.Errorf("%+v", c.Asked)
			}
		})
	}
}

func TestAtUsage(t *testing.T) {
	for _, at := range []string{"yesterday", "2026-11-25 12:00:00", "before:", "before:" + id, "before:" + id + ":1-7", "before-failover:1", "before-failover:x", "gtid:x", id + ":0", id + ":1," + id + ":2", "latest:"} {
		op := to(at)
		if err := op.Validate(); err == nil || !strings.Contains(err.Error(), "--at") {
			t.Errorf("%q: %v", at, err)
		}
	}
}

// TestAtRefused: a point that cannot be reached is refused before anything is made, with what is in the way and what to do.
func TestAtRefused(t *testing.T) {
	gap := pitrtest.Timeline().Gaps[0]
	for name, tc := range map[string]struct {
		check wire.TargetCheck
		says  []string
	}{
		"Gap": {wire.TargetCheck{Refusal: "InGap", Message: "it lies in a gap", Gap: &gap},
			[]string{"it lies in a gap", "the gap: 7 transactions (" + id + ":95000-95006), after 2026-11-25T11:30:00Z", "--at 2026-11-25T11:30:00Z", "or one that a backup after it leads to: after 2026-11-25T11:32:00Z", "kubectl mfg backup timeline orders -n shop"}},
		"Later":    {wire.TargetCheck{Refusal: "BeyondLatest", Message: "it is later than the archive"}, []string{"what can be reached is from 2026-11-25T09:10:00Z to 2026-11-25T11:59:52.876544Z"}},
		"NoBackup": {wire.TargetCheck{Refusal: "NoBackup", Message: "there is no backup"}, []string{"there is no backup"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := pitrtest.New(t, wire.InspectLine{Timeline: pitrtest.Timeline()}, wire.InspectLine{Check: &tc.check}, pitrtest.End())
			op := to("latest")
			op.Apply = true
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			var out pitrtest.Output
			_, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c)
			var own *cli.Error
			if !errors.As(err, &own) || own.Code != cli.ExitRefused || string(own.Reason) != tc.check.Refusal || c.Made != nil {
				t.Fatalf("%v, made %v", err, c.Made)
			}
			for _, want := range tc.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q: %v", want, err)
				}
			}
		})
	}
}

// TestAtWithoutLooking: where nobody may make pods, the operator is left to check.
func TestAtWithoutLooking(t *testing.T) {
	c := pitrtest.New(t)
	op := to("latest")
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	var out pitrtest.Output
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err == nil || !strings.Contains(err.Error(), "--check=false") || c.Made != nil {
		t.Errorf("%v", err)
	}
	op.Check = false
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil || c.Made.Spec.InitFromBackup.Backup != "" || !strings.Contains(out.Err.String(), "was not checked") {
		t.Errorf("%v: %s", err, out.Err.String())
	}
	c.Origin.Spec.Backup.PITR = nil
	op = to("latest")
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err == nil || !strings.Contains(err.Error(), "has no archive") {
		t.Errorf("%v", err)
	}
}

// A missing Secret is named before a pod is made to look into the archive: that pod would not start, and would not say why.
func TestAtWithoutASecret(t *testing.T) {
	for _, name := range []string{"keys", "ca", "identity"} {
		c := pitrtest.New(t)
		if err := c.Fake.CoreV1().Secrets("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		op := to("latest")
		if err := op.Validate(); err != nil {
			t.Fatal(err)
		}
		var out pitrtest.Output
		_, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c)
		var own *cli.Error
		if !errors.As(err, &own) || own.Code != cli.ExitRefused || !strings.Contains(err.Error(), "there is no Secret "+name) || c.Pod != nil {
			t.Errorf("without Secret %s: %v, pod %v", name, err, c.Pod)
		}
	}
}
