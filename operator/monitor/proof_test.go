// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// answering is a Pusher that answers what it is told to, knowing the challenge.
type answering func(challenge string) wire.Answer

func (a answering) PushActiveSite(_ context.Context, _ string, push wire.ActiveSite) (wire.Answer, error) {
	return a(push.Challenge), nil
}

// secretKeys is an Access that has keys for reports, and counts who reads them.
type secretKeys struct {
	Access
	key  []byte
	read int
	err  error
}

func (k *secretKeys) ReportKey(context.Context, *v1alpha1.MysqlFailoverGroup, string) ([]byte, error) {
	k.read++
	return k.key, k.err
}

// started is a pod, with the key for its reports unless it was begun by an operator of the version before.
func started(withKey bool) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	c := corev1.Container{Name: v1alpha1.ContainerSidecar, RestartPolicy: &always}
	if withKey {
		c.Env = []corev1.EnvVar{{Name: v1alpha1.EnvReportKey, Value: "/etc/mfg-report/key"}}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1"}, Spec: corev1.PodSpec{InitContainers: []corev1.Container{c}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
}

// TestAReportIsProofOnlyWithTheKeyOfItsSiteI12: whoever can answer at the address of a pod, or on the way, could otherwise say that its site is
// fenced, and another one would be opened beside it.
func TestAReportIsProofOnlyWithTheKeyOfItsSiteI12(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, wire.ReportKeyBytes), bytes.Repeat([]byte{2}, wire.ReportKeyBytes)
	r := wire.Report{Site: "east", PodUID: "pod-1", Epoch: 3, Answered: true, SuperReadOnly: true, MysqldRunning: true}
	elsewhere, before := r, r
	elsewhere.Site, before.PodUID = "west", "pod-0"
	signed := func(key []byte, challenge string, r wire.Report) wire.Answer {
		s, err := wire.SignReport(key, challenge, r)
		if err != nil {
			t.Fatal(err)
		}
		return wire.Answer{Signed: s}
	}
	old := ""
	for name, c := range map[string]struct {
		withKey bool
		answer  func(challenge string) wire.Answer
		want    bool
	}{
		"authenticated":                            {true, func(c string) wire.Answer { return signed(key, c, r) }, true},
		"with another key":                         {true, func(c string) wire.Answer { return signed(other, c, r) }, false},
		"the answer to an earlier push":            {true, func(c string) wire.Answer { defer func() { old = c }(); return signed(key, old+"x", r) }, false},
		"of another site, with its key":            {true, func(c string) wire.Answer { return signed(key, c, elsewhere) }, false},
		"of an earlier pod of the site":            {true, func(c string) wire.Answer { return signed(key, c, before) }, false},
		"not authenticated":                        {true, func(string) wire.Answer { return wire.Answer{Report: r} }, false},
		"beside one that is not its":               {true, func(c string) wire.Answer { return wire.Answer{Report: r, Signed: signed(other, c, r).Signed} }, false},
		"of a pod of the version before":           {false, func(c string) wire.Answer { return map[bool]wire.Answer{true: {Report: r}}[c == ""] }, true},
		"of such a pod, which is another one":      {false, func(string) wire.Answer { return wire.Answer{Report: before} }, false},
		"of such a pod, as if it had got a key up": {false, func(c string) wire.Answer { return signed(key, c+"x", r) }, false},
	} {
		l := testLoop(t, answering(c.answer), nil)
		l.m.Access = &secretKeys{key: key}
		for range 2 {
			got := l.client.push(t.Context(), nil, asking{started(c.withKey), "east", ""})
			if got.Answered != c.want || got.Report.FencedUnder(3) != c.want {
				t.Errorf("I12: a report %s counts %t, want %t", name, got.Answered, c.want)
			}
		}
	}
}

// TestAForgedReportIsTold: to the decision such a site is silent, and a person must be told why.
func TestAForgedReportIsTold(t *testing.T) {
	other := func(c string) wire.Answer {
		s, err := wire.SignReport(bytes.Repeat([]byte{2}, wire.ReportKeyBytes), c, wire.Report{Site: "east", PodUID: "pod-1"})
		if err != nil {
			t.Fatal(err)
		}
		return wire.Answer{Signed: s}
	}
	for want, answer := range map[string]answering{
		"does not authenticate its reports":                    func(string) wire.Answer { return wire.Answer{} },
		"authenticates its reports with another key than that": other,
	} {
		l := testLoop(t, answer, nil)
		l.m.Access = &secretKeys{key: bytes.Repeat([]byte{1}, wire.ReportKeyBytes)}
		l.client.push(t.Context(), nil, asking{started(true), "east", ""})
		views := []failover.View{{Name: "east"}}
		if l.client.tellRefusals(views); !strings.Contains(views[0].Message, want) {
			t.Errorf("message %q", views[0].Message)
		}
	}
}

// TestKeysForReportsAreReadOnce: with a thousand groups they would be most of what is asked of the API server. A Secret that was made again is
// noticed all the same, and one that cannot be read authenticates nobody.
func TestKeysForReportsAreReadOnce(t *testing.T) {
	now := bytes.Repeat([]byte{1}, wire.ReportKeyBytes)
	l := testLoop(t, answering(func(c string) wire.Answer {
		s, err := wire.SignReport(now, c, wire.Report{Site: "east", PodUID: "pod-1"})
		if err != nil {
			t.Fatal(err)
		}
		return wire.Answer{Signed: s}
	}), nil)
	keys := &secretKeys{key: now}
	l.m.Access = keys
	ask := func() bool { return l.client.push(t.Context(), nil, asking{started(true), "east", ""}).Answered }
	for range 5 {
		if !ask() {
			t.Fatal("it is not heard")
		}
	}
	if keys.read != 1 {
		t.Errorf("the key was read %d times", keys.read)
	}
	now = bytes.Repeat([]byte{2}, wire.ReportKeyBytes)
	if ask() {
		t.Error("I12: a key that is not the site's is taken")
	}
	if keys.key = now; !ask() {
		t.Error("the new key is not noticed")
	}
	now, keys.err = bytes.Repeat([]byte{3}, wire.ReportKeyBytes), errors.New("away")
	keys.key = now
	if ask() {
		t.Error("I12: without a key to compare with a report counts")
	}
}
