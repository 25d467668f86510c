// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// Answer is the answer to a question about one group.
type Answer struct {
	Namespace, Group string
	Events           []report.Event
	// Why is what the operator says about its decision, as a page; Deciding is the rule that decides.
	Why      string
	Deciding *wire.ExplainedRule
	// Figures are what the sidecars of its sites say.
	Figures []gauge.Reading
	Error   string
}

// Named returns an empty answer about a group.
func Named(namespace, group string) Answer { return Answer{Namespace: namespace, Group: group} }

func (h Answer) name() string { return feed.NameOf(h.Namespace, h.Group) }
