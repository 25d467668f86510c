// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// trust is how old the screen is, in words.
func (m Model) trust() line {
	quiet, stale := m.stale()
	resource := "no custom resource"
	if m.objects {
		resource = "custom resource " + seconds(m.resourceAge())
	}
	switch {
	case m.heardAt.IsZero() && m.link.Error != "" && m.objectErr != "":
		return line{{s: "NO OPERATOR, " + resource, st: bad}}
	case m.fallen && m.objectErr != "":
		return line{{s: fmt.Sprintf("STALE for %s, %s", seconds(quiet), resource), st: bad}}
	case m.heardAt.IsZero() && m.link.Error != "":
		return line{{s: "NO OPERATOR, custom resource only", st: warn}}
	case m.heardAt.IsZero():
		return line{{s: "connecting", st: warn}}
	case m.fallen:
		return line{{s: fmt.Sprintf("STALE for %s, custom resource only", seconds(quiet)), st: bad}}
	case stale:
		return line{{s: fmt.Sprintf("STALE for %s", seconds(quiet)), st: bad}}
	}
	return line{{s: "live", st: good}}
}

// resourceAge is how long ago the custom resources were last heard of: without an error nothing of them has changed since.
func (m Model) resourceAge() time.Duration { return max(0, m.now.Sub(m.objectsAt)) }

// isBlind is true while neither the operator nor the API server says anything.
func (m Model) isBlind() bool { return m.objectErr != "" && (m.fallen || m.heardAt.IsZero()) }

func seconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return duration.HumanDuration(d)
}
