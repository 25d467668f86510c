// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// check prints what follows from journals, for people who look into a test that failed.
func check(out io.Writer, args []string) error {
	f := flag.NewFlagSet("writer check", flag.ContinueOnError)
	order := f.String("order", "", "the active sites in their order, by commas; empty: no site may come back")
	logs := siteDirs{}
	f.Var(logs, "binlogs", "SITE=DIRECTORY with the site's binary logs, for the check by the servers' own timestamps; may be given for every site")
	since := f.Duration("since", 0, "only transactions of the last time, as 10m; 0: all that the logs hold")
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
	acked := journal.Commits(journals...)
	for _, p := range journal.Periods(acked) {
		fmt.Fprintf(out, "%-12s %6d commits, %s to %s\n", p.Site, p.Commits, p.FirstAck, p.LastAck)
	}
	for _, c := range journal.FenceMargins(acked) {
		fmt.Fprintf(out, "%s -> %s: nobody accepted commits for %s\n", c.From, c.To, c.Margin)
	}
	var turns []string
	if *order != "" {
		turns = strings.Split(*order, ",")
	}
	overlaps := journal.Overlaps(acked, turns)
	for _, o := range overlaps {
		fmt.Fprintln(out, o)
	}
	served, err := checkLogs(out, logs, *since, turns)
	if err != nil {
		return err
	}
	if len(overlaps)+served > 0 {
		return fmt.Errorf("two sites accepted commits at the same time, %d times by what was acknowledged, %d times by the servers' timestamps",
			len(overlaps), served)
	}
	return nil
}

// siteDirs are where the binary logs of sites lie.
type siteDirs map[string]string

func (d siteDirs) String() string { return "" }

// Set takes SITE=DIRECTORY.
func (d siteDirs) Set(text string) error {
	site, dir, ok := strings.Cut(text, "=")
	if !ok || site == "" || dir == "" {
		return fmt.Errorf("%q is not SITE=DIRECTORY", text)
	}
	d[site] = dir
	return nil
}

// checkLogs judges by the binary logs and tells how often two sites committed at once.
func checkLogs(out io.Writer, logs siteDirs, since time.Duration, order []string) (int, error) {
	if len(logs) == 0 {
		return 0, nil
	}
	var all []commits.Transaction
	for site, dir := range logs {
		got, err := commits.ReadDir(dir, site)
		if err != nil {
			return 0, fmt.Errorf("binary logs of %s: %w", site, err)
		}
		all = append(all, got...)
	}
	if since > 0 {
		all = commits.Since(all, time.Now().Add(-since))
	}
	handovers := commits.Handovers(all)
	if order == nil {
		order = commits.FirstTurns(all)
	}
	fmt.Fprintf(out, "by the servers: %d transactions, sites %v\n", len(all), order)
	for _, h := range handovers {
		fmt.Fprintf(out, "%s -> %s: by the servers nobody committed for %s\n", h.From, h.To, h.Margin)
	}
	var turns []commits.Turn
	for _, site := range order {
		turns = append(turns, commits.Turn{Site: site})
	}
	overlaps := commits.Overlaps(all, turns)
	for _, o := range overlaps {
		fmt.Fprintln(out, o)
	}
	return len(overlaps), nil
}
