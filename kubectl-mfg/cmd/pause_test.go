// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestPauseWithoutOperator: a pause is wanted most before an operator comes back that crashed. Nobody confirms it, and it
// ends by itself.
func TestPauseWithoutOperator(t *testing.T) {
	f := loadHealthy(t)
	f.live = nil
	got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes")...)
	if got.code != exitHealthy || !asked(f, v1alpha1.AnnotationPauseUntil) || !strings.Contains(got.errOut, "Warning") || !strings.Contains(got.out, "no pod is ready") {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, strings.Fields("resume orders -n shop --dry-run=client")...); !strings.Contains(got.out, "is asked for, and no operator says that it holds") {
		t.Errorf("%+v", got)
	}
	got = run(t, f, runOptions{}, strings.Fields("resume orders -n shop --yes")...)
	if got.code != exitHealthy || asked(f, v1alpha1.AnnotationPauseUntil) || !strings.Contains(got.errOut, "Warning") || !strings.Contains(got.out, "no pod is ready") {
		t.Errorf("%+v", got)
	}
}

// TestPauseBesideRequests: a pause collides with nothing that is asked for.
func TestPauseBesideRequests(t *testing.T) {
	for _, a := range requestAnnotations {
		f := loadHealthy(t)
		f.groups[0].Annotations = map[string]string{a.key: "frankfurt"}
		if got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes --wait=false")...); got.code != exitHealthy || !asked(f, v1alpha1.AnnotationPauseUntil) {
			t.Errorf("%s: %+v", a.key, got)
		}
		if got := run(t, f, runOptions{}, strings.Fields("resume orders -n shop --yes --wait=false")...); got.code != exitHealthy || asked(f, v1alpha1.AnnotationPauseUntil) {
			t.Errorf("%s: %+v", a.key, got)
		}
	}
}
