// SPDX-License-Identifier: Apache-2.0

// Package receivers makes the receivers of replicas verify their source, one per pass of the poll loop, while a group changes to TLS.
package receivers

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

const (
	// patience bounds the work of one pass, for all sites together: the next pass must not wait for servers that hang.
	patience = 2 * time.Second
	// pause is how long a site that could not verify its source is left alone: each try stops its receiver for a second.
	pause = 30 * time.Second
)

// Calm is true for a decision that only states which site is active, as every healthy pass does, while the role stays. Only then may a
// receiver stop for a moment.
func Calm(d failover.Decision) bool {
	acts := slices.ContainsFunc(d.Effects, func(e failover.Effect) bool {
		_, says := e.(failover.Select)
		return !says
	})
	return !acts && !d.Hold && d.Status.Transition == nil && (d.Status.Planned == nil || d.Status.Planned.Over())
}

// Verifying remembers which receivers verify their source. The zero value knows of none; the poll loop alone touches it.
type Verifying struct {
	sites map[string]*receiver
}

// receiver is what the loop knows of the receiver of one site.
type receiver struct {
	// pod and source are those of the receiver that was seen to verify; another pod may have another volume.
	pod, source string
	// next is the earliest time of the next try, and tried counts the tries.
	next  time.Time
	tried int
}

// Verified is true if the receiver in that pod was seen to verify that source.
func (v *Verifying) Verified(site, pod, source string) bool {
	r := v.sites[site]
	return r != nil && pod != "" && r.pod == pod && r.source == source
}

// Pass is what one pass of the poll loop builds on.
type Pass struct {
	Snapshot failover.Snapshot
	Decision failover.Decision
	// Source is how to follow the active site.
	Source func(ctx context.Context, active string) (mysql.Source, error)
	// On returns how to do something on the server of a site, in the pod that the snapshot shows.
	On  func(site string) Doer
	Log *slog.Logger
}

// Doer does something on one site.
type Doer func(context.Context, func(context.Context, *mysql.DB) error) error

// Step makes one more receiver verify its source. It runs between two decisions of the poll loop, so that it never starts a receiver that a
// drain has stopped, and only while the loop has nothing else to do.
func (v *Verifying) Step(ctx context.Context, p Pass) {
	active := p.Decision.Status.ActiveSite
	lacking := v.lacking(p.Snapshot, active)
	if !Calm(p.Decision) || len(lacking) == 0 {
		return
	}
	source, err := p.Source(ctx, active)
	if err != nil || !source.TLS {
		p.Log.Debug("how to verify the active site", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, site := range lacking {
		if ctx.Err() != nil {
			return
		}
		r := v.sites[site.Name]
		r.tried++
		err := p.On(site.Name)(ctx, func(ctx context.Context, db *mysql.DB) error { return db.VerifySource(ctx, source) })
		if err == nil {
			r.pod, r.source = site.Pod.UID, active
			p.Log.Info("the receiver verifies its source", "site", site.Name, "target", active)
			return
		}
		r.next = p.Snapshot.Now.Add(pause)
		p.Log.Warn("the receiver does not verify its source yet", "site", site.Name, "target", active, "error", err)
	}
}

// lacking returns the sites whose receiver runs and is not known to verify its source. Sites with fewer tries come first.
func (v *Verifying) lacking(s failover.Snapshot, active string) []failover.Site {
	if v.sites == nil {
		v.sites = map[string]*receiver{}
	}
	var out []failover.Site
	for _, site := range s.Sites {
		if v.sites[site.Name] == nil {
			v.sites[site.Name] = &receiver{}
		}
		if active == "" || site.Name == active || !site.MySQL.Direct || site.MySQL.Cloning || site.MySQL.ReplicaOf != active ||
			!site.MySQL.IORunning || v.Verified(site.Name, site.Pod.UID, active) || s.Now.Before(v.sites[site.Name].next) {
			continue
		}
		out = append(out, site)
	}
	slices.SortStableFunc(out, func(a, b failover.Site) int { return cmp.Compare(v.sites[a.Name].tried, v.sites[b.Name].tried) })
	return out
}
