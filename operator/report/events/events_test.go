// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

var promoted = events.Normal(v1alpha1.ReasonPromoted, "Promote")

type sink struct{ note, reason, action string }

func (s *sink) Eventf(_, _ runtime.Object, _, reason, action, note string, args ...any) {
	s.reason, s.action, s.note = reason, action, note
	if len(args) == 1 {
		s.note, _ = args[0].(string)
	}
}

func TestEmit(t *testing.T) {
	var none *events.Recorder
	none.Emit(&corev1.Pod{}, nil, promoted, "a recorder that is nil drops events")

	s := &sink{}
	events.NewRecorder(s).Emit(&corev1.Pod{}, nil, promoted, "100%% of %s", strings.Repeat("x", 2000))
	if s.reason != "Promoted" || s.action != "Promote" {
		t.Errorf("emitted %s/%s", s.reason, s.action)
	}
	if len(s.note) != 1024 || !strings.HasPrefix(s.note, "100% of x") {
		t.Errorf("note has %d bytes: %.20s", len(s.note), s.note)
	}
}
