// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

func group(active string, epoch int64, records ...v1alpha1.FailoverRecord) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Status.ActiveSite, g.Status.Epoch, g.Status.Failovers = active, epoch, records
	return g
}

func TestWhatTheStatusForgotIsRecalled(t *testing.T) {
	forgotten := v1alpha1.FailoverRecord{Epoch: 2, From: "east", To: "west"}
	after := group("west", 4, v1alpha1.FailoverRecord{Epoch: 4, From: "south", To: "west"}, v1alpha1.FailoverRecord{Epoch: 3, From: "west", To: "south"})
	after.Status.Failovers = recall(after.Status.Failovers, []v1alpha1.FailoverRecord{forgotten, {Epoch: 3, From: "east", To: "south"}})
	got, _ := Turns(group("east", 1), after)
	if diff := cmp.Diff([]string{"east", "west", "south", "west"}, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if from := after.Status.Failovers[1].From; from != "west" {
		t.Errorf("the record of epoch 3 says from %s: what the status holds must stand", from)
	}
}

func TestTurns(t *testing.T) {
	old := v1alpha1.FailoverRecord{Epoch: 2, From: "west", To: "east"}
	there := v1alpha1.FailoverRecord{Epoch: 3, From: "east", To: "west"}
	back := v1alpha1.FailoverRecord{Epoch: 4, From: "west", To: "east"}
	for name, tt := range map[string]struct {
		reason string
		after  *v1alpha1.MysqlFailoverGroup
		want   []string
	}{
		"nothing happened": {"older records do not count", group("east", 2, old), []string{"east"}},
		"once":             {"", group("west", 3, there, old), []string{"east", "west"}},
		"there and back":   {"newest first in status, oldest first here", group("east", 4, back, there, old), []string{"east", "west", "east"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Turns(group("east", 2, old), tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// wrote is what a witness got acknowledged by a site: one row a second, half a second after it was sent.
func wrote(witness, site string, seconds ...int) journal.Journal {
	j := journal.Journal{Writer: witness}
	for _, at := range seconds {
		ack := time.Duration(at) * time.Second
		j.Commits = append(j.Commits, journal.Commit{
			Key: journal.Key{Writer: witness, Seq: int64(at)}, Server: journal.Server{Site: site}, Start: ack - time.Second/2, Ack: ack,
		})
	}
	return j
}

func TestJudge(t *testing.T) {
	old := v1alpha1.FailoverRecord{Epoch: 2, From: "west", To: "east", LostTransactions: 7}
	there := v1alpha1.FailoverRecord{Epoch: 3, From: "east", To: "west", LostTransactions: 2}
	back := v1alpha1.FailoverRecord{Epoch: 4, From: "west", To: "east", LostTransactions: 1}
	east, west := wrote("svc", "east", 1, 2, 3), wrote("svc", "west", 8, 9)
	moves := journal.Journal{Writer: "svc", Commits: append(east.Commits, west.Commits...)}
	const (
		fault = 2500 * time.Millisecond
		pause = 5 * time.Second
	)
	clean := Verdict{
		From: "east", To: "west", Pause: journal.Pause{LastAck: 3 * time.Second, NextAck: 8 * time.Second, From: "east", To: "west"},
		Acked: 5, Margin: pause, Changes: []journal.Change{{From: "east", To: "west", Margin: pause, At: 8 * time.Second}},
		Records: []v1alpha1.FailoverRecord{there}, Lost: 2,
	}
	for name, tt := range map[string]struct {
		reason  string
		after   *v1alpha1.MysqlFailoverGroup
		service journal.Journal
		direct  []journal.Journal
		lacks   []journal.Key
		want    Verdict
		overlap bool
		failed  bool
	}{
		"clean": {reason: "", after: group("west", 3, there, old), service: moves, want: clean},
		"missing": {
			reason: "an acknowledged row that is not there", after: group("west", 3, there, old), service: moves,
			lacks: []journal.Key{{Writer: "svc", Seq: 3}},
			want:  with(clean, func(v *Verdict) { v.Missing = east.Commits[2:] }),
		},
		"missing of a direct writer": {
			reason: "theirs are acknowledged, too", after: group("west", 3, there, old), service: moves,
			direct: []journal.Journal{wrote("d", "east", 2)}, lacks: []journal.Key{{Writer: "d", Seq: 2}},
			want: with(clean, func(v *Verdict) { v.Acked, v.Missing = 6, wrote("d", "east", 2).Commits }),
		},
		"overlap": {
			reason: "only the direct writer sees the old site go on", after: group("west", 3, there, old), service: moves,
			direct: []journal.Journal{wrote("d", "east", 8)}, overlap: true,
			want: with(clean, func(v *Verdict) {
				v.Acked, v.Margin = 6, 0
				v.Changes = []journal.Change{{From: "east", To: "west", At: 8 * time.Second}}
			}),
		},
		"out of turn": {
			reason: "nobody gave the role to west", after: group("east", 2, old), service: moves, overlap: true,
			want: with(clean, func(v *Verdict) { v.To, v.Records, v.Lost = "east", nil, 0 }),
		},
		"there and back": {
			reason: "losses add up", after: group("east", 4, back, there, old), service: moves,
			want: with(clean, func(v *Verdict) { v.To, v.Records, v.Lost = "east", []v1alpha1.FailoverRecord{there, back}, 3 }),
		},
		"no row after the fault": {
			reason: "the Service never led anywhere again", after: group("west", 3, there, old), service: east,
			direct: []journal.Journal{wrote("d", "west", 9)}, failed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			heard := Testimony{Service: tt.service, Direct: tt.direct, Unread: "this is about the journals"}
			rows := map[journal.Key]bool{}
			for _, c := range journal.Commits(heard.All()...) {
				rows[c.Key] = !slices.Contains(tt.lacks, c.Key)
			}
			at := fault
			if tt.failed {
				at = 4 * time.Second
			}
			got, err := judge(group("east", 2, old), tt.after, heard, rows, at)
			if tt.failed {
				if err == nil {
					t.Errorf("%s: no error", tt.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (len(got.Overlaps) > 0) != tt.overlap {
				t.Errorf("%s: overlaps %v", tt.reason, got.Overlaps)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Verdict{}, "Overlaps")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// logged is what a site's binary log says of commits of its own, at these seconds after a moment.
func logged(site string, number uint32, seconds ...float64) []commits.Transaction {
	var all []commits.Transaction
	for _, at := range seconds {
		when := time.UnixMilli(int64(at * 1000))
		all = append(all, commits.Transaction{Site: site, At: when, Original: when, Server: number, Writer: number})
	}
	return all
}

// I1 and I2 by the servers' own timestamps. In every case the journals alone show nothing wrong.
func TestJudgeByTheServers(t *testing.T) {
	there := v1alpha1.FailoverRecord{Epoch: 3, From: "east", To: "west", StartedAt: metav1.NewMicroTime(time.Unix(5, 0))}
	east, west := wrote("svc", "east", 1, 2, 3), wrote("svc", "west", 8, 9)
	moves := journal.Journal{Writer: "svc", Commits: append(east.Commits, west.Commits...)}
	oldSite, newSite := logged("east", 1, 1, 2, 3), logged("west", 2, 8, 9)
	for name, tt := range map[string]struct {
		reason string
		logs   []commits.Transaction
		unread string
		want   string
	}{
		"clean": {reason: "the logs say what the journals say", logs: slices.Concat(oldSite, newSite)},
		"late commit without a witness": {
			reason: "a transaction begun before the fence, whose client never learned of its commit",
			logs:   slices.Concat(oldSite, newSite, logged("east", 1, 8.5)), want: "by the servers' own timestamps",
		},
		"open before its epoch": {
			reason: "west committed before epoch 3 was persisted", logs: slices.Concat(oldSite, logged("west", 2, 4), newSite), want: "by the servers' own timestamps",
		},
		"a replica that nobody promoted": {
			reason: "an event of its scheduler, perhaps", logs: slices.Concat(oldSite, newSite, logged("south", 3, 2.5)), want: "by the servers' own timestamps",
		},
		"a log is missing": {reason: "what west did is not known", logs: oldSite, want: "not whole"},
		"no logs":          {reason: "nothing is proven", want: "not whole"},
		"encrypted":        {reason: "what cannot be read is said, and not judged", unread: "they are encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := map[journal.Key]bool{}
			for _, c := range moves.Commits {
				rows[c.Key] = true
			}
			heard := Testimony{Service: moves, Logs: tt.logs, Unread: tt.unread}
			v, err := judge(group("east", 2), group("west", 3, there), heard, rows, 2500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Overlaps) > 0 {
				t.Fatalf("the journals alone show it: %v", v.Overlaps)
			}
			err = v.CheckWriters()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: error %v, want %q", tt.reason, err, tt.want)
			}
		})
	}
}

func with(v Verdict, change func(*Verdict)) Verdict {
	change(&v)
	return v
}

func TestCheckWriters(t *testing.T) {
	change := []journal.Change{{From: "east", To: "west"}}
	for name, tt := range map[string]struct {
		v    Verdict
		fine bool
	}{
		"moved and seen":   {Verdict{From: "east", To: "west", Changes: change}, true},
		"stayed":           {Verdict{From: "east", To: "east"}, true},
		"moved but unseen": {Verdict{From: "east", To: "west"}, false},
		"overlap":          {Verdict{From: "east", To: "west", Changes: change, Overlaps: []journal.Overlap{{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.v.CheckWriters(); (err == nil) != tt.fine {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestChartValuesAreTheSpec(t *testing.T) {
	spec := DefaultSpec("orders")
	values, err := chartValues(spec)
	if err != nil {
		t.Fatal(err)
	}
	if values["image"] != MySQLImage || len(values["sites"].([]any)) != 3 {
		t.Errorf("values = %v", values)
	}
	if spec.Sites[2].Role != v1alpha1.DROnly {
		t.Errorf("the third site is %s", spec.Sites[2].Role)
	}
}

// One authority for groups and escrow endpoint: what a group's ca.crt holds must verify both.
func TestCertificatesVerify(t *testing.T) {
	data, err := makeAuthority()
	if err != nil {
		t.Fatal(err)
	}
	// As it comes back from the API server, for each of the two again.
	secret := &corev1.Secret{Data: data}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data["ca.crt"])
	for _, name := range []string{"mysql-orders-east.shop.svc", "mfg-auxiliary.mfg-system.svc"} {
		ca, err := readAuthority(secret)
		if err != nil {
			t.Fatal(err)
		}
		issued, err := ca.issue([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(issued["ca.crt"], data["ca.crt"]) {
			t.Error("the certificate comes with another authority")
		}
		block, _ := pem.Decode(issued["tls.crt"])
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	g := &Group{Namespace: "shop", Name: "orders", ca: data["ca.crt"]}
	conf, err := g.tlsConfig("mysql-orders-east")
	if err != nil || conf.ServerName != "mysql-orders-east.shop.svc" {
		t.Errorf("config = %+v, %v", conf, err)
	}
}
