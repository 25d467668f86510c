// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/backup/replay"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// restoredSuffix is that of the directory that a site's bootstrap takes as its data directory (sidecar/restored.go).
const restoredSuffix = ".restored"

// recordSuffix is that of the file beside the directory of a site that says which backup it is given.
const recordSuffix = ".backup"

// clockSkew is how far clocks of nodes may be apart. S3 refuses requests whose clock is more than that ahead.
const clockSkew = 15 * time.Minute

// recordMax is in bytes. A set of GTIDs may have 1 MiB and more, and stands in it twice.
const recordMax = 8 << 20

// record says which backup a site is given. It is durable before any of it is loaded, so that each try loads the same one, and so that
// nobody takes the data of another group for a restored one.
type record struct {
	GroupUID string `json:"groupUID,omitempty"`
	Location string `json:"location"`
	// StorageDigest tells that place from every other; a program that knew none wrote none.
	StorageDigest string `json:"storageDigest,omitempty"`
	Backup        string `json:"backup"`
	// Point is where behind the backup the load stops, and Reached the set of GTIDs that this came to when the backup was chosen; both are
	// empty for the backup alone.
	Point   string `json:"point,omitempty"`
	Reached string `json:"reached,omitempty"`
	// Result is there once all of it was loaded.
	Result *terms.Result `json:"result,omitempty"`
}

// record is that of the load which is under way; result is nil until it has ended.
func (l *Loader) record(result *terms.Result) record {
	c := l.Config
	return record{
		GroupUID: c.GroupUID, Location: c.Bucket.Location(), StorageDigest: c.StorageDigest, Backup: c.Backup, Point: point(c), Reached: l.reached, Result: result,
	}
}

// isFrom is true if the record is of the place that is asked for. An older program wrote no digest: then the location decides alone.
func (r *record) isFrom(c terms.Config) bool {
	return r.Location == c.Bucket.Location() && (r.StorageDigest == c.StorageDigest || r.StorageDigest == "" || c.StorageDigest == "")
}

// isSite is true if the directory becomes that of a site, rather than that of a scratch server.
func isSite(c terms.Config) bool { return strings.HasSuffix(c.Server.Dir, restoredSuffix) }

// noted reads the record; nil if there is none. One that cannot be read is one that we did not write.
func (l *Loader) noted() (*record, error) {
	path := l.Config.Server.Dir + recordSuffix
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none, and that is an answer
	}
	if err == nil && info.Size() > recordMax {
		err = errors.New("it is larger than any that we write")
	}
	if err != nil {
		return nil, terms.Fail(terms.TargetNotEmpty, fmt.Errorf("read which backup belongs onto this volume: %w", err))
	}
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, terms.Fail(terms.TargetNotEmpty, fmt.Errorf("read which backup belongs onto this volume: %w", err))
	}
	r := &record{}
	if err := json.Unmarshal(raw, r); err != nil || r.Backup == "" {
		return nil, terms.Fail(terms.TargetNotEmpty, fmt.Errorf("%s does not say which backup belongs onto this volume: %s", filepath.Base(path), newVolume))
	}
	return r, nil
}

// note makes a record durable, whole or not at all.
func (l *Loader) note(r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(raw) > recordMax {
		return fmt.Errorf("the record of the restore has %d bytes, and at most %d can be read again", len(raw), recordMax) // nothing was touched
	}
	path := l.Config.Server.Dir + recordSuffix
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return errors.Join(mysqld.Sync(path+".new"), os.Rename(path+".new", path), mysqld.Sync(filepath.Dir(path)))
}

// newVolume is what to do about a volume that has other data.
const newVolume = "nothing was touched; to restore onto this site, delete its volume claim together with the group, and make the group again"

// mine refuses data that another restore, or none, has brought.
func (l *Loader) mine(r *record) error {
	c := l.Config
	switch {
	case r == nil:
		return terms.Fail(terms.TargetNotEmpty, errors.New("the volume holds data that this restore has not brought: "+newVolume+
			"; to go on with that data, remove initFromBackup"))
	case r.GroupUID != c.GroupUID:
		return terms.Fail(terms.TargetNotEmpty, errors.New("the volume holds data that was restored for another group of this name: "+newVolume+
			"; to go on with that data, remove initFromBackup"))
	case !r.isFrom(c) || c.Backup != "" && r.Backup != c.Backup:
		return terms.Fail(terms.TargetNotEmpty, fmt.Errorf("the volume was given backup %s of %s already, and another one is asked for: %s; to go on with what it has, name that in initFromBackup", r.Backup, r.Location, newVolume))
	case r.Point != point(c):
		return terms.Fail(terms.TargetNotEmpty, errors.New("the volume was given another point in time than the one that is asked for: "+newVolume+
			"; to go on with what it has, undo the change of initFromBackup.pointInTime"))
	}
	return nil
}

// choose settles which backup is loaded, and how a point behind it is reached. For a site both are noted before anything is loaded.
func (l *Loader) choose(ctx context.Context, b *bucket.Bucket) (*journey, error) {
	c := &l.Config
	if !isSite(*c) {
		return l.way(ctx, b, nil)
	}
	r, err := l.noted()
	if err != nil {
		return nil, err
	}
	same := r != nil && r.GroupUID == c.GroupUID && r.isFrom(*c) && r.Point == point(*c)
	if same && (c.Backup == "" || c.Backup == r.Backup) {
		c.Backup, l.reached = r.Backup, r.Reached // an earlier try chose it, and may have begun
	}
	m, err := l.survey(ctx)
	if err != nil {
		return nil, err
	}
	if c.Backup == "" {
		if c.Backup, err = l.newestFor(ctx, b, m); err != nil {
			return nil, err
		}
		l.Log.Info("the newest backup is taken", "backup", c.Backup)
	}
	way, err := l.way(ctx, b, m)
	if err != nil {
		return nil, err
	}
	if way != nil {
		l.reached = way.road.Target.String()
	}
	return way, l.note(l.record(nil))
}

// newestFor is the newest backup, or the newest that the target can be reached from.
func (l *Loader) newestFor(ctx context.Context, b *bucket.Bucket, m *replay.Map) (string, error) {
	if m != nil {
		return l.startFor(ctx, b, m)
	}
	entries, err := b.List(ctx)
	if err != nil {
		return "", err
	}
	return newest(entries, l.Config.Bucket.Location(), time.Now())
}

// way is how the target is reached from the backup; nil without a target.
func (l *Loader) way(ctx context.Context, b *bucket.Bucket, m *replay.Map) (*journey, error) {
	if m == nil {
		var err error
		if m, err = l.survey(ctx); err != nil || m == nil {
			return nil, err
		}
	}
	manifest, err := b.ReadManifest(ctx, l.Config.Backup)
	if err != nil {
		return nil, err
	}
	return l.find(ctx, m, manifest)
}

// newest is the newest of the backups. One that cannot be read may be the newest, and loading an older one without a word would lose
// what lies between.
//
// One that is dated in the future was completed by a clock that was ahead, so nobody knows which is the newest then either.
func newest(entries []bucket.Entry, location string, now time.Time) (string, error) {
	var found string
	var unreadable, ahead []string
	for _, e := range entries { // the newest first
		switch {
		case e.Manifest == nil || e.Err != nil:
			unreadable = append(unreadable, e.Name)
		case e.Manifest.FinishedAt.After(now.Add(clockSkew)):
			ahead = append(ahead, e.Name)
		case found == "":
			found = e.Name
		}
	}
	switch {
	case len(ahead) > 0:
		best := ""
		if found != "" {
			best = "; the newest of the others is " + found
		}
		return "", terms.Fail(terms.BadConfig, fmt.Errorf("which backup is the newest is not known, because %d are dated in the future (%s), by a clock that was ahead%s: name the one to load in initFromBackup.backup",
			len(ahead), terms.Clip(strings.Join(ahead, ", "), 200), best))
	case found == "" && len(unreadable) == 0:
		return "", terms.Fail(terms.Reason(bucket.NotFound), fmt.Errorf("there is no backup in %s: correct the place, or namespace and group in initFromBackup.from", location))
	case len(unreadable) > 0:
		best := ""
		if found != "" {
			best = "; the newest that can be read is " + found
		}
		return "", terms.Fail(terms.Reason(bucket.Damaged), fmt.Errorf("which backup is the newest is not known, because of %d that cannot be read (%s)%s: name the one to load in initFromBackup.backup",
			len(unreadable), terms.Clip(strings.Join(unreadable, ", "), 200), best))
	}
	return found, nil
}

// loaded is what was loaded onto a site that has its data, or whose restored directory is whole and waits for its bootstrap; nil if
// there is nothing yet. Data that this restore has not brought is an error: it would open in place of the backup.
func (l *Loader) loaded() (*record, error) {
	dir := l.Config.Server.Dir
	site, ok := strings.CutSuffix(dir, restoredSuffix)
	if !ok {
		return nil, nil //nolint:nilnil // a scratch server has nothing from before
	}
	before, err := l.noted()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{site, dir} {
		entries, err := os.ReadDir(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		partial, err := isThere(name + mysqld.PartialSuffix)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 || partial {
			continue
		}
		if err := l.mine(before); err != nil {
			return nil, err
		}
		if lost, err := l.keysLost(name); err != nil || lost {
			return nil, err
		}
		l.Log.Info("the site has its data already", "dir", name, "backup", before.Backup)
		return before, nil
	}
	return nil, nil //nolint:nilnil // see above
}

// keysLost is true of a directory that was loaded in a pod that is gone, together with the only keyring that opens it: no bootstrap has
// taken it, so that keyring was never in escrow. It is marked as one to be begun again.
func (l *Loader) keysLost(dir string) (bool, error) {
	file := l.Config.Server.KeyringFile
	if file == "" || dir != l.Config.Server.Dir {
		return false, nil
	}
	there, err := isThere(file)
	if err != nil || there {
		return false, err
	}
	l.Log.Warn("the keyring of what was loaded is gone with an earlier pod: it is loaded again", "dir", dir)
	return true, os.WriteFile(dir+mysqld.PartialSuffix, nil, 0o600)
}

// told is the outcome of the load that a record is about.
func (r *record) told() terms.Result {
	if r == nil {
		return terms.Result{}
	}
	res := terms.Result{}
	if r.Result != nil {
		res = *r.Result
	}
	res.Backup = r.Backup
	return res
}

func isThere(path string) (bool, error) {
	switch _, err := os.Stat(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
