// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// What is watched.
const (
	kindGoroutines  = "goroutines"
	kindMemory      = "memory MiB"
	kindFiles       = "open files"
	kindConnections = "MySQL connections of operator, sidecars and replication"
)

// takeProcess takes the figures of a process out of its metrics.
func takeProcess(held map[string]float64, who, metrics string) error {
	for _, m := range []struct {
		kind, series string
		per          float64
	}{
		{kindGoroutines, "go_goroutines", 1}, {kindMemory, "process_resident_memory_bytes", 1 << 20}, {kindFiles, "process_open_fds", 1},
	} {
		value, ok := series(metrics, m.series)
		if !ok {
			return fmt.Errorf("the metrics of %s have no %s", who, m.series)
		}
		held[who+" "+m.kind] = round(value / m.per)
	}
	return nil
}

func kindOf(name string) string {
	for _, kind := range []string{kindGoroutines, kindMemory, kindFiles, kindConnections} {
		if strings.HasSuffix(name, kind) {
			return kind
		}
	}
	return ""
}

// series finds the value of a series without labels in the text that Prometheus reads.
func series(metrics, name string) (float64, bool) {
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(line, name+" ")
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		return value, err == nil
	}
	return 0, false
}

// countConnections counts the connections of the project's own accounts to a site.
func countConnections(ctx context.Context, g *stage.Group, site string) (float64, error) {
	out, err := g.RootSQL(ctx, site, `SELECT COUNT(*) FROM performance_schema.processlist WHERE USER LIKE 'mfg\_%'`)
	if err != nil {
		return 0, fmt.Errorf("count connections of %s: %w", site, err)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		return 0, fmt.Errorf("count connections of %s: %w", site, err)
	}
	return n, nil
}
