// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Logs keeps the binary logs of a group's sites while a test goes on. It reads the files of the volumes on this machine, so a
// site that is cut off or dead, and one that is cloned again, can be judged all the same.
type Logs struct {
	keeper *commits.Keeper
	stop   context.CancelFunc
	done   sync.WaitGroup
	ended  bool
	began  time.Time
	// offset is the wall clock less the monotonic one: it moves when somebody sets the clock.
	offset time.Duration

	mu      sync.Mutex
	excused map[string]gtid.Set
}

// looks is how often the volumes are looked at: far more often than MySQL can make and drop a log with commits in it. Where they lie is asked
// more seldom: with ten groups those questions alone would use up what a client may ask of the API server. A volume that takes the place of
// another keeps its logs until then.
const (
	looks   = 500 * time.Millisecond
	locates = 3 * time.Second
)

// stepped is how far the clock may move during a test before its timestamps prove nothing. Commits of two sites lie at least
// a fence apart.
const stepped = 100 * time.Millisecond

// KeepLogs begins to keep the binary logs of all sites, for a run of that name.
func (g *Group) KeepLogs(ctx context.Context, run string) (*Logs, error) {
	keeper, err := commits.NewKeeper(filepath.Join(g.Lab.Dir(), "binlogs", run))
	if err != nil {
		return nil, err
	}
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Logs{keeper: keeper, stop: stop, began: time.Now(), offset: clockOffset(), excused: map[string]gtid.Set{}}
	l.done.Go(func() { l.follow(follow, g) })
	return l, nil
}

func clockOffset() time.Duration { return time.Duration(time.Now().UnixNano()) - load.Now() }

func (l *Logs) follow(ctx context.Context, g *Group) {
	dirs := map[string]string{}
	var located time.Time
	for {
		if len(dirs) < len(Sites) || time.Since(located) >= locates {
			located = time.Now()
			l.locate(ctx, g, dirs)
		}
		l.look(dirs)
		select {
		case <-ctx.Done():
			l.locate(context.WithoutCancel(ctx), g, dirs)
			l.look(dirs)
			return
		case <-time.After(looks):
		}
	}
}

// locate finds where the volumes lie. While the API server is away they are where they were.
func (l *Logs) locate(ctx context.Context, g *Group, dirs map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if group, err := g.Get(ctx); err == nil {
		for _, site := range group.Spec.Sites {
			if dir, err := g.VolumeDir(ctx, site.Name); err == nil {
				dirs[site.Name] = dir
			}
		}
	}
}

// look takes what is there now.
func (l *Logs) look(dirs map[string]string) {
	for site, dir := range dirs {
		l.keeper.Look(site, filepath.Join(dir, "data"))
	}
}

// End reads what was kept, without what is excused. Logs that are encrypted can only be read through their servers: unread says
// so.
func (l *Logs) End() (all []commits.Transaction, unread string, err error) {
	l.stop()
	l.done.Wait()
	l.ended = true
	if moved := clockOffset() - l.offset; moved.Abs() > stepped {
		return nil, "", fmt.Errorf("this machine's clock was set by %s during the test: timestamps prove nothing", moved)
	}
	all, err = l.keeper.Read(l.began)
	if errors.Is(err, commits.ErrEncrypted) {
		return nil, "they are encrypted", l.keeper.Remove()
	}
	if err != nil {
		return nil, "", err
	}
	all, err = l.without(all)
	return all, "", err
}

// without leaves out what was excused.
func (l *Logs) without(all []commits.Transaction) ([]commits.Transaction, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []commits.Transaction
	for _, t := range all {
		excused, some := l.excused[t.Site]
		if some && t.Own() {
			one, err := gtid.Parse(t.GTID)
			if err != nil {
				return nil, fmt.Errorf("binary log of %s: %w", t.Site, err)
			}
			if excused.Contains(one) {
				continue
			}
		}
		left = append(left, t)
	}
	return left, nil
}

// Abandon ends the looking and removes what was kept. What was read and not found clean stays, for who wants to look into it.
func (l *Logs) Abandon() error {
	l.stop()
	l.done.Wait()
	if l.ended {
		return nil
	}
	return l.keeper.Remove()
}

// Remove removes what was kept and found clean.
func (l *Logs) Remove() error { return l.keeper.Remove() }

// Dir is where the logs are kept.
func (l *Logs) Dir() string { return l.keeper.Dir() }

// Excuse names transactions that the test itself made on a site, as a person does who lifts a fence: they are no fault of the
// fence. Everything else counts.
func (w *Witnesses) Excuse(site, gtids string) error {
	set, err := gtid.Parse(gtids)
	if err != nil {
		return fmt.Errorf("excuse transactions of %s: %w", site, err)
	}
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	w.logs.excused[site] = w.logs.excused[site].Union(set)
	return nil
}

// VolumeDir is where a site's data volume lies on this machine.
func (g *Group) VolumeDir(ctx context.Context, site string) (string, error) {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.DataVolumeName(g.Name, site)}
	if err := g.Kube.Get(ctx, key, claim); err != nil {
		return "", fmt.Errorf("read volume claim of %s: %w", site, err)
	}
	volume := &corev1.PersistentVolume{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return "", fmt.Errorf("read volume of %s: %w", site, err)
	}
	if volume.Spec.Local == nil {
		return "", fmt.Errorf("volume %s is no local one", volume.Name)
	}
	return volume.Spec.Local.Path, nil
}
