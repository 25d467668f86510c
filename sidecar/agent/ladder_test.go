// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/api/wire"
)

// I4: whatever SQL does, the ladder ends within the fence timeout, with SIGKILL.
func TestTheLadderEndsWithSIGKILLI4(t *testing.T) {
	for name, breakMySQL := range map[string]func(*world){
		"SQL hangs":                       func(w *world) { w.fenceHang = true },
		"SQL fails":                       func(w *world) { w.fenceFail = errors.New("access denied") },
		"MySQL is stuck":                  func(w *world) { w.silent = true },
		"the driver ignores its deadline": func(w *world) { w.fenceStuck = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				w.bootOpen()
				w.do(func() { breakMySQL(w) })
				began := time.Now()
				r := w.push(told(6, "b"))
				if took := time.Since(began); took > 2*time.Second+lookTimeout {
					t.Errorf("took %v", took)
				}
				if !r.FencedUnder(6) || r.MysqldRunning || r.FenceStage != wire.FenceKillServer {
					t.Errorf("got %+v", r)
				}
				if got := w.happenings(); got[len(got)-1] != "killed 100/1" {
					t.Errorf("got %q", got)
				}
				if w.fenceStuck != nil {
					close(w.fenceStuck)
				}
			})
		})
	}
}

// A mysqld that is gone needs no ladder, and one that came after it is not killed for it.
func TestAVanishedMysqldNeedsNoLadder(t *testing.T) {
	for name, pid := range map[string]int{"gone": 0, "restarted": 101} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				w.bootOpen()
				w.do(func() {
					w.startMysqld(pid)
					w.fenceHang = true
				})
				began := time.Now()
				r := w.push(told(6, "b"))
				if took := time.Since(began); took > 100*time.Millisecond || !r.FencedUnder(6) {
					t.Errorf("after %v: %+v", took, r)
				}
				if got := w.happenings(); slices.Contains(got, "killed 101/1") {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// Somebody asks a second mysqld for its version: only the one that was open is killed.
func TestOnlyTheOpenMysqldIsKilled(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.others, w.fenceHang = []int{200}, true })
		w.push(told(6, "b"))
		if got := w.happenings(); got[len(got)-1] != "killed 100/1" {
			t.Errorf("got %q", got)
		}
	})
}

// I1: no proof, no claim; and it is tried again.
func TestAFenceThatIsNotProvenIsNotClaimedI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.fenceFail, w.unkillable = errors.New("access denied"), true })
		if r := w.push(told(6, "b")); r.FencedUnder(6) || r.Message == "" {
			t.Errorf("got %+v", r)
		}
		w.do(func() { w.fenceFail, w.unkillable = nil, false })
		w.after(10 * time.Second)
		w.mustBe("read-only")
	})
}

// I1: a mysqld that was never opened here is left alone however silent it is: it may be recovering.
func TestASilentReplicaIsNotKilled(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		w.do(func() { w.silent, w.operator = true, wire.Statement{} })
		w.after(5 * time.Minute)
		if r := w.push(told(6, "b")); !r.MysqldRunning || r.Answered || r.SuperReadOnly || r.FencedUnder(6) {
			t.Errorf("silence was taken for a proof: %+v", r)
		}
		if got := w.happenings(); slices.ContainsFunc(got, func(e string) bool { return e == "killed 100/1" }) {
			t.Errorf("got %q", got)
		}
	})
}

func TestAForeignUnfenceIsFencedWithinASecond(t *testing.T) {
	for _, active := range []string{"a", "b"} {
		story(t, func(_ *testing.T, w *world) {
			w.operator = told(5, active)
			w.operator.Hold = true
			w.boot()
			w.after(2 * time.Second)
			w.do(func() { w.superReadOnly, w.readOnly = false, false })
			w.after(600 * time.Millisecond)
			w.mustBe("read-only")
		})
	}
}

// I1: a process table that cannot be read is none that shows no mysqld.
func TestAnUnreadableProcessTableProvesNothingI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.pid, w.lookFails = 0, 1<<30
		w.boot()
		if r := w.push(told(6, "b")); !r.MysqldRunning || r.FencedUnder(6) {
			t.Errorf("it passes for one that does not run: %+v", r)
		}
		w.do(func() { w.lookFails = 0 })
		w.after(5 * time.Second)
		if r := w.push(told(7, "b")); r.MysqldRunning || !r.FencedUnder(7) {
			t.Errorf("nothing runs: %+v", r)
		}
	})
}

// Whoever waited to let readers in finds a site that was opened meanwhile, and leaves it alone.
func TestLettingReadersInFencesNoOpenSite(t *testing.T) {
	story(t, func(_ *testing.T, w *world) {
		w.bootOpen()
		w.agent.release()
		w.mustBe("writable")
	})
}

// I1: an opening without an answer may still take effect; only the end of mysqld is proof.
func TestAnOpeningWithoutAnswerEndsMysqldI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openHang = true
		w.boot()
		w.after(4 * time.Second) // all of it: the promotion gate counts on this bound
		if got := w.happenings(); !slices.Contains(got, "killed 100/1") || slices.Contains(got, "fenced") {
			t.Errorf("got %q", got)
		}
		w.do(func() {
			w.openHang = false
			w.startMysqld(101)
		})
		w.after(time.Second)
		w.mustBe("writable")
	})
}

func TestAnOpeningThatFailsIsFenced(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openFail = &mysqldriver.MySQLError{Number: 1227, Message: "access denied"}
		w.boot()
		w.after(time.Second)
		if got := w.happenings(); !slices.Contains(got, "fenced") || slices.Contains(got, "killed 100/1") {
			t.Errorf("got %q", got)
		}
		if r := w.push(told(5, "a")); r.Writable || !strings.Contains(r.Message, "access denied") {
			t.Errorf("nobody learns why: %+v", r)
		}
		w.do(func() { w.openFail = nil })
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

func TestAReplicaIsNotOpened(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.channels = 1
		w.boot()
		w.after(time.Second)
		if r := w.push(told(5, "a")); r.Writable || r.Message == "" {
			t.Errorf("got %+v", r)
		}
		w.mustBe("read-only")
	})
}

// I2: a fence that comes up during an opening follows it at once.
func TestAFenceWinsOverAnOpeningI2(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openTakes = time.Second
		w.boot()
		time.Sleep(200 * time.Millisecond) // the opening is under way
		if r := w.push(told(6, "b")); !r.FencedUnder(6) {
			t.Errorf("got %+v", r)
		}
		w.mustBe("read-only")
		w.after(time.Minute)
		w.mustBe("read-only")
	})
}

// I1: a look that overlaps an opening proves nothing, so the report claims nothing.
func TestAReportDuringAnOpeningClaimsNothingI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "a")
		w.openTakes = time.Second
		w.boot()
		time.Sleep(200 * time.Millisecond)
		_, body := w.request("PUT", wire.PathActiveSite, wire.ActiveSite{})
		var r wire.Report
		if err := json.Unmarshal(body, &r); err != nil || r.Answered || !r.MysqldRunning || r.FencedUnder(5) {
			t.Errorf("got %s", body)
		}
	})
}

// I5: what is not on the volume is not acknowledged, not opened and not told to peers; but it fences.
func TestABrokenVolumeI5(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.do(func() { w.saveFail = errors.New("no space left on device") })
		r := w.push(told(6, "b"))
		if r.Epoch != 5 || r.FencedUnder(6) || r.Message == "" {
			t.Errorf("acknowledged: %+v", r)
		}
		w.mustBe("read-only")
		if code, _ := w.request("GET", wire.PathPeerActiveSite+"?site=b", nil); code != 503 {
			t.Errorf("a peer was answered: %d", code)
		}
		w.do(func() { w.operator = told(7, "a") })
		w.after(10 * time.Second)
		w.mustBe("read-only")
		w.do(func() { w.saveFail = nil })
		w.after(3 * time.Second)
		w.mustBe("writable")
	})
}

// I4, I5: a volume that hangs holds back every promise, but no fence.
func TestAHangingVolumeDelaysNoFenceI4I5(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.saveHang = make(chan struct{})
		w.do(func() { w.operator = told(6, "b") })
		w.after(time.Second - 10*time.Millisecond)
		w.mustBe("writable") // the next question is due in 10 ms, the next look at MySQL half a second later
		w.after(20 * time.Millisecond)
		w.mustBe("read-only")
		if got := w.agent.now().Epoch(); got != 5 {
			t.Errorf("acknowledged epoch %d", got)
		}
		close(w.saveHang)
		w.after(time.Second)
		if got := w.agent.now().Epoch(); got != 6 {
			t.Errorf("epoch %d", got)
		}
	})
}

// I4: a volume that hangs for long does not end the lease of an open site, whatever the answers of that time bring, and however many
// there are. Nothing of them is promised before it is on the volume (I5).
func TestAHangingVolumeEndsNoLeaseI4I5(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.saveHang = make(chan struct{})
		for n := range 100 {
			w.do(func() { w.operator.LeaseTimeoutMillis++ }) // each answer must be written
			w.after(3 * time.Second)
			if got := w.is(); got != "writable" {
				t.Fatalf("MySQL is %s after the volume hung for %d s", got, 3*(n+1))
			}
		}
		w.do(func() { w.operator = told(6, "a") })
		w.after(10 * time.Second)
		if got := w.agent.now().Epoch(); got != 5 {
			t.Errorf("acknowledged epoch %d", got)
		}
		if waiting := w.agent.toKeep.Load(); waiting > mostToKeep {
			t.Errorf("%d words wait for the volume", waiting)
		}
		close(w.saveHang)
		w.after(3 * time.Second)
		if got := w.agent.now().Epoch(); got != 6 {
			t.Errorf("epoch %d", got)
		}
		w.mustBe("writable")
	})
}

func TestReadersOfAReplicaAreLetInOnceTheFenceWasLookedAtI1(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		w.do(func() { w.startMysqld(101); w.offline = true })
		w.after(time.Second)
		w.mustBe("read-only")
		w.do(func() {
			if w.offline {
				t.Errorf("readers are still kept out; events: %q", w.events)
			}
			if w.pid != 101 {
				t.Error("mysqld was killed to let readers in")
			}
		})
	})
}
