// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Resolve makes a route exact: it reads the files in which the stop may be. It replaces a time by the GTID of the first transaction that was
// committed later; then the sets of the last step, and Reaches, are exact.
func (a *Archive) Resolve(ctx context.Context, r Route, ids bucket.Identities) (Route, error) {
	if r.Stop == (Stop{}) {
		return r, nil
	}
	var at gtid.Set
	if r.Stop.GTID != "" {
		var err error
		if at, err = gtid.Parse(r.Stop.GTID); err != nil {
			return Route{}, err
		}
	}
	for i, step := range r.Steps {
		if at.IsEmpty() && !step.Last().After(r.Stop.Time) || !at.IsEmpty() && !step.Set.Contains(at) {
			continue
		}
		before, found, err := a.firstBeyond(ctx, step, r.Stop, at, ids)
		if err != nil {
			return Route{}, err
		}
		if !found.IsEmpty() {
			return cut(r, i, before, found), nil
		}
	}
	if !at.IsEmpty() {
		return Route{}, refuse(NotInHistory, "the archive does not hold %s where its manifests say so", r.Stop.GTID)
	}
	r.Stop = Stop{}
	return r, nil
}

// firstBeyond finds the transaction at which a step stops, and those to apply before it.
func (a *Archive) firstBeyond(ctx context.Context, step Step, stop Stop, at gtid.Set, ids bucket.Identities) (before, found gtid.Set, err error) {
	in, err := a.Read(ctx, step.Log, ids)
	if err != nil {
		return before, found, err
	}
	var earlier tally
	err = Transactions(in, step.Log, func(t Transaction) error {
		if t.GTID == "" || !step.Apply.Contains(t.ID) {
			return nil
		}
		if at.IsEmpty() && t.Committed.After(stop.Time) || t.ID.Equal(at) {
			found = t.ID
			return ErrDone
		}
		earlier.add(t.GTID)
		return nil
	})
	closed := in.Close()
	if err == nil && found.IsEmpty() {
		err = closed // otherwise the reading ended early on purpose, and Close reports that as an error
	}
	return earlier.sum(), found, err
}

// cut ends a route in its i-th step at the transaction found, which is part of the route if the stop is after it.
func cut(r Route, i int, before, found gtid.Set) Route {
	stop := Stop{GTID: found.String(), After: r.Stop.After}
	if stop.After {
		before = before.Union(found)
	}
	out := Route{Stop: stop, Reaches: r.Reaches}
	for _, late := range r.Steps[i:] {
		out.Reaches = out.Reaches.Subtract(late.Apply)
	}
	out.Reaches = out.Reaches.Union(before)
	out.Steps = append(out.Steps, r.Steps[:i]...)
	if before.IsEmpty() {
		// Nothing in this file is wanted: the route ends with the file before it.
		out.Stop = Stop{}
		return out
	}
	last := r.Steps[i]
	last.Leave = last.Leave.Union(last.Apply.Subtract(before))
	last.Apply = before
	out.Steps = append(out.Steps, last)
	return out
}
