// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

func pointer[T any](v T) *T { return &v }

// group makes a state of shop/<name> that differs by its message.
func group(name, message string) wire.GroupStatus {
	return wire.GroupStatus{
		Namespace: "shop", Group: name, ActiveSite: "paris", Epoch: 7, Topology: "Healthy", Verdict: "Keep",
		Message: message, ObservedAt: time.Unix(1000, 0).UTC(),
		Sites: []wire.SiteStatus{
			{Name: "paris", Role: "primary-candidate", State: "Primary", Reachable: true, Writable: true},
			{
				Name: "madrid", Role: "dr-only", State: "Replica", Reachable: true,
				LagSeconds: pointer(1.0), Behind: pointer(int64(12)), LastSeen: time.Unix(1000, 0),
			},
		},
	}
}

// receive returns what a feed has at hand.
func receive(t *testing.T, f Feed) Changes {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c, err := f.Next(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Next: %v", err)
	}
	return c
}

func messages(groups []wire.GroupStatus) []string {
	out := []string{}
	for _, g := range groups {
		out = append(out, g.Group+"="+g.Message)
	}
	return out
}

func TestBoardFeed(t *testing.T) {
	tests := map[string]struct {
		reason string
		steps  func(b *Board)
		want   []string
		gone   []string
	}{
		"NewGroup": {
			reason: "a group never seen before is a change",
			steps:  func(b *Board) { b.Publish(group("new", "1")) },
			want:   []string{"new=1"},
		},
		"NothingButTimeChanged": {
			reason: "a poll that saw the same again is no change",
			steps: func(b *Board) {
				g := group("orders", "first")
				g.ObservedAt = g.ObservedAt.Add(time.Second)
				g.Sites[1].LastSeen = g.Sites[1].LastSeen.Add(time.Second)
				b.Publish(g)
			},
			want: []string{},
		},
		"LagChanged": {
			reason: "numbers behind pointers are compared, not the pointers",
			steps: func(b *Board) {
				g := group("orders", "first")
				g.Sites[1].LagSeconds = pointer(2.0)
				b.Publish(g)
			},
			want: []string{"orders=first"},
		},
		"OnlyTheNewestStateOfAGroup": {
			reason: "states replace each other, a reader needs no history; groups come sorted",
			steps: func(b *Board) {
				b.Publish(group("orders", "2"))
				b.Publish(group("accounts", "1"))
				b.Publish(group("orders", "3"))
			},
			want: []string{"accounts=1", "orders=3"},
		},
		"Removed": {
			reason: "a group that is gone is named once",
			steps: func(b *Board) {
				b.Publish(group("orders", "2"))
				b.Remove("shop", "orders")
				b.Remove("shop", "orders")
				b.Remove("shop", "never-there")
			},
			want: []string{}, gone: []string{"shop/orders"},
		},
		"RemovedAndBack": {
			reason: "the last change wins",
			steps: func(b *Board) {
				b.Remove("shop", "orders")
				b.Publish(group("orders", "first"))
			},
			want: []string{"orders=first"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBoard()
				b.Publish(group("orders", "first"))
				_, feed := b.Subscribe()
				tc.steps(b)
				got := receive(t, feed)
				if diff := cmp.Diff(tc.want, messages(got.Groups)); diff != "" {
					t.Errorf("%s\ngroups (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.gone, got.Gone); diff != "" {
					t.Errorf("%s\ngone (-want +got):\n%s", tc.reason, diff)
				}
				if again := receive(t, feed); len(again.Groups)+len(again.Gone) > 0 {
					t.Errorf("a change was handed out twice: %v", again)
				}
			})
		})
	}
}

// TestBoardSnapshotIsFresh: the time of observation is kept although nobody is told of it.
func TestBoardSnapshotIsFresh(t *testing.T) {
	b := NewBoard()
	g := group("orders", "1")
	b.Publish(g)
	g.ObservedAt = g.ObservedAt.Add(time.Minute)
	b.Publish(g)
	if got := b.Snapshot()[0].ObservedAt; !got.Equal(g.ObservedAt) {
		t.Errorf("ObservedAt = %v, want %v", got, g.ObservedAt)
	}
}

// TestBoardKeepsNothingOfTheCaller: a poll loop may use its memory again.
func TestBoardKeepsNothingOfTheCaller(t *testing.T) {
	b := NewBoard()
	g := group("orders", "1")
	b.Publish(g)
	g.Sites[0].Name = "changed"
	*g.Sites[1].LagSeconds = 99
	if diff := cmp.Diff([]wire.GroupStatus{group("orders", "1")}, b.Snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBoardSlowReader: a reader that missed more than the log holds is told so; one change less is fine.
func TestBoardSlowReader(t *testing.T) {
	b := NewBoard()
	_, feed := b.Subscribe()
	for n := range boardLog {
		b.Publish(group("orders", fmt.Sprint(n)))
	}
	c, err := feed.Next(t.Context())
	if err != nil || len(c.Groups) != 1 {
		t.Fatalf("Next = %v, %v, want the newest state", c, err)
	}
	for n := range boardLog + 1 {
		b.Publish(group("orders", fmt.Sprint(-n)))
	}
	if _, err := feed.Next(t.Context()); !errors.Is(err, ErrBehind) {
		t.Errorf("Next = %v, want %v", err, ErrBehind)
	}
}

// TestSameStatusLooksAtEveryField: a field added to the wire type must not be forgotten.
func TestSameStatusLooksAtEveryField(t *testing.T) {
	base := group("orders", "1")
	typ := reflect.TypeFor[wire.GroupStatus]()
	for i := range typ.NumField() {
		changed := cloneStatus(base)
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch field.Interface().(type) {
		case string:
			field.SetString(field.String() + "x")
		case int64:
			field.SetInt(field.Int() + 1)
		case bool:
			field.SetBool(!field.Bool())
		case []wire.SiteStatus:
			changed.Sites = changed.Sites[:1]
		case *wire.Forecast:
			changed.Forecast = &wire.Forecast{Site: "frankfurt", LostTransactions: pointer(int64(1))}
		case *wire.CacheStatus:
			changed.Cache = &wire.CacheStatus{ActiveSite: "paris"}
		case time.Time:
			changed.ObservedAt = changed.ObservedAt.Add(time.Second)
		default:
			t.Fatalf("field %s: this test does not know its type", typ.Field(i).Name)
		}
		if want := typ.Field(i).Name == "ObservedAt"; sameStatus(base, changed) != want {
			t.Errorf("field %s: sameStatus = %t, want %t", typ.Field(i).Name, !want, want)
		}
	}
}

// TestVolumesAreComparedByWhatTheyHold: each poll brings another pointer, and who watches is told only of what changed.
func TestVolumesAreComparedByWhatTheyHold(t *testing.T) {
	with := func(used int64) wire.GroupStatus {
		g := group("orders", "1")
		g.Sites[0].Volume = &wire.VolumeUse{UsedBytes: used, TotalBytes: 10}
		return g
	}
	base := with(1)
	if !sameStatus(base, with(1)) || sameStatus(base, with(2)) || sameStatus(base, group("orders", "1")) {
		t.Error("the same volume is another one, or another one the same")
	}
	copied := cloneStatus(base)
	base.Sites[0].Volume.UsedBytes = 5
	if copied.Sites[0].Volume.UsedBytes != 1 {
		t.Error("a poll loop that uses its memory again changes what is shown")
	}
}

// TestBoardConcurrent is for the race detector: every reader sees each group's last state.
func TestBoardConcurrent(t *testing.T) {
	const groups, rounds, readers = 20, 50, 8
	b := NewBoard()
	var writers, watching sync.WaitGroup
	for range readers {
		snapshot, feed := b.Subscribe()
		watching.Go(func() {
			seen := map[string]string{}
			for _, g := range snapshot {
				seen[g.Group] = g.Message
			}
			last := fmt.Sprint(rounds - 1)
			for done := 0; done < groups; {
				c, err := feed.Next(t.Context())
				if err != nil {
					t.Errorf("Next: %v", err)
					return
				}
				for _, g := range c.Groups {
					seen[g.Group] = g.Message
				}
				done = 0
				for _, m := range seen {
					if m == last {
						done++
					}
				}
			}
		})
	}
	for n := range groups {
		writers.Go(func() {
			for round := range rounds {
				b.Publish(group(fmt.Sprintf("g%d", n), fmt.Sprint(round)))
			}
		})
	}
	writers.Wait()
	watching.Wait()
}

// manyGroups are the states of n groups of three sites, in two versions that differ.
func manyGroups(n int) [2][]wire.GroupStatus {
	var out [2][]wire.GroupStatus
	for i := range n {
		for v := range out {
			g := group(fmt.Sprintf("group-%04d", i), fmt.Sprint(v))
			g.Sites = append(g.Sites, wire.SiteStatus{
				Name: "frankfurt", Role: "primary-candidate", State: "Replica", Reachable: true,
				GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-123456789", LagSeconds: pointer(0.0),
			})
			out[v] = append(out[v], g)
		}
	}
	return out
}

// BenchmarkPublish is one poll of one group among 1000 while 64 readers wait.
func BenchmarkPublish(b *testing.B) {
	for _, changing := range []bool{true, false} {
		b.Run(fmt.Sprintf("changing=%t", changing), func(b *testing.B) {
			versions := manyGroups(1000)
			board := NewBoard()
			for _, g := range versions[0] {
				board.Publish(g)
			}
			for range 64 {
				_, feed := board.Subscribe()
				go func() {
					for {
						if _, err := feed.Next(b.Context()); b.Context().Err() != nil {
							return
						} else if err != nil {
							_, feed = board.Subscribe()
						}
						time.Sleep(250 * time.Millisecond)
					}
				}()
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				version := 0
				if changing {
					version = (n/1000 + 1) % 2
				}
				board.Publish(versions[version][n%1000])
				n++
			}
		})
	}
}

// BenchmarkSnapshot is what one GET /status of 1000 groups costs before it is encoded.
func BenchmarkSnapshot(b *testing.B) {
	board := NewBoard()
	for _, g := range manyGroups(1000)[0] {
		board.Publish(g)
	}
	b.ReportAllocs()
	for b.Loop() {
		board.Snapshot()
	}
}
