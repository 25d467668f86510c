// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// trust is how old the screen is, in words.
func (m Model) trust() canvas.Line {
	quiet, stale := m.stale()
	resource := "no custom resource"
	if m.objects {
		resource = "custom resource " + seconds(m.resourceAge())
	}
	switch {
	case m.heardAt.IsZero() && m.link.Error != "" && m.objectErr != "":
		return canvas.Line{{Text: "NO OPERATOR, " + resource, Style: canvas.Bad}}
	case m.fallen && m.objectErr != "":
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s, %s", seconds(quiet), resource), Style: canvas.Bad}}
	case m.heardAt.IsZero() && m.link.Error != "":
		return canvas.Line{{Text: "NO OPERATOR, custom resource only", Style: canvas.Warn}}
	case m.heardAt.IsZero():
		return canvas.Line{{Text: "connecting", Style: canvas.Warn}}
	case m.fallen:
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s, custom resource only", seconds(quiet)), Style: canvas.Bad}}
	case stale:
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s", seconds(quiet)), Style: canvas.Bad}}
	}
	return canvas.Line{{Text: "live", Style: canvas.Good}}
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
