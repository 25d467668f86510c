// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/internal/clock"
	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// connection says when the operator and the API server were last heard of, and so how far to trust the screen.
type connection struct {
	now       time.Time
	link      feed.Link
	heardAt   time.Time     // this machine's clock at the last message; zero before the first
	skew      time.Duration // this machine's clock minus the operator's
	fellBack  bool          // back on the custom resource
	objects   bool          // the custom resources were read
	objectsAt time.Time     // when they were last heard of, by this machine's clock
	objectErr string        // why they cannot be read now
}

// stale says how long the operator has been silent; false while the stream is well.
func (c connection) stale() (time.Duration, bool) {
	if c.heardAt.IsZero() {
		return 0, false
	}
	quiet := clock.Elapsed(c.heardAt, c.now)
	return max(0, quiet), !c.link.Up || quiet > quietAfter
}

// clock returns the operator's clock, as far as known, which countdowns use.
func (c connection) clock() time.Time { return c.now.Add(-c.skew) }

func (c connection) missing() string {
	if c.link.Error != "" {
		return c.link.Error
	}
	return "not connected yet"
}

// trust is how old the screen is, in words.
func (c connection) trust() canvas.Line {
	quiet, stale := c.stale()
	resource := "no custom resource"
	if c.objects {
		resource = "custom resource " + paint.Seconds(c.resourceAge())
	}
	switch {
	case c.heardAt.IsZero() && c.link.Error != "" && c.objectErr != "":
		return canvas.Line{{Text: "NO OPERATOR, " + resource, Style: canvas.Bad}}
	case c.fellBack && c.objectErr != "":
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s, %s", paint.Seconds(quiet), resource), Style: canvas.Bad}}
	case c.heardAt.IsZero() && c.link.Error != "":
		return canvas.Line{{Text: "NO OPERATOR, custom resource only", Style: canvas.Warn}}
	case c.heardAt.IsZero():
		return canvas.Line{{Text: "connecting", Style: canvas.Warn}}
	case c.fellBack:
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s, custom resource only", paint.Seconds(quiet)), Style: canvas.Bad}}
	case stale:
		return canvas.Line{{Text: fmt.Sprintf("STALE for %s", paint.Seconds(quiet)), Style: canvas.Bad}}
	}
	return canvas.Line{{Text: "live", Style: canvas.Good}}
}

// resourceAge is how long ago the custom resources were last heard of: without an error they have not changed since.
func (c connection) resourceAge() time.Duration { return max(0, clock.Elapsed(c.objectsAt, c.now)) }

// isBlind is true while neither the operator nor the API server says anything.
func (c connection) isBlind() bool { return c.objectErr != "" && (c.fellBack || c.heardAt.IsZero()) }
