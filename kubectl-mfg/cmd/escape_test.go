// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// hostile clears the screen, goes to its corner, and writes there what is not so. It also hides, goes back, and turns the direction.
const hostile = "x\x1b[2J\x1b[HReady\n* rome primary\r\x9b1A\u009b1A\x1b]0;owned\a\b\u202e\x1b[8m"

// TestHostileText: whatever a status, an event or an annotation says, it moves no cursor and makes no line of its own.
func TestHostileText(t *testing.T) {
	for _, args := range []string{
		"status orders -n shop", "status -n shop", "status orders -n shop -o wide", "status orders -n shop -o tree", "list -A", "explain orders -n shop",
		"history orders -n shop", "events orders -n shop", "doctor orders -n shop", "status orders -n shop --color always", "dashboard orders -n shop --once",
		"failover orders -n shop --to frankfurt --dry-run=client", "pause orders -n shop --for 1h --yes", "status orders -n shop -o jsonpath={.activeSite}{.conditions}",
	} {
		for _, operator := range []bool{true, false} {
			f := poisoned(t, operator)
			got := run(t, f, runOptions{width: 100, env: map[string]string{"TERM": "xterm"}}, strings.Fields(args)...)
			shown := got.out + got.errOut
			for _, bad := range []string{"\x1b[2J", "\x1b[H", "\x1b]", "\x1b[8m", "\r", "\a", "\b", "\x9b", "\u009b", "\u202e", "\n* rome primary"} {
				if strings.Contains(shown, bad) {
					t.Errorf("%s: %q came through:\n%q", args, bad, shown)
				}
			}
		}
	}
}

// TestHostileTextForPrograms: what programs read stays as it is, for an escape of ours is no JSON. A watch writes the same.
func TestHostileTextForPrograms(t *testing.T) {
	const all = "a\u007fb\u0085c\u009bd\u202ee"
	formats := []string{" -o json", " -o json -w", " -o jsonpath={..message}", " -o yaml"}
	for _, args := range []string{"status orders -n shop", "list -A"} {
		for _, format := range formats {
			f := poisoned(t, true)
			for i := range f.live.Groups {
				f.live.Groups[i].Message = all
			}
			for i := range f.groups[0].Status.Conditions {
				f.groups[0].Status.Conditions[i].Message = all
			}
			once := func(context.Context, time.Duration) bool { return false }
			got := run(t, f, runOptions{wait: once}, strings.Fields(args+format)...)
			text := got.out
			if read := map[string]func([]byte, any) error{" -o json": json.Unmarshal, " -o json -w": json.Unmarshal, " -o yaml": readYAML}[format]; read != nil {
				var parsed any
				if err := read([]byte(text), &parsed); err != nil {
					t.Errorf("%s%s: %v\n%q", args, format, err, text)
				}
				text = fmt.Sprint(parsed)
			}
			if !strings.Contains(text, all) {
				t.Errorf("%s%s lost the message:\n%q", args, format, text)
			}
			// A terminal is steered by it all the same.
			got = run(t, f, runOptions{wait: once, width: 100}, strings.Fields(args+format)...)
			if strings.ContainsAny(got.out, "\u009b\u0085\u202e") {
				t.Errorf("%s%s: a terminal got %q", args, format, got.out)
			}
		}
	}
}

func readYAML(text []byte, into any) error { return yaml.Unmarshal(text, into) }

// poisoned is a group of which every text is hostile that can be.
func poisoned(t *testing.T, operator bool) *fakeAPI {
	t.Helper()
	f := inspected(t)
	g := &f.groups[0]
	g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: hostile}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: "Cooldown", Message: hostile},
		{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: "Cooldown", Message: hostile}}
	for i := range g.Status.Sites {
		g.Status.Sites[i].Message = hostile
	}
	for i := range g.Status.Failovers {
		g.Status.Failovers[i].Evidence = []string{hostile}
	}
	f.explanation.Message = hostile
	for i := range f.explanation.Rules {
		f.explanation.Rules[i].Input, f.explanation.Rules[i].Name = hostile, hostile
	}
	for i := range f.live.Groups {
		f.live.Groups[i].Message = hostile
	}
	if !operator {
		f.live = nil
	}
	f.objects["/api/v1/namespaces/shop/events"] = corev1.EventList{Items: []corev1.Event{{
		ObjectMeta: metav1.ObjectMeta{Name: "e", UID: types.UID("e")}, InvolvedObject: corev1.ObjectReference{Kind: "MysqlFailoverGroup", Name: "orders"},
		Type: "Warning", Reason: hostile, Message: hostile, LastTimestamp: metav1.NewTime(noon),
	}}}
	return f
}
