// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// rotatingPasswords is how long a replacement of passwords may take: mostly what kubelets take to bring a Secret.
const rotatingPasswords = 6 * time.Minute

// accountsSecret is what the Secret with the operator's passwords holds.
func accountsSecret(t *testing.T, g *stage.Group) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := g.Kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.AccountsSecret(name)}, secret); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out
}

// Every password of the operator's accounts is replaced under load, and the role moves by plan while both are valid: nothing is lost,
// clients meet no more than the failover, and in the end every site takes the new ones alone.
func TestPasswordsAreReplacedAcrossAFailover(t *testing.T) {
	g, before := whole(t)
	to := otherCandidate(t, before)
	former := accountsSecret(t, g)
	w := witnesses(t, g)
	afterCooldown(t)

	began := time.Now().Truncate(time.Second) // an earlier replacement has its answer too
	plugin(t, "rotate-passwords", name, "--yes", "--wait=false").want(t, 0, nil)
	if _, err := g.Await(t.Context(), rotatingPasswords, "everybody to change to the new passwords", func(group *v1alpha1.MysqlFailoverGroup) error {
		if p := group.Status.Passwords; p == nil || p.Phase != v1alpha1.PasswordsSwitching {
			return fmt.Errorf("status.passwords %+v", p)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	at := load.Now()
	// A replica reconnects to use the new password. An order that comes in that moment is refused, because its target does not replicate yet.
	m, _ := movedByPlugin(t, g, to)
	if m.Outcome != "Succeeded" || m.LostTransactions == nil || *m.LostTransactions != 0 {
		t.Errorf("the role did not move as planned: %+v", m)
	}
	_, err := g.Await(t.Context(), rotatingPasswords, "the passwords to be replaced", func(group *v1alpha1.MysqlFailoverGroup) error {
		if last := group.Status.LastRequest(v1alpha1.RequestRotatePasswords); last == nil || last.Target != "all" || last.Outcome != v1alpha1.RequestDone {
			return fmt.Errorf("the last answer is %+v, status.passwords %+v", last, group.Status.Passwords)
		}
		// The order is answered a moment before the former passwords leave the Secret: after a crash in between it is not answered twice.
		if p := group.Status.Passwords; p == nil || p.FinishedAt == nil || p.FinishedAt.Time.Before(began) {
			return fmt.Errorf("status.passwords %+v", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := judge(t, w, at)
	if len(v.Missing) > 0 || v.Lost > 0 || v.To != to || len(carriedOut(t, v.Records)) != 1 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost; the role is with %s, want %s; records %+v", len(v.Missing), v.Lost, v.To, to, v.Records)
	}
	if v.Pause.Length() > tooLong {
		t.Errorf("clients waited %s", v.Pause.Length())
	}
	now := accountsSecret(t, g)
	for _, account := range []string{"operator", "replication", "sidecar", "clone"} {
		if now[account] == former[account] || now[account] != now[account+"-known"] || now[account+"-next"]+now[account+"-previous"] != "" {
			t.Errorf("the password of %s was not replaced, or not to its end: keys %v", account, slices.Sorted(maps.Keys(now)))
		}
	}
	for _, site := range stage.Sites {
		if left := query(t, g, site, "SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'mfg%' AND user_attributes->'$.additional_password' IS NOT NULL"); left != "0" {
			t.Errorf("on %s %s accounts take two passwords still", site, left)
		}
	}
	checkEvent(t, g, "PasswordsRotated", "")
	events, err := g.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range events {
		for _, secret := range now {
			if len(secret) > 8 && strings.Contains(line, secret) {
				t.Error("an event shows a password")
			}
		}
	}

	// A pod that starts now, and one that ran all the while: both log in.
	pod, err := g.Pod(t.Context(), before.Status.ActiveSite)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), comeBack, "the deleted pod to be replaced", func(*v1alpha1.MysqlFailoverGroup) error {
		again, err := g.Pod(t.Context(), before.Status.ActiveSite)
		if err == nil && again.UID == pod.UID {
			err = fmt.Errorf("it is still there")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
}
