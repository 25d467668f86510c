// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// away has the storage gone for a while, under writes.
func (a *archiveStory) away(t *testing.T) {
	active, _ := a.active(t)
	gone := storyAway
	if text := os.Getenv("AWAY"); text != "" {
		var err error
		if gone, err = time.ParseDuration(text); err != nil {
			t.Fatalf("AWAY=%s: %v", text, err)
		}
	}
	if err := a.s3.Away(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	a.write(t, active, "away", 2)
	a.fails(t, active, string(bucket.Unreachable))
	for time.Since(began) < gone {
		a.write(t, active, "still away", 1)
		sleep(t, storyInterval)
	}
	query(t, a.Group, active, "FLUSH BINARY LOGS")
	a.write(t, active, "away, in another log", 1)
	if err := a.s3.Back(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.holdsAll(t, active)
}

// revoked has the server forget the key; then the Secret gets the one that it knows now. No pod is started again for it.
func (a *archiveStory) revoked(t *testing.T) {
	active, _ := a.active(t)
	before := mysqlPods(t, a.Group)
	if err := a.s3.Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.write(t, active, "revoked", 2)
	a.fails(t, active, string(bucket.AccessDenied))
	if err := a.s3.Grant(t.Context(), storyNamespace); err != nil {
		t.Fatal(err)
	}
	a.holdsAll(t, active)
	samePods(t, a.Group, before, "another key")
}

// full leaves no room in the storage.
func (a *archiveStory) full(t *testing.T) {
	active, _ := a.active(t)
	if err := a.s3.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.write(t, active, "full", 4)
	a.fails(t, active, string(bucket.Full))
	a.write(t, active, "still full", 1)
	if err := a.s3.Room(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.holdsAll(t, active)
}

// killed ends the archiver by SIGKILL in the middle of an upload. What mysqld and the site do is not touched by it.
func (a *archiveStory) killed(t *testing.T) {
	active, before := a.active(t)
	a.uploading(t, active, "killed")
	p, err := a.Archiver(t.Context(), active)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := a.s3.SetRate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	a.holdsAll(t, active)
	if now, err := a.Get(t.Context()); err != nil || now.Status.Epoch != before.Status.Epoch {
		t.Errorf("the role moved for an archiver that was killed: %v", err)
	}
}

// movedMeanwhile moves the role in the middle of an upload: the new active site archives what the old one did not come to.
func (a *archiveStory) movedMeanwhile(t *testing.T) {
	active, _ := a.active(t)
	a.uploading(t, active, "moved")
	to := moveRole(t, a.Group)
	if err := a.s3.SetRate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	a.write(t, to, "after the move", 1)
	a.holdsAll(t, to)
}

var firstOf = regexp.MustCompile(`^([0-9a-f-]{36}:[0-9]+)`)

// gap purges what was never archived: it is named to the transaction, a point in it is refused, and a backup leads on.
func (a *archiveStory) gap(t *testing.T) {
	active, _ := a.active(t)
	known := a.holdsAll(t, active)
	if err := a.s3.Away(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.write(t, active, "gone", 3)
	a.fails(t, active, string(bucket.Unreachable))
	if err := a.AwaitCaughtUp(t.Context(), active, comeBack); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), 2*time.Minute, "the binary log to be purged", func(ctx context.Context) error {
		return purge(ctx, a.Group, active, known)
	}); err != nil {
		t.Fatal(err)
	}
	missing := strings.ReplaceAll(query(t, a.Group, active, fmt.Sprintf("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_purged, '%s')", known)), `\n`, "")
	// What it was uploading it has in memory still, and would not lose.
	p, err := a.Archiver(t.Context(), active)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	a.write(t, active, "after the gap", 1)
	if err := a.s3.Back(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.gaps++
	a.holdsAll(t, active)
	a.named(t, active, missing)
	if _, err := a.MakeBackup(t.Context(), "behind-the-gap", "physical", 2*backupLimit); err != nil {
		t.Fatal(err)
	}
	inside := firstOf.FindString(missing)
	if inside == "" {
		t.Fatalf("no transaction in %q", missing)
	}
	plugin(t, "-n", storyNamespace, "restore", "nowhere", "--from", storyGroup, "--at", inside, "--apply").want(t, 5, nil).says(t, "gap", inside[:36])
	if _, err := lab.TakeGroup(t.Context(), storyNamespace, "nowhere"); err == nil {
		t.Error("a group was made for a point in a gap")
	}
	plugin(t, "-n", storyNamespace, "backup", "timeline", storyGroup).want(t, 3, nil).says(t, "gap", "behind-the-gap")
	plugin(t, "-n", storyNamespace, "restore", "nowhere", "--from", storyGroup, "--at", "latest").want(t, 0, nil).says(t, "behind-the-gap")
}

// named compares the newest gap with what is missing, by the archiver and in status.
func (a *archiveStory) named(t *testing.T, site, missing string) {
	t.Helper()
	p, err := a.Archiver(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Status()
	if err != nil || len(s.Gaps) == 0 {
		t.Fatalf("no gap is told: %v; %s", err, stage.DescribeArchiver(s))
	}
	gap := s.Gaps[len(s.Gaps)-1]
	if same := query(t, a.Group, site, fmt.Sprintf("SELECT GTID_SUBSET('%[1]s', '%[2]s') AND GTID_SUBSET('%[2]s', '%[1]s')", gap.GTIDs, missing)); same != "1" {
		t.Errorf("the gap is said to be %s, and %s is missing", gap.GTIDs, missing)
	}
	if _, err := a.Await(t.Context(), archiveLimit, "status to tell the gap", func(group *v1alpha1.MysqlFailoverGroup) error {
		if st := group.Status.Backup; st == nil || st.PITR == nil || int(st.PITR.GapCount) != a.gaps {
			return errors.New("it does not")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// anotherGroup has the origin lost, and another group of its name made, which has the same place: it writes nothing there.
func (a *archiveStory) anotherGroup(t *testing.T) {
	if err := a.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := a.s3.Objects(t.Context(), storyPrefix)
	if err != nil || len(before) == 0 {
		t.Fatalf("%d objects are left of the origin: %v", len(before), err)
	}
	if err := a.s3.Grant(t.Context(), storyNamespace); err != nil {
		t.Fatal(err)
	}
	if err := lab.PutIdentity(t.Context(), storyNamespace, identitySecret, a.id.String()); err != nil {
		t.Fatal(err)
	}
	spec := a.spec(stage.DefaultSpec(storyGroup))
	spec.Sites = spec.Sites[:2]
	if a.Group, err = lab.NewGroup(t.Context(), storyNamespace, storyGroup, spec); err != nil {
		t.Fatal(err)
	}
	active, _ := a.active(t)
	query(t, a.Group, active, "CREATE DATABASE stranger")
	a.fails(t, active, string(bucket.Foreign))
	if _, err := a.Await(t.Context(), archiveLimit, "status to say whose place it is", func(group *v1alpha1.MysqlFailoverGroup) error {
		if st := group.Status.Backup; st == nil || st.PITR == nil || string(st.PITR.Reason) != string(bucket.Foreign) {
			return errors.New("it does not")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	sleep(t, 3*storyInterval)
	after, err := a.s3.Objects(t.Context(), storyPrefix)
	if err != nil {
		t.Fatal(err)
	}
	for key, size := range before {
		if was, there := after[key]; !there || was != size {
			t.Errorf("%s had %d bytes, and now %d (there: %t)", key, size, was, there)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects were there, and now %d", len(before), len(after))
	}
}

// archivesStill fails the test unless a group goes on archiving.
func archivesStill(t *testing.T, g *stage.Group, site string, gaps int) {
	t.Helper()
	writeTo(t, g, site, "still", 1)
	holdsAll(t, g, site, gaps)
	if s, err := g.AwaitArchiver(t.Context(), site, time.Minute, func(wire.ArchiverStatus) error { return nil }); err != nil || s.State != wire.ArchiverArchiving {
		t.Errorf("%v; %s", err, stage.DescribeArchiver(s))
	}
}
