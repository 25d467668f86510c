// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
)

func cutoffOf(t *testing.T) (wire.Cutoff, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 25, 2, 0, 0, 123000, time.UTC)
	return wire.Cutoff{
		Namespace: "shop", Group: "orders", Cutoff: &at, Backup: "orders-nightly-20261101-0200", GTIDExecuted: "u:1-9", Epoch: 2, Site: "b",
		Epochs: []wire.CutoffEpoch{{Epoch: 2, Site: "b", ServerUUID: "v", PromotedAt: at, Kind: "Planned", GTIDExecuted: "u:1-9"}},
	}, key
}

func bodyOf(t *testing.T, c wire.Cutoff, key ed25519.PrivateKey) []byte {
	t.Helper()
	signed, err := wire.SignCutoff(key, c)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(wire.CutoffAnswer{Cutoff: c, Signed: signed})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	out, _ := key.Public().(ed25519.PublicKey)
	return out
}

func TestCutoffIsReadAsItWasSigned(t *testing.T) {
	c, key := cutoffOf(t)
	got, err := wire.OpenCutoff(publicOf(key), "shop", "orders", bodyOf(t, c, key))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Of one who has replaced the key that is trusted, by a word of that key.
	next, nextKey := cutoffOf(t)
	next.Keys = wire.Chain(nil).Next(key, publicOf(nextKey))
	if _, err := wire.OpenCutoff(publicOf(key), "shop", "orders", bodyOf(t, next, nextKey)); err != nil {
		t.Errorf("after the key was replaced: %v", err)
	}
}

// What an archiver removes is gone: nothing but the word of its own group's operator may have it remove anything.
func TestCutoffOfNobodyElse(t *testing.T) {
	c, key := cutoffOf(t)
	_, stranger := cutoffOf(t)
	many := c
	for i := range wire.MaxCutoffEpochs + 1 {
		many.Epochs = append(many.Epochs, wire.CutoffEpoch{Epoch: int64(i)})
	}
	statement, err := wire.Sign(key, wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "b", Epoch: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"nothing":                 nil,
		"no JSON":                 []byte("<html>"),
		"not signed":              []byte(`{"namespace":"shop","group":"orders","cutoff":"2026-11-25T02:00:00Z","epochs":[]}`),
		"signed by a stranger":    bodyOf(t, c, stranger),
		"signed for another use":  fmt.Appendf(nil, `{"signed":%q}`, statement),
		"too many epochs":         bodyOf(t, many, key),
		"longer than it can be":   append(bodyOf(t, c, key), make([]byte, wire.MaxCutoffBytes)...),
		"of another group's name": bodyOf(t, wire.Cutoff{Namespace: "shop", Group: "carts"}, key),
		"of another namespace":    bodyOf(t, wire.Cutoff{Namespace: "test", Group: "orders"}, key),
	} {
		if got, err := wire.OpenCutoff(publicOf(key), "shop", "orders", body); !errors.Is(err, wire.ErrCutoff) || got.Cutoff != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// What people read beside the signature counts for nothing.
	var forged wire.CutoffAnswer
	if err := json.Unmarshal(bodyOf(t, c, key), &forged); err != nil {
		t.Fatal(err)
	}
	forged.Backup = "another"
	body, _ := json.Marshal(forged)
	if got, err := wire.OpenCutoff(publicOf(key), "shop", "orders", body); err != nil || got.Backup != c.Backup {
		t.Errorf("%+v, %v", got, err)
	}
}
