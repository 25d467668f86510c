// SPDX-License-Identifier: Apache-2.0

package pitr_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/printers"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr/pitrtest"
)

var update = flag.Bool("update", false, "write the golden files")

const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func common() pitr.Common {
	return pitr.Common{Access: pitr.Access{OperatorNamespace: "mfg-system", Timeout: time.Minute}, Namespace: "shop", Group: "orders", Color: "never"}
}

// golden compares with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func verified() []v1alpha1.MysqlBackup {
	b := v1alpha1.MysqlBackup{}
	b.Name, b.Status.Verified = "orders-nightly-1", &v1alpha1.BackupVerified{Outcome: v1alpha1.BackupPassed}
	return []v1alpha1.MysqlBackup{b}
}

// TestTimeline: the picture and the tables fit the terminal, and say the same without colour.
func TestTimeline(t *testing.T) {
	for _, width := range []int{0, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			c := pitrtest.New(t, wire.InspectLine{Timeline: pitrtest.Timeline()}, pitrtest.End())
			c.Known = verified()
			var out pitrtest.Output
			op := pitr.Timeline{Common: common()}
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			code, err := op.Run(t.Context(), pitrtest.Environment(&out, width), c)
			if err != nil || code != cli.ExitDegraded {
				t.Fatalf("%d: %v", code, err)
			}
			golden(t, fmt.Sprintf("timeline-%d.txt", width), out.Out.String())
		})
	}
}

// TestTimelineAsJSON: a program gets times to the microsecond, and numbers as numbers.
func TestTimelineAsJSON(t *testing.T) {
	c := pitrtest.New(t, wire.InspectLine{Timeline: pitrtest.Timeline()}, pitrtest.End())
	c.Known = verified()
	var out pitrtest.Output
	op := pitr.Timeline{Common: common()}
	op.Output = cli.Output{Format: "json", Printer: &printers.JSONPrinter{}}
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil {
		t.Fatal(err)
	}
	golden(t, "timeline.json", out.Out.String())
}

func TestTimelineIsHealthy(t *testing.T) {
	tl := pitrtest.Timeline()
	tl.Gaps = nil
	c := pitrtest.New(t, wire.InspectLine{Timeline: tl}, pitrtest.End())
	var out pitrtest.Output
	op := pitr.Timeline{Common: common()}
	if code, err := op.Run(t.Context(), pitrtest.Environment(&out, 80), c); err != nil || code != cli.ExitHealthy {
		t.Errorf("%d: %v", code, err)
	}
	if c.Ran.Command[1] != "timeline" || c.Pod.Spec.Volumes[len(c.Pod.Spec.Volumes)-1].Secret.SecretName == "identity" {
		t.Errorf("a timeline needs no identity: %+v", c.Pod.Spec.Volumes)
	}
	if diff := cmp.Diff(pitrtest.PullSecrets, c.Pod.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("a private registry refuses the image (-want +got):\n%s", diff)
	}
	tl.Backups = nil
	if code, _ := op.Run(t.Context(), pitrtest.Environment(&out, 80), c); code != cli.ExitDegraded || !strings.Contains(out.Out.String(), "there is no backup to begin with") {
		t.Errorf("%d:\n%s", code, out.Out.String())
	}
}

func transaction(n int, role string) wire.InspectLine {
	return wire.InspectLine{Transaction: &wire.ArchivedTransaction{GTID: fmt.Sprintf("%s:%d", server, n), Time: pitrtest.Noon.Add(time.Duration(n) * time.Microsecond), Epoch: 3, Site: "paris",
		Log: "binlog.000007", Position: int64(1000 * n), Bytes: 2048, Role: role, Statements: []string{"DROP TABLE shop.orders"}, Previous: fmt.Sprintf("%s:%d", server, n-1)}}
}

// TestFind: what is found can be pasted into a restore.
func TestFind(t *testing.T) {
	rows := transaction(9, wire.RoleMatch)
	rows.Transaction.Statements, rows.Transaction.Previous = nil, ""
	rows.Transaction.Tables = []wire.ArchivedTable{{Schema: "shop", Table: "orders", Inserted: 1, Deleted: 2}}
	for name, tc := range map[string]struct {
		op    pitr.Find
		lines []wire.InspectLine
		want  wire.AskFind
	}{
		"drop":     {pitr.Find{BeforeDrop: "shop.orders"}, []wire.InspectLine{transaction(7, wire.RoleMatch)}, wire.AskFind{Drop: &wire.AskTable{Schema: "shop", Table: "orders"}}},
		"time":     {pitr.Find{Before: "2026-11-25T13:00:00.5+01:00"}, []wire.InspectLine{transaction(7, wire.RoleBefore), transaction(8, wire.RoleAfter)}, wire.AskFind{Before: pitrtest.Noon.Add(500 * time.Millisecond)}},
		"touching": {pitr.Find{Touching: "shop.orders:7,x", Since: "2026-11-25T12:00:00Z", Epoch: 3}, []wire.InspectLine{rows}, wire.AskFind{Touching: &wire.AskRow{AskTable: wire.AskTable{Schema: "shop", Table: "orders"}, Key: []string{"7", "x"}}, Since: pitrtest.Noon, Epoch: 3}},
		"column":   {pitr.Find{Touching: "orders:@3=a:b"}, []wire.InspectLine{transaction(1, ""), transaction(2, ""), transaction(3, ""), transaction(4, ""), rows}, wire.AskFind{Touching: &wire.AskRow{AskTable: wire.AskTable{Table: "orders"}, Key: []string{"a:b"}, Column: 3}}},
		"nothing":  {pitr.Find{BeforeDrop: "orders"}, nil, wire.AskFind{Drop: &wire.AskTable{Table: "orders"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := pitrtest.New(t, append(tc.lines, pitrtest.End())...)
			var out pitrtest.Output
			op := tc.op
			op.Common, op.Limit = common(), 10
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			if code, err := op.Run(t.Context(), pitrtest.Environment(&out, 100), c); err != nil || code != cli.ExitHealthy {
				t.Fatalf("%d: %v", code, err)
			}
			tc.want.Most = 10
			if diff := cmp.Diff(&tc.want, c.Asked.Find); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			golden(t, "find-"+name+".txt", out.Out.String()+"---\n"+out.Err.String())
		})
	}
}

func TestFindUsage(t *testing.T) {
	for name, op := range map[string]pitr.Find{
		"Nothing": {}, "Two": {BeforeDrop: "a", Before: "2026-11-25T12:00:00Z"}, "NoZone": {Before: "2026-11-25 12:00:00"}, "NoTable": {Touching: "shop.:7"},
		"NoColumn": {Touching: "orders:@x=7"}, "ColumnZero": {Touching: "orders:@0=7"}, "NoLimit": {BeforeDrop: "a", Limit: -1}, "Since": {BeforeDrop: "a", Since: "yesterday"},
	} {
		op.Common = common()
		if op.Limit == 0 {
			op.Limit = 1
		}
		if err := op.Validate(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestIdentityGoesByStdin: and nowhere else.
func TestIdentityGoesByStdin(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	c := pitrtest.New(t, pitrtest.End())
	op := pitr.Find{Common: common(), BeforeDrop: "orders", Limit: 1}
	op.Identity = filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(op.Identity, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	var out pitrtest.Output
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.Asked.Identity, id.String()) {
		t.Error("the pod got no identity")
	}
	if said := fmt.Sprint(c.Pod, c.Ran.Command, out.Out.String(), out.Err.String()); strings.Contains(said, "SECRET-KEY") || strings.Contains(fmt.Sprint(c.Pod.Spec.Volumes), "identity") {
		t.Errorf("the identity, or the Secret with one, is in the pod: %s", said)
	}
	op.Identity = filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(op.Identity, []byte("AGE-SECRET-KEY-1BROKEN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err == nil || strings.Contains(err.Error(), "BROKEN") {
		t.Errorf("%v", err)
	}
}

// TestTroubles: every failure says what to do.
func TestTroubles(t *testing.T) {
	exit := utilexec.CodeExitError{Code: 2, Err: errors.New("exit 2")}
	for name, tc := range map[string]struct {
		spoil func(*pitrtest.Cluster)
		code  int
		says  string
	}{
		"NoArchive":  {func(c *pitrtest.Cluster) { c.Origin.Spec.Backup.PITR = nil }, cli.ExitRefused, "docs/point-in-time.md"},
		"NoProfile":  {func(c *pitrtest.Cluster) { c.Origin.Spec.Backup.PITR.Profile = "gone" }, cli.ExitRefused, "has no profile gone"},
		"NoIdentity": {func(c *pitrtest.Cluster) { c.Origin.Spec.Backup.Profiles[0].Encryption.IdentitySecretName = "" }, cli.ExitRefused, "--identity FILE"},
		"WrongIdentity": {func(c *pitrtest.Cluster) {
			c.Lines = []wire.InspectLine{{End: &wire.InspectEnd{Reason: "WrongIdentity", Message: "no key opens it"}}}
		}, cli.ExitRefused, "--identity FILE"},
		"Unreachable": {func(c *pitrtest.Cluster) {
			c.Lines = []wire.InspectLine{{End: &wire.InspectEnd{Reason: "StorageUnreachable", Message: "list: StorageUnreachable: check the endpoint"}}}
		}, cli.ExitError, "check the endpoint"},
		"TimedOut": {func(c *pitrtest.Cluster) {
			c.Lines = []wire.InspectLine{{End: &wire.InspectEnd{Reason: "TimedOut", Message: "the time is over"}}}
		}, cli.ExitTimeout, "--since"},
		"CutOff":     {func(c *pitrtest.Cluster) { c.Lines = c.Lines[:0] }, cli.ExitError, "cut off"},
		"OldProgram": {func(c *pitrtest.Cluster) { c.Lines, c.Err = nil, exit }, cli.ExitError, "--image IMAGE"},
		"Garbage":    {func(c *pitrtest.Cluster) { c.Lines, c.Raw = nil, []byte("usage: backup COMMAND\n") }, cli.ExitError, "version of this plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			c := pitrtest.New(t, pitrtest.End())
			tc.spoil(c)
			op := pitr.Find{Common: common(), BeforeDrop: "orders", Limit: 1}
			if err := op.Validate(); err != nil {
				t.Fatal(err)
			}
			var out pitrtest.Output
			code, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c)
			var own *cli.Error
			if errors.As(err, &own) {
				code = own.Code
			}
			if err == nil || code != tc.code || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%d: %v", code, err)
			}
			if c.Pod != nil {
				if left, err := c.Fake.CoreV1().Pods("shop").List(t.Context(), listAll); err != nil || len(left.Items) > 0 {
					t.Errorf("%d pods are left: %v", len(left.Items), err)
				}
			}
		})
	}
}

// The time may run out in the middle of a line: it is the time that people have to hear of, not the half line.
func TestTheTimeEndsInALine(t *testing.T) {
	c := pitrtest.New(t)
	c.Raw, c.Hangs = []byte(`{"transaction":{"gt`), true
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	op := pitr.Find{Common: common(), BeforeDrop: "orders", Limit: 1}
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	var out pitrtest.Output
	_, err := op.Run(ctx, pitrtest.Environment(&out, 0), c)
	var own *cli.Error
	if !errors.As(err, &own) || own.Code != cli.ExitTimeout || !strings.Contains(err.Error(), "--timeout") {
		t.Errorf("%v", err)
	}
}

// TestLost: a list, SQL as it comes, and rows in a report.
func TestLost(t *testing.T) {
	lines := []wire.InspectLine{{Text: "INSERT INTO t VALUES ('\u00e9"}, {Text: "x');\n"}, transaction(7, wire.RoleLost), pitrtest.End()}
	var out pitrtest.Output
	op := pitr.Lost{Common: common(), Epoch: 3, Limit: 10}
	c := pitrtest.New(t, transaction(7, wire.RoleLost), pitrtest.End())
	if code, err := op.Run(t.Context(), pitrtest.Environment(&out, 100), c); err != nil || code != cli.ExitDegraded {
		t.Fatalf("%d: %v", code, err)
	}
	golden(t, "lost.txt", out.Out.String()+"---\n"+out.Err.String())

	out = pitrtest.Output{}
	op.Output.Format = pitr.OutputSQL
	c = pitrtest.New(t, lines...)
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil || out.Out.String() != "INSERT INTO t VALUES ('éx');\n" || c.Asked.Lost.Rows != wire.RowsSQL || c.Asked.Lost.Epoch != 3 {
		t.Errorf("%v: %q", err, out.Out.String())
	}

	out = pitrtest.Output{}
	c = pitrtest.New(t, lines[:2]...)
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err == nil || !strings.Contains(out.Out.String(), "ROLLBACK;\n-- NOT COMPLETE") {
		t.Errorf("%v: %q", err, out.Out.String())
	}

	out = pitrtest.Output{}
	op.Output, op.Rows = cli.Output{Format: "json", Printer: &printers.JSONPrinter{}}, true
	c = pitrtest.New(t, wire.InspectLine{Text: `{"gtid":"` + server + `:7","schema":"shop","table":"t","op":"insert","aft`}, wire.InspectLine{Text: "er\":{\"id\":9223372036854775807}}\n"}, transaction(7, wire.RoleLost), pitrtest.End())
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), c); err != nil {
		t.Fatal(err)
	}
	golden(t, "lost.json", out.Out.String())

	op.Output = cli.Output{}
	if op.Validate() == nil {
		t.Error("--rows is taken where nothing shows them")
	}
	out = pitrtest.Output{}
	op.Rows = false
	if code, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), pitrtest.New(t, pitrtest.End())); err != nil || code != cli.ExitHealthy || out.Out.Len() > 0 {
		t.Errorf("%d: %v, %q", code, err, out.Out.String())
	}
}

// Rows for a report are held in memory, so there is a bound, and the refusal names the way without one.
func TestMoreRowsThanFitIntoAReport(t *testing.T) {
	change := `{"gtid":"` + server + `:7","schema":"shop","table":"t","op":"insert","after":{"c":"` + strings.Repeat("x", 1<<20) + `"}}` + "\n"
	lines := func(n int) []wire.InspectLine {
		return append(slices.Repeat([]wire.InspectLine{{Text: change}}, n), transaction(7, wire.RoleLost), pitrtest.End())
	}
	var out pitrtest.Output
	op := pitr.Lost{Common: common(), Rows: true, Limit: 10}
	op.Output = cli.Output{Format: "json", Printer: &printers.JSONPrinter{}}
	_, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), pitrtest.New(t, lines(64)...)) // a little more than 64 MiB
	var own *cli.Error
	if !errors.As(err, &own) || own.Code != cli.ExitRefused || !strings.Contains(err.Error(), "-o sql") || out.Out.Len() > 0 {
		t.Errorf("more than 64 MiB of rows: %v, and %d bytes are written", err, out.Out.Len())
	}
	if _, err := op.Run(t.Context(), pitrtest.Environment(&out, 0), pitrtest.New(t, lines(2)...)); err != nil || out.Out.Len() < 2<<20 {
		t.Errorf("less than that: %v, and %d bytes are written", err, out.Out.Len())
	}
}
