// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// check prints what follows from journals, for people who look into a test that failed.
func check(out io.Writer, args []string) error {
	f := flag.NewFlagSet("writer check", flag.ContinueOnError)
	order := f.String("order", "", "the active sites in their order, by commas; empty: no site may come back")
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	var journals []journal.Journal
	for _, path := range f.Args() {
		j, err := journal.ReadFile(path)
		if err != nil {
			return err
		}
		journals = append(journals, j)
		fmt.Fprintf(out, "%s: %d acknowledged, %d unknown, refused %v, whole %t\n",
			j.Writer, len(j.Commits), len(j.Unknown), j.Refused, j.Complete)
	}
	commits := journal.Commits(journals...)
	for _, p := range journal.Periods(commits) {
		fmt.Fprintf(out, "%-12s %6d commits, %s to %s\n", p.Site, p.Commits, p.FirstAck, p.LastAck)
	}
	for _, c := range journal.FenceMargins(commits) {
		fmt.Fprintf(out, "%s -> %s: nobody accepted commits for %s\n", c.From, c.To, c.Margin)
	}
	var turns []string
	if *order != "" {
		turns = strings.Split(*order, ",")
	}
	overlaps := journal.Overlaps(commits, turns)
	for _, o := range overlaps {
		fmt.Fprintln(out, o)
	}
	if len(overlaps) > 0 {
		return fmt.Errorf("two sites accepted commits at the same time, %d times", len(overlaps))
	}
	return nil
}
