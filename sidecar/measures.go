// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/mysql-mfg/mfg/sidecar/measure"
)

// watchMeasures makes the agent that reads mysqld and its volume for scrapes, on a connection of its own. The caller sets its Answers.
func watchMeasures(s settings, log *slog.Logger) (*measure.Agent, func(), error) {
	db, err := openMySQL(s, "mfg sidecar (metrics)")
	if err != nil {
		return nil, nil, err
	}
	return &measure.Agent{MySQL: db, Volume: func() (measure.Use, error) { return measure.Look(s.datadir) }, Log: log}, func() { _ = db.Close() }, nil
}
