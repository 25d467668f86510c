// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// reclone annotates the group with a reclone and waits for the answer.
func reclone(t *testing.T, g *stage.Group, value string, limit time.Duration) v1alpha1.LastRequest {
	t.Helper()
	orderReclone(t, g, value)
	return recloneAnswer(t, g, value, limit)
}

func orderReclone(t *testing.T, g *stage.Group, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationRecloneSite: value}}})
	if err != nil {
		t.Fatal(err)
	}
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Kube.Patch(t.Context(), group, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

func recloneAnswer(t *testing.T, g *stage.Group, value string, limit time.Duration) v1alpha1.LastRequest {
	t.Helper()
	return answered(t, g, v1alpha1.AnnotationRecloneSite, value, limit)
}

func siteOf(group *v1alpha1.MysqlFailoverGroup, name string) v1alpha1.SiteStatus {
	for _, site := range group.Status.Sites {
		if site.Name == name {
			return site
		}
	}
	return v1alpha1.SiteStatus{}
}

// diverged waits until a site is held for what it alone has.
func diverged(t *testing.T, g *stage.Group, site string) v1alpha1.SiteStatus {
	t.Helper()
	group, err := g.Await(t.Context(), comeBack, site+" to be found diverged", func(group *v1alpha1.MysqlFailoverGroup) error {
		if s := siteOf(group, site); s.State != v1alpha1.SiteDiverged || s.Errant == "" {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return siteOf(group, site)
}

func checkEvent(t *testing.T, g *stage.Group, reason, part string) {
	t.Helper()
	checkEventSince(t, g, time.Time{}, reason, part)
}

// checkEventSince takes no event for one of a test that is older than what the test did: the group has those of tests before it.
func checkEventSince(t *testing.T, g *stage.Group, since time.Time, reason, part string) {
	t.Helper()
	var lines []string
	// What an event tells of is persisted before it is sent.
	err := stage.Poll(t.Context(), 10*time.Second, "event "+reason, func(ctx context.Context) (err error) {
		lines, err = g.EventsSince(ctx, since)
		if err == nil && !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, " "+reason+": ") && strings.Contains(line, part) }) {
			err = errors.New("there is none")
		}
		return err
	})
	if err != nil {
		t.Errorf("no event %s with %q among\n%s", reason, part, strings.Join(lines, "\n"))
	}
}

// recloned orders a site to be cloned with its data thrown away, and waits until the group is whole.
func recloned(t *testing.T, g *stage.Group, site string) {
	t.Helper()
	if outcome := reclone(t, g, site+":confirm", comeBack); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the order was answered: %+v", outcome)
	}
	group, err := g.AwaitReady(t.Context(), comeBack)
	if err != nil {
		t.Fatal(err)
	}
	if s := siteOf(group, site); s.Clone != nil || s.Errant != "" || !s.Provisioned {
		t.Errorf("after the clone: %+v", s)
	}
	checkEvent(t, g, "RecloneDone", site)
}

// A transaction that only a replica has: it is held and keeps it, an order without confirmation changes nothing, one with
// it brings the site back.
func TestErrantTransaction(t *testing.T) {
	g, before := whole(t)
	if err := g.EnsureApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	site := replicas(before)[0]
	const errant = "SELECT COUNT(*) FROM app.writes WHERE writer = 'errant'"
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	// The sidecar undoes it as soon as it sees it: what counts is that the row got in before.
	if err := stage.Poll(t.Context(), time.Minute, "the row to get in", func(ctx context.Context) error {
		_, cut := g.RootSQL(ctx, site, "SET GLOBAL super_read_only = OFF; REPLACE INTO app.writes (writer, worker, seq, site) VALUES ('errant', 0, 1, 'x')")
		switch got, err := g.RootSQL(ctx, site, errant); {
		case err != nil:
			return err
		case strings.TrimSpace(got) != "1":
			return fmt.Errorf("the sidecar was faster: %w", cut)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	held := diverged(t, g, site)
	if uuid := query(t, g, site, "SELECT @@server_uuid"); !strings.HasPrefix(held.Errant, uuid+":") {
		t.Errorf("errant = %q, the site is %s", held.Errant, uuid)
	}
	checkEvent(t, g, "SiteDiverged", held.Errant)
	if got := query(t, g, site, "SELECT @@super_read_only"); got != "1" {
		t.Errorf("super_read_only = %s on a diverged site", got)
	}

	outcome := reclone(t, g, site, time.Minute)
	if outcome.Outcome != v1alpha1.RequestRefused || !strings.Contains(outcome.Message, site+":confirm") {
		t.Errorf("the order was answered: %+v", outcome)
	}
	checkEvent(t, g, "RecloneRefused", site)
	if got := query(t, g, site, errant); got != "1" {
		t.Errorf("%s errant rows are left after a refused order", got)
	}

	cloned := query(t, g, site, "SELECT COALESCE(MAX(BEGIN_TIME), 'never') FROM performance_schema.clone_status")
	recloned(t, g, site)
	if got := query(t, g, site, errant); got != "0" {
		t.Errorf("%s errant rows are left after the clone", got)
	}
	if again := query(t, g, site, "SELECT MAX(BEGIN_TIME) FROM performance_schema.clone_status WHERE STATE = 'Completed'"); again == cloned {
		t.Errorf("the last clone is still that of %s", cloned)
	}
	// I10: its next own transaction must not have the number of the one that was thrown away.
	if uuid := query(t, g, site, "SELECT @@server_uuid"); strings.HasPrefix(held.Errant, uuid+":") {
		t.Errorf("%s was cloned and is still %s: it would give the numbers of %s again", site, uuid, held.Errant)
	}
}

// mysqld of a site dies in the middle of a clone. It calls that clone in progress ever after; the site is cloned again.
func TestMysqldDiesInAClone(t *testing.T) {
	g, before := whole(t)
	active, site := before.Status.ActiveSite, replicas(before)[0]
	// So much that the clone is still copying when it has been seen to.
	query(t, g, active, "CREATE DATABASE bulk; CREATE TABLE bulk.rows_of_it (id INT AUTO_INCREMENT PRIMARY KEY, filler LONGBLOB); "+
		"INSERT INTO bulk.rows_of_it (filler) VALUES (REPEAT('x', 4 << 20)), (REPEAT('y', 4 << 20)), (REPEAT('z', 4 << 20)), (REPEAT('w', 4 << 20))"+
		strings.Repeat("; INSERT INTO bulk.rows_of_it (filler) SELECT filler FROM bulk.rows_of_it", 4))
	t.Cleanup(func() {
		if _, err := g.RootSQL(context.Background(), active, "DROP DATABASE bulk"); err != nil {
			t.Error(err)
		}
	})
	if err := stage.Poll(t.Context(), time.Minute, site+" to have it all", func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, "SELECT COUNT(*) FROM bulk.rows_of_it")
		if err == nil && strings.TrimSpace(out) != "64" {
			err = fmt.Errorf("%s rows", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	orderReclone(t, g, site)
	if err := stage.Poll(t.Context(), time.Minute, "the clone to copy files", func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, "SELECT STATE FROM performance_schema.clone_progress WHERE STAGE = 'FILE COPY'")
		if err == nil && strings.TrimSpace(out) != "In Progress" {
			err = fmt.Errorf("it is %q", strings.TrimSpace(out))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := stage.KillProcess(t.Context(), g, site, stage.Mysqld); err != nil {
		t.Fatal(err)
	}
	if outcome := recloneAnswer(t, g, site, comeBack); outcome.Outcome != v1alpha1.RequestDone {
		t.Errorf("the order was answered: %+v", outcome)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
	checkEvent(t, g, "SiteCloneFailed", site)
	if got := query(t, g, site, "SELECT COUNT(*) FROM bulk.rows_of_it"); got != "64" {
		t.Errorf("%s rows on %s", got, site)
	}
}

// What can only be refused is refused at once, with the next step.
func TestRecloneRefusals(t *testing.T) {
	g, before := whole(t)
	active := before.Status.ActiveSite
	for value, part := range map[string]string{
		active + ":confirm": v1alpha1.AnnotationPlannedFailover,
		"nowhere":           "no site",
	} {
		if outcome := reclone(t, g, value, time.Minute); outcome.Outcome != v1alpha1.RequestRefused || !strings.Contains(outcome.Message, part) {
			t.Errorf("reclone-site=%s was answered: %+v", value, outcome)
		}
	}
	if _, err := g.AwaitReady(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
}

// A site that was away for so long that the active site has purged what it needs is cloned without being asked.
func TestPurgedBinlogs(t *testing.T) {
	g, group := whole(t)
	if err := g.EnsureApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	active, away := group.Status.ActiveSite, replicas(group)[1]
	kill := fault(t, "node-kill")
	if _, err := g.Break(t.Context(), kill, away); err != nil {
		t.Fatal(err)
	}
	known := strings.ReplaceAll(query(t, g, active, "SELECT @@gtid_executed"), "\\n", "")
	row := time.Now().UnixMilli() // not that of an earlier run
	write(t, g, fmt.Sprintf("REPLACE INTO app.writes (writer, worker, seq, site) VALUES ('purged', 0, %d, 'x')", row))
	if err := stage.Poll(t.Context(), 2*time.Minute, "the binary log to be purged", func(ctx context.Context) error {
		return purge(ctx, g, active, known)
	}); err != nil {
		t.Fatal(err)
	}
	// A group that has not noticed yet calls itself ready, and so it would once more right after the node is back.
	if _, err := g.Await(t.Context(), time.Minute, "the loss of "+away+" to be noticed", func(group *v1alpha1.MysqlFailoverGroup) error {
		if state := siteOf(group, away).State; state == v1alpha1.SiteReplica {
			return fmt.Errorf("%s is %s", away, state)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := g.Undo(t.Context(), kill, away); err != nil {
		t.Fatal(err)
	}
	// Its receiver is connected for a moment before the source refuses it: the group is ready then, and the clone yet to come.
	if err := stage.Poll(t.Context(), 2*comeBack, "what was purged to be on "+away, func(ctx context.Context) error {
		got, err := g.RootSQL(ctx, away, fmt.Sprintf("SELECT COUNT(*) FROM app.writes WHERE writer = 'purged' AND seq = %d", row))
		if err == nil && strings.TrimSpace(got) != "1" {
			err = fmt.Errorf("%s rows", strings.TrimSpace(got))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	checkEvent(t, g, "SiteStranded", away)
	if _, err := g.AwaitReady(t.Context(), 2*comeBack); err != nil {
		t.Fatal(err)
	}
}

// purge purges the binary logs of a site. A log that is being sent, if only to a dead node, is kept, so that dumps are
// ended first; replicas that live come back at once.
func purge(ctx context.Context, g *stage.Group, site, known string) error {
	dumps, err := g.RootSQL(ctx, site, "SELECT ID FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'")
	if err != nil {
		return err
	}
	for _, id := range strings.Fields(dumps) {
		// One that has ended meanwhile is what was wanted.
		_, _ = g.RootSQL(ctx, site, "KILL "+id)
	}
	out, err := g.RootSQL(ctx, site, fmt.Sprintf("FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY; "+
		"SELECT GTID_SUBTRACT(@@gtid_purged, '%s') <> ''", known))
	if err == nil && strings.TrimSpace(out) != "1" {
		err = errors.New("what the site lacks is still there")
	}
	return err
}

// lostRowsAreCounted goes on where a site is back that was cut off while it was active: the writes that it took after that are lost,
// counted by row from its own binary log, kept there until a person throws them away, and then the site is whole again.
func lostRowsAreCounted(t *testing.T, site string) {
	t.Helper()
	g := &stage.Group{Stage: lab, Namespace: namespace, Name: name}
	group, err := g.Await(t.Context(), comeBack, "the lost rows to be counted", func(group *v1alpha1.MysqlFailoverGroup) error {
		if len(group.Status.Failovers) == 0 || group.Status.Failovers[0].LostRowsState == "" {
			return errors.New("they are not")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	record := group.Status.Failovers[0]
	if record.LostTransactions == 0 {
		t.Fatal("nothing was lost: the direct writer did not reach the site while it was cut off")
	}
	// The writers insert one row with each transaction.
	want := []v1alpha1.LostRows{{Schema: "app", Table: "writes", Inserted: record.LostTransactions}}
	if record.LostRowsState != v1alpha1.LostRowsCounted || !slices.Equal(record.LostRows, want) {
		t.Errorf("lost rows %+v (%s), want %+v", record.LostRows, record.LostRowsState, want)
	}
	diverged(t, g, site)
	recloned(t, g, site)
}
