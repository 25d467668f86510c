// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// placeholder is how the operator writes a group in commands for people: what decides does not know its name. Only commands are
// looked at, because what MySQL says may have the word GROUP too.
var placeholder = regexp.MustCompile(`(kubectl mfg(?: [a-z-]+)+) GROUP\b`)

// named makes the commands in the operator's words those for this very group.
func named(words *string, namespace, group string) {
	*words = placeholder.ReplaceAllString(*words, "${1} "+group+" -n "+namespace)
}

// NameCommands does so wherever an explanation has words.
func NameCommands(e *wire.Explanation, namespace, group string) {
	if e == nil {
		return
	}
	all := []*string{&e.Message}
	for i := range e.Rules {
		all = append(all, &e.Rules[i].Input, &e.Rules[i].Remedy)
	}
	for i := range e.Candidates {
		c := &e.Candidates[i]
		all = append(all, &c.Unfit, &c.Because, &c.PlannedMessage)
	}
	if e.Loss != nil {
		all = append(all, &e.Loss.Message)
	}
	for _, words := range all {
		named(words, namespace, group)
	}
}

// NameLive does so in what the operator says of a group right now.
func NameLive(g *wire.GroupStatus) {
	all := []*string{&g.Message}
	if g.Forecast != nil {
		all = append(all, &g.Forecast.Message)
	}
	for i := range g.Sites {
		all = append(all, &g.Sites[i].Message)
	}
	for _, words := range all {
		named(words, g.Namespace, g.Group)
	}
}

// NameStatus does so in what it wrote into the custom resource.
func NameStatus(g *v1alpha1.MysqlFailoverGroup) {
	all := []*string{}
	for i := range g.Status.Conditions {
		all = append(all, &g.Status.Conditions[i].Message)
	}
	for i := range g.Status.Sites {
		all = append(all, &g.Status.Sites[i].Message)
	}
	if p := g.Status.PlannedFailover; p != nil {
		all = append(all, &p.Message)
	}
	if f := g.Status.Forecast; f != nil {
		all = append(all, &f.Message)
	}
	for i := range g.Status.LastRequests {
		all = append(all, &g.Status.LastRequests[i].Message)
	}
	for _, words := range all {
		named(words, g.Namespace, g.Name)
	}
}
