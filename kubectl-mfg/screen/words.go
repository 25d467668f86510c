// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// How times and numbers read.

const (
	none    = "-"
	unknown = "?"
)

// ago returns the age of a time in at most two units. A clock that runs behind the cluster's shows 0s, not a negative age.
func (o Options) ago(t time.Time) string { return duration.HumanDuration(max(0, o.Now.Sub(t))) }

func arrow(from, to string) string {
	if from == "" {
		return "to " + to
	}
	return from + " -> " + to
}

func millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	return fmt.Sprintf("%.1fs", float64(ms)/1000)
}

func seconds(s *float64) string {
	if s == nil {
		return unknown
	}
	return duration.HumanDuration(time.Duration(*s * float64(time.Second)))
}

func count(n *int64) string {
	if n == nil {
		return unknown
	}
	return strconv.FormatInt(*n, 10)
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func lower(s string) string { return strings.ToLower(s) }
