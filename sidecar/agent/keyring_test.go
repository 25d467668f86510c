// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// fakeKeyring is one that is in escrow, or not.
type fakeKeyring struct{ escrowed atomic.Bool }

func (k *fakeKeyring) Report() *wire.KeyringReport {
	return &wire.KeyringReport{Digest: "sha256:1"}
}

func (k *fakeKeyring) Unescrowed() string {
	if k.escrowed.Load() {
		return ""
	}
	return "the keyring is not in escrow"
}

// I16: whatever the operator says, a site opens only once its keyring is in escrow; one that is open stays open.
func TestItOpensOnlyWithItsKeyringInEscrowI16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, keyring := newWorld(t), &fakeKeyring{}
		w.operator, w.keyring = told(5, "a"), keyring
		w.boot()
		defer w.end()
		w.after(10 * time.Second)
		w.mustBe("read-only")
		if r := w.push(told(5, "a")); r.Writable || r.Message == "" || r.Keyring == nil || r.Keyring.Digest != "sha256:1" {
			t.Errorf("got %+v", r)
		}
		keyring.escrowed.Store(true)
		w.after(3 * time.Second)
		w.mustBe("writable")
		if !w.agent.Open() {
			t.Error("it does not know that it is open")
		}
		keyring.escrowed.Store(false)
		w.after(time.Minute)
		w.mustBe("writable")
	})
}

func TestWithoutEncryptionNothingIsSaidOfAKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.bootOpen()
		defer w.end()
		if r := w.push(told(5, "a")); r.Keyring != nil {
			t.Errorf("got %+v", r.Keyring)
		}
	})
}
