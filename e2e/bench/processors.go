// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"github.com/prometheus/procfs"
)

// processors is what the machine's processors have done since it started, in seconds of all of them together.
type processors struct{ all, stolen float64 }

func readProcessors() (processors, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return processors{}, fmt.Errorf("read the time of the processors: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return processors{}, fmt.Errorf("read the time of the processors: %w", err)
	}
	c := stat.CPUTotal
	// Guests run within User and Nice, where the kernel counts them already.
	all := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
	return processors{all: all, stolen: c.Steal}, nil
}

// stolenUntil is the percentage of the time since then that the host gave to other machines while this one wanted to
// run: in [0, 100], and 0 if no time has passed.
func (p processors) stolenUntil(now processors) float64 {
	if now.all <= p.all {
		return 0
	}
	return math.Round(1000*(now.stolen-p.stolen)/(now.all-p.all)) / 10
}
