// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mysql-mfg/mfg/operator/tracing"
)

// addTraces adds what sends traces of failovers, if a collector is named.
func addTraces(mgr ctrl.Manager, s settings, log *slog.Logger) error {
	if s.tracing == "" {
		return nil
	}
	exporter, err := tracing.New(tracing.Options{Endpoint: s.tracing, Version: version(), Cache: mgr.GetCache(), Log: log})
	if err != nil {
		return fmt.Errorf("--tracing-endpoint: %w", err)
	}
	return mgr.Add(exporter)
}
