// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

func TestSessionsOfAScenarioAreJudged(t *testing.T) {
	ack := func(site string, start, at time.Duration) journal.Commit {
		return journal.Commit{Server: journal.Server{Site: site}, Start: start, Ack: at}
	}
	lost := journal.Journal{Commits: []journal.Commit{ack("a", 1, 2)}, Lost: []journal.Loss{{Key: journal.Key{Seq: 1}, At: 5}}}
	two := journal.Journal{Commits: []journal.Commit{ack("a", 1, 2), ack("b", 1, 3), ack("a", 2, 4)}}
	for name, c := range map[string]struct {
		of   CacheCase
		from time.Duration
		saw  journal.Journal
		fine bool
	}{
		"lost, and may be":         {CacheCase{}, 0, lost, true},
		"lost, and must not be":    {CacheCase{Keeps: true}, 0, lost, false},
		"lost before it mattered":  {CacheCase{}, 6, lost, true},
		"lost when it mattered":    {CacheCase{}, 5, lost, false},
		"two masters":              {CacheCase{}, 0, two, false},
		"two masters, as expected": {CacheCase{TwoMasters: true}, 0, two, true},
		"nothing happened":         {CacheCase{Keeps: true}, 0, journal.Journal{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.of.judge(c.saw, c.from, t.Logf); (err == nil) != c.fine {
				t.Errorf("judged: %v", err)
			}
		})
	}
}

func TestCacheScenariosAreAtLeastTen(t *testing.T) {
	if n := len(cacheScenarios); n < 10 {
		t.Errorf("there are %d", n)
	}
	for _, sc := range cacheScenarios {
		if sc.Cache == nil || sc.Apart {
			t.Errorf("%s has no cache, or a group whose cache nobody turns on", sc.Name)
		}
	}
}
