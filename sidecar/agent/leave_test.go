// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// leave asks whether MySQL can be ended, and tells how long the answer took.
func (w *world) leave(query string) (wire.Leave, time.Duration) {
	w.t.Helper()
	began := time.Now()
	code, body := w.request(http.MethodGet, wire.PathLeave+query, nil)
	var answer wire.Leave
	if err := json.Unmarshal(body, &answer); code != http.StatusOK || err != nil {
		w.t.Fatalf("leave: %d %s", code, body)
	}
	return answer, time.Since(began)
}

func TestAReplicaLeavesAtOnce(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		if answer, took := w.leave(""); !answer.Left || took > 0 {
			t.Errorf("%+v after %v", answer, took)
		}
	})
}

// The pod of the active site is deleted: it serves until the role has moved, and no longer.
func TestTheActiveSiteLeavesWhenTheRoleHasMoved(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		go func() {
			time.Sleep(3 * time.Second)
			w.mustBe("writable")
			held := told(6, "b")
			held.Hold = true
			w.do(func() { w.operator = held })
			w.push(held)
			w.mustBe("read-only")
			time.Sleep(time.Second)
			// It answered nobody yet: the new active site fetches the last transactions from here.
			w.do(func() { w.operator = told(6, "b") })
			w.push(told(6, "b"))
		}()
		answer, took := w.leave("")
		if !answer.Left || took < 4*time.Second || took > 4*time.Second+100*time.Millisecond {
			t.Errorf("%+v after %v", answer, took)
		}
		w.mustBe("read-only")
	})
}

func TestLeavingWaitsNoLongerThanItMay(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		if answer, took := w.leave(""); answer.Left || answer.Reason == "" || took != leaveTimeout {
			t.Errorf("%+v after %v", answer, took)
		}
		if answer, took := w.leave("?wait=700ms"); answer.Left || took != 700*time.Millisecond {
			t.Errorf("%+v after %v", answer, took)
		}
		if answer, took := w.leave("?wait=1h"); answer.Left || took != leaveTimeout {
			t.Errorf("the asker chose a longer time: %+v after %v", answer, took)
		}
		for _, query := range []string{"?wait=soon", "?wait=-1s"} {
			if code, _ := w.request(http.MethodGet, wire.PathLeave+query, nil); code != http.StatusBadRequest {
				t.Errorf("%s: %d", query, code)
			}
		}
		// Asking changes nothing.
		w.mustBe("writable")
		if w.agent.now().Change() != 2 {
			t.Errorf("MySQL was changed %d times", w.agent.now().Change())
		}
	})
}

// I4: the kubelet asks nobody for liveness while a pod ends. A sidecar that hangs would let the lease run out.
func TestNobodyWaitsForASidecarThatHangsI4(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		w.agent.ticked.Store(w.agent.ticked.Load() - int64(time.Minute))
		if answer, took := w.leave(""); !answer.Left || answer.Reason != notGuarded || took > 0 {
			t.Errorf("%+v after %v", answer, took)
		}
	})
}
