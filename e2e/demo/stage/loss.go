// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// CheckKeptLoss compares what the group's records say was lost with the binary logs that were kept of all sites. CheckLoss asks the old active
// site for its rows; one that was cloned since has none of them any more, and its logs are all that is left of what it committed. What the
// active site has executed by now was not lost: a clone may have brought it, which leaves nothing in logs.
func (v Verdict) CheckKeptLoss(t Testimony) error {
	if t.Unread != "" {
		return fmt.Errorf("nothing tells what was lost: the binary logs cannot be read, because %s", t.Unread)
	}
	lost, said := map[string]gtid.Set{}, map[string]int64{}
	for _, r := range v.Records {
		if r.From == "" || r.From == r.To {
			continue
		}
		// What it committed in a later turn may still be on its way to the others.
		had, err := committed(t.Logs, r.From, r.OpenedAt.Time)
		if err != nil {
			return err
		}
		has, err := held(t.Logs, r.To)
		if err != nil {
			return err
		}
		lost[r.From] = lost[r.From].Union(had.Subtract(has).Subtract(v.Held))
		said[r.From] += r.LostTransactions
		if !r.LossExact && !lost[r.From].IsEmpty() {
			return fmt.Errorf("%s lost %d transactions, and the record of epoch %d is not exact yet", r.From, lost[r.From].Count(), r.Epoch)
		}
	}
	var errs []error
	for site, set := range lost {
		if set.Count() != said[site] {
			errs = append(errs, fmt.Errorf("status.failovers says %d transactions of %s were lost, its binary logs %d: %s", said[site], site, set.Count(), set))
		}
	}
	missing := map[string]int64{}
	for _, c := range v.Missing {
		missing[c.Site]++
	}
	for site, n := range missing {
		if lost := lost[site]; n > lost.Count() {
			errs = append(errs, fmt.Errorf("%d rows that %s acknowledged are missing, and a failover lost %d of its transactions", n, site, lost.Count()))
		}
	}
	return errors.Join(errs...)
}

// committed are the transactions that clients of a site committed until a moment.
func committed(all []commits.Transaction, site string, until time.Time) (gtid.Set, error) {
	return setOf(all, func(t commits.Transaction) bool { return t.Site == site && t.Own() && !t.At.After(until) })
}

// held are all transactions in the logs of a site, no matter which site committed them first.
func held(all []commits.Transaction, site string) (gtid.Set, error) {
	return setOf(all, func(t commits.Transaction) bool { return t.Site == site })
}

func setOf(all []commits.Transaction, of func(commits.Transaction) bool) (gtid.Set, error) {
	var names []string
	for _, t := range all {
		if of(t) {
			names = append(names, t.GTID)
		}
	}
	set, err := gtid.Parse(strings.Join(names, ","))
	if err != nil {
		return gtid.Set{}, fmt.Errorf("read what binary logs hold: %w", err)
	}
	return set, nil
}
