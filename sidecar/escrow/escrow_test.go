// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

func TestEscrowsAWholeKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		digest := wire.KeyringDigest([]byte(ring("k1")))
		if w.agent.Unescrowed() == "" {
			t.Error("I16: a keyring that nobody has may be opened with")
		}
		got := w.round()
		want := &wire.KeyringReport{
			Component: "component_keyring_file", Active: true, DataFile: "/run/k/keyring", Keys: 1,
			Digest: digest, EscrowedDigest: digest, EscrowedVersion: 3,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		push := wire.KeyringEscrow{Namespace: "shop", Group: "orders", Site: "a", PodUID: "uid-1", Digest: digest, Keyring: []byte(ring("k1"))}
		if diff := cmp.Diff([]wire.KeyringEscrow{push}, w.pushes); diff != "" {
			t.Errorf("pushes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(Record{Needs: digest, Escrowed: digest, Version: 3}, w.record()); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		if why := w.agent.Unescrowed(); why != "" {
			t.Errorf("in escrow: %s", why)
		}
		w.round()
		if len(w.pushes) != 1 {
			t.Errorf("%d pushes of the same keyring", len(w.pushes))
		}
		// The next run of the sidecar makes sure that the Secret is still there.
		again := New(w.agent.Config)
		if r := again.Report(); r.EscrowedDigest != digest || again.Unescrowed() != "" {
			t.Errorf("what is in escrow was forgotten: %+v", r)
		}
		again.round(t.Context())
		if len(w.pushes) != 2 {
			t.Errorf("%d pushes after a restart", len(w.pushes))
		}
	})
}

// I16: an escrow Secret that is lost while the site is unsealed comes back, although the sidecar believes that it is there.
func TestI16PushesAgainWhileUnsealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		w.round()
		version := int64(4)
		w.stored = func(push wire.KeyringEscrow) wire.KeyringEscrowed {
			return wire.KeyringEscrowed{Digest: push.Digest, Version: version}
		}
		time.Sleep(pushAgain)
		if r := w.round(); len(w.pushes) != 2 || r.EscrowedVersion != version {
			t.Errorf("%d pushes, report %+v", len(w.pushes), r)
		}
		if w.round(); len(w.pushes) != 2 {
			t.Errorf("%d pushes without a pause", len(w.pushes))
		}
	})
}

// I14: while a push waits for an operator that is slow to answer, a rotation may end: what was seen before it must not be reported as
// what the data needs.
func TestReportsNoKeyringOfThePastI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		var during []*wire.KeyringReport
		stored := w.stored
		w.stored = func(push wire.KeyringEscrow) wire.KeyringEscrowed {
			during = append(during, w.agent.Report())
			put(t, w.file, ring("k1", "k2"))
			during = append(during, w.agent.Report())
			return stored(push)
		}
		w.round()
		before := wire.KeyringDigest([]byte(ring("k1")))
		if len(during) != 2 || during[0].Digest != before || during[1].Digest != "" || during[1].Trouble == "" {
			t.Errorf("during the push: %+v", during)
		}
		if r := w.agent.Report(); r.Digest != "" || r.EscrowedDigest != before {
			t.Errorf("before the next look: %+v", r)
		}
		w.stored = stored
		after := wire.KeyringDigest([]byte(ring("k1", "k2")))
		w.listed = append(w.listed, mysql.Key{ID: "k2"})
		if r := w.round(); r.Digest != after || r.EscrowedDigest != after || r.Trouble != "" {
			t.Errorf("after the next look: %+v", r)
		}
	})
}

// I14: MySQL has begun to write the keyring, beside which its copy lies; the content is still the one that was looked at.
func TestReportsNoKeyringThatIsBeingWrittenI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		w.round()
		put(t, w.file+backupSuffix, ring("k1"))
		if r := w.agent.Report(); r.Digest != "" || r.Trouble == "" {
			t.Errorf("I14: %+v", r)
		}
	})
}

// What is not a whole keyring of this very server is never sent.
func TestNeverPushes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*world)
		digest  bool
	}{
		"torn":            {"half a keyring opens nothing", func(w *world) { put(w.t, w.file, ring("k1")[:30]) }, false},
		"empty":           {"MySQL made it where it found none", func(w *world) { put(w.t, w.file, ring()); w.listed = nil }, false},
		"being written":   {"its copy lies beside it", func(w *world) { put(w.t, w.file+backupSuffix, ring("k1")) }, false},
		"missing":         {"there is none", func(w *world) { _ = os.Remove(w.file) }, false},
		"a key is absent": {"MySQL knows of a key that is not in it", func(w *world) { w.listed = append(w.listed, mysql.Key{ID: "k2"}) }, true},
		"another owner":   {"two users may have a key of one name", func(w *world) { w.listed = []mysql.Key{{ID: "k1", Owner: "u"}} }, true},
		"MySQL is silent": {"whether all keys are in it is not known", func(w *world) { w.sqlErr = errors.New("refused") }, true},
		"sealed":          {"nothing is taken from a sealed site", func(w *world) { w.agent.Sealed = true }, true},
		"no token":        {"it was not given one", func(w *world) { w.agent.Push = nil }, true},
		"changes between the looks": {"MySQL writes in place", func(w *world) {
			time.AfterFunc(settleTime/2, func() { put(w.t, w.file, ring("k1", "k2")) })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				put(t, w.file, ring("k1"))
				tc.prepare(w)
				got := w.round()
				if len(w.pushes) > 0 {
					t.Errorf("pushed: %s", tc.reason)
				}
				if got.EscrowedDigest != "" && !w.agent.Sealed || (got.Digest != "") != tc.digest || (got.Trouble == "") != w.agent.Sealed {
					t.Errorf("got %+v", got)
				}
				if w.agent.Unescrowed() == "" && !w.agent.Sealed {
					t.Error("I16: it may be opened")
				}
			})
		})
	}
}

// I14: a sealed keyring is one that is in escrow, and what the data needs once MySQL runs with it. A MySQL that does not start says
// nothing of what its data needs: a person may have named the wrong version.
func TestASealedKeyringIsNotedOnceMySQLRunsI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Sealed = true })
		before := Record{Needs: wire.KeyringDigest([]byte(ring("newer"))), Escrowed: wire.KeyringDigest([]byte(ring("newer"))), Version: 5, Made: true}
		w.agent.record = before
		if err := w.agent.Record.Save(before); err != nil {
			t.Fatal(err)
		}
		put(t, w.file, ring("k1"))
		w.sqlErr = errors.New("connection refused")
		if w.round(); w.record() != before {
			t.Errorf("noted of a MySQL that does not start: %+v", w.record())
		}
		w.sqlErr = nil
		w.round()
		digest := wire.KeyringDigest([]byte(ring("k1")))
		if want := (Record{Needs: digest, Escrowed: digest, Made: true}); w.record() != want {
			t.Errorf("got %+v, want %+v", w.record(), want)
		}
	})
}

// I16: a keyring that changed after it was escrowed is noticed when writes are to be opened, not at the next look.
func TestChangedKeyringIsNotEscrowedI16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		w.round()
		put(t, w.file, ring("k1", "k2"))
		if w.agent.Unescrowed() == "" {
			t.Error("it may be opened")
		}
		w.round()
		if len(w.pushes) != 2 || w.agent.Unescrowed() != "" {
			t.Errorf("%d pushes, %q", len(w.pushes), w.agent.Unescrowed())
		}
	})
}

// I16: what is not on the data volume is not reported: who opens the site on a report must not be wiped by a bootstrap that
// knows nothing of it.
func TestEscrowIsDurableBeforeItIsReportedI16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		w.round()
		put(t, w.file, ring("k1", "k2"))
		if err := os.Mkdir(filepath.Join(w.agent.Record.Dir, recordFile+".tmp"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := w.round(); got.EscrowedDigest == wire.KeyringDigest([]byte(ring("k1", "k2"))) || len(w.pushes) != 2 {
			t.Errorf("%d pushes, reported %+v", len(w.pushes), got)
		}
	})
}

// A volume that takes no more writes is told as what it is, and no reason to push every two seconds.
func TestWhatCannotBeNotedIsToldI16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		blocked := filepath.Join(w.agent.Record.Dir, recordFile+".tmp")
		if err := os.Mkdir(blocked, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, w.file, ring("k1"))
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			time.Sleep(w.agent.round(t.Context()))
		}
		if n, lines := len(w.pushes), strings.Count(w.log.String(), "\n"); n > 20 || lines > 5 {
			t.Errorf("%d pushes and %d lines in five minutes:\n%s", n, lines, &w.log)
		}
		if got := w.agent.Report(); got.EscrowedDigest != "" || got.Trouble != errNotNoted.Error() {
			t.Errorf("got %+v", got)
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pushPauseMost)
		if got := w.round(); got.EscrowedDigest != got.Digest || got.Trouble != "" || w.record().Escrowed != got.Digest {
			t.Errorf("once there is room: %+v", got)
		}
	})
}

// Which keyring the data needs is on the volume before the keyring is anywhere else, also half of one: if the pod is lost
// now, the one before does not do. An empty one is never what data needs.
func TestRemembersWhatTheDataNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sqlErr = errors.New("refused")
		for _, content := range []string{ring("k1"), ring("k1")[:30], ring("k1", "k2")} {
			put(t, w.file, content)
			w.round()
			if got := w.record(); got.Needs != wire.KeyringDigest([]byte(content)) {
				t.Errorf("%s: %+v", content, got)
			}
		}
		needs := w.record().Needs
		put(t, w.file, ring())
		w.round()
		_ = os.Remove(w.file)
		w.round()
		if got := w.record().Needs; got != needs {
			t.Errorf("the data needs %s, and the record says %s", needs, got)
		}
	})
}

func TestTriesAgainLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pushErr = errors.New("escrow keyring: answer 503")
		put(t, w.file, ring("k1"))
		began := time.Now()
		for time.Since(began) < 5*time.Minute {
			time.Sleep(w.agent.round(t.Context()))
		}
		if n := len(w.pushes); n < 8 || n > 20 {
			t.Errorf("%d pushes in five minutes", n)
		}
		if n := strings.Count(w.log.String(), "\n"); n > 4 {
			t.Errorf("%d lines of the same:\n%s", n, &w.log)
		}
		put(t, w.file, ring("k1", "k3"))
		if got := w.round(); got.Digest != wire.KeyringDigest([]byte(ring("k1", "k3"))) {
			t.Errorf("while no push is due the report shows an older keyring: %+v", got)
		}
		if got := w.agent.Report(); got.Trouble != w.pushErr.Error() || got.EscrowedDigest != "" {
			t.Errorf("got %+v", got)
		}
		w.pushErr = nil
		time.Sleep(pushPauseMost)
		if got := w.round(); got.Trouble != "" || got.EscrowedVersion != 3 {
			t.Errorf("got %+v", got)
		}
		// An answer about something else is none.
		w.stored = func(wire.KeyringEscrow) wire.KeyringEscrowed {
			return wire.KeyringEscrowed{Version: 4, Digest: "sha256:0"}
		}
		put(t, w.file, ring("k1", "k2"))
		if got := w.round(); got.Trouble == "" || got.EscrowedVersion != 3 {
			t.Errorf("got %+v", got)
		}
	})
}

// What MySQL said holds until another mysqld runs.
func TestReportFollowsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put(t, w.file, ring("k1"))
		w.round()
		w.sqlErr = errors.New("timeout")
		if got := w.round(); !got.Active || got.Keys != 1 {
			t.Errorf("one question without an answer: %+v", got)
		}
		w.mysqld = "9/2"
		if got := w.round(); got.Component != "" || got.Active || got.Keys != 0 {
			t.Errorf("another mysqld has said nothing yet: %+v", got)
		}
	})
}

// I19: nothing that prints shows a key.
func TestNothingShowsKeyBytesI19(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keyring")
	put(t, file, ring("k1"))
	look, err := LookAt(file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "look", look)
	put(t, file, ring("k1")[:70])
	torn, _ := LookAt(file)
	push := wire.KeyringEscrow{Site: "a", Keyring: look.content}
	text := log.String() + fmt.Sprintf("%v %+v %#v %s %q", look, look, look, look, torn.Flaw) + fmt.Sprintf("%v %+v %#v %s", push, push, push, push)
	for _, secret := range []string{"key bytes", "[123 34 118", strings.ToUpper(hex.EncodeToString([]byte("key bytes"))), "data_type"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown: %s", secret, text)
		}
	}
}

// I14: what is there was let start in this round. A record that is damaged meanwhile must not make bootstrap take it for what the
// round was ordered to give up.
func TestDamagedRecordKeepsTheRoundI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Round = "uid/6" })
		put(t, filepath.Join(w.agent.Record.Dir, recordFile), "{")
		w.agent = New(w.agent.Config)
		put(t, w.file, ring("k1"))
		w.round()
		digest := wire.KeyringDigest([]byte(ring("k1")))
		if diff := cmp.Diff(Record{Needs: digest, Escrowed: digest, Version: 3, Round: "uid/6"}, w.record()); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	})
}
