// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// unreadMax is how many looks in a row may find nothing before the measurement ends.
const unreadMax = 60

// pointLook is one look at the archiver, a second after the one before.
type pointLook struct {
	at                time.Time
	age               float64
	archiver, sidecar float64
	uploads           int64
}

// point watches how old the recoverable point is under a steady load, and the memory of those who see to it.
func (p *pitrBench) point(ctx context.Context) error {
	var err error
	if p.active, err = emptyTable(ctx, p.group); err != nil {
		return err
	}
	if err := p.group.AwaitCaughtUp(ctx, p.active, loadDrain); err != nil {
		return err
	}
	load, err := p.startLoad(ctx, pitrWriters, pitrWriters*time.Second/pitrRows)
	if err != nil {
		return err
	}
	defer load.stop()
	if err := p.keepsUp(ctx); err != nil {
		return err
	}
	restarts, err := p.restarts(ctx)
	if err != nil {
		return err
	}
	f := &pitrPoint{RowsAsked: pitrRows, RowBytes: pitrRowBytes, IntervalSeconds: pitrInterval.Seconds(), LimitSeconds: (pitrInterval + pitrSlack).Seconds()}
	p.figures.Point = f
	began := time.Now()
	p.stage.Say("watching the recoverable point for %s", p.options.watch)
	looks, err := p.look(ctx, f, load, began)
	f.sum(looks)
	f.Seconds = round(time.Since(began).Seconds())
	if err != nil {
		return err
	}
	if err := p.stays(ctx); err != nil {
		return err
	}
	after, err := p.restarts(ctx)
	if err != nil {
		return err
	}
	f.CommitsPerSecond, f.P99CommitSeconds = load.between(began, time.Now())
	f.Failed, f.Restarts = load.stop(), after-restarts
	return p.allArchived(ctx, f)
}

// look looks once a second until the time is over, and tells once a minute how it goes.
func (p *pitrBench) look(ctx context.Context, f *pitrPoint, load *pitrLoad, began time.Time) ([]pointLook, error) {
	var looks []pointLook
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	told, minute, unread := began, 0, 0
	var a *stage.Archiver
	for time.Since(began) < p.options.watch {
		select {
		case <-ctx.Done():
			return looks, ctx.Err()
		case <-tick.C:
		}
		l, err := p.lookOnce(ctx, &a)
		if err != nil {
			// An archiver that is gone for a moment makes the point older, and the next look sees it.
			if f.Unread, unread, a = f.Unread+1, unread+1, nil; unread > unreadMax {
				return looks, fmt.Errorf("%d looks in a row found no status: %w", unread, err)
			}
			continue
		}
		unread = 0
		looks = append(looks, l)
		if time.Since(told) < time.Minute {
			continue
		}
		m := minuteOf(looks[minute:])
		m.CommitsPerSecond, _ = load.between(told, time.Now())
		f.Minutes = append(f.Minutes, m)
		told, minute = time.Now(), len(looks)
		p.stage.Say("%s of %s: the point was %.1f s old at the median, %.1f s at most; %.0f commits a second; archiver %.1f MiB, sidecar %.1f MiB",
			time.Since(began).Round(time.Second), p.options.watch, m.P50Seconds, m.MaxSeconds, m.CommitsPerSecond, m.ArchiverMiB, m.SidecarMiB)
	}
	return looks, nil
}

func (p *pitrBench) lookOnce(ctx context.Context, a **stage.Archiver) (pointLook, error) {
	if *a == nil {
		found, err := p.group.Archiver(ctx, p.active)
		if err != nil {
			return pointLook{}, err
		}
		*a = found
	}
	s, err := (*a).Status()
	if err != nil {
		return pointLook{}, err
	}
	if s.Latest.IsZero() {
		return pointLook{}, errors.New("the archiver tells no latest point: " + stage.DescribeArchiver(s))
	}
	now := time.Now()
	l := pointLook{at: now, age: now.Sub(s.Latest).Seconds(), uploads: s.UploadsSucceeded}
	l.archiver, l.sidecar, err = (*a).ResidentMiB()
	return l, err
}

// restarts counts the restarts of all containers of the group's pods.
func (p *pitrBench) restarts(ctx context.Context) (sum int32, err error) {
	pods, err := p.group.Pods(ctx)
	for _, pod := range pods {
		for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
			sum += c.RestartCount
		}
	}
	return sum, err
}

// allArchived waits until the archive holds all that was written: a point that is young, but of an archive that lacks something, is worth nothing.
func (p *pitrBench) allArchived(ctx context.Context, f *pitrPoint) error {
	executed, err := p.group.RootSQL(ctx, p.active, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return err
	}
	executed = strings.ReplaceAll(strings.TrimSpace(executed), `\n`, "")
	s, err := p.group.AwaitArchiver(ctx, p.active, pitrSettle, func(s wire.ArchiverStatus) error {
		out, err := p.group.RootSQL(ctx, p.active, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", executed, s.ArchivedGTID))
		if err == nil && strings.TrimSpace(out) != "1" {
			err = fmt.Errorf("executed is %s; archived is %s; %s", executed, s.ArchivedGTID, stage.DescribeArchiver(s))
		}
		return err
	})
	f.AllArchived, f.Gaps = err == nil, s.GapCount
	f.ArchiveBytes, f.UploadsFailed = s.Bytes, s.UploadsFailed
	return err
}
