// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// chainOf goes from key to key.
func chainOf(keys ...ed25519.PrivateKey) (c wire.Chain) {
	for i := 1; i < len(keys); i++ {
		c = c.Next(keys[i-1], public(keys[i]))
	}
	return c
}

func signed(t *testing.T, by ed25519.PrivateKey, keys wire.Chain) wire.Signed {
	t.Helper()
	out, err := wire.Sign(by, wire.Statement{Namespace: "n", Group: "g", ActiveSite: "a", Epoch: 1, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOnlyAChainFromTheTrustedKeyIsBelievedI3: whoever can put anything in the way of a statement still cannot sign one.
func TestOnlyAChainFromTheTrustedKeyIsBelievedI3(t *testing.T) {
	first, second, third, stranger := newKey(t), newKey(t), newKey(t), newKey(t)
	good := chainOf(first, second, third)
	change := func(change func(wire.Chain)) wire.Chain {
		c := slices.Clone(good)
		change(c)
		return c
	}
	for name, tc := range map[string]struct {
		trusted ed25519.PublicKey
		signed  wire.Signed
		want    ed25519.PrivateKey
	}{
		"the trusted key itself":               {public(first), signed(t, first, nil), first},
		"one that took its place":              {public(first), signed(t, second, chainOf(first, second)), second},
		"one after that":                       {public(first), signed(t, third, good), third},
		"trusted from the middle on":           {public(second), signed(t, third, good), third},
		"trusted is the last":                  {public(third), signed(t, third, good), third},
		"a key that is used again":             {public(second), signed(t, first, chainOf(first, second, first)), first},
		"a stranger":                           {public(first), signed(t, stranger, nil), nil},
		"a stranger who names himself":         {public(first), signed(t, stranger, wire.Chain{{Key: public(stranger)}}), nil},
		"a stranger with a chain of his own":   {public(first), signed(t, third, chainOf(stranger, third)), nil},
		"a stranger behind the trusted key":    {public(first), signed(t, stranger, append(wire.Chain{{Key: public(first)}}, chainOf(second, stranger)[1])), nil},
		"a stranger at the end of a chain":     {public(first), signed(t, stranger, append(slices.Clone(good), chainOf(stranger, stranger)[1])), nil},
		"a stranger shows the chain of others": {public(first), signed(t, stranger, good), nil},
		"a link that nobody signed":            {public(first), signed(t, third, change(func(c wire.Chain) { c[1].Signature = nil })), nil},
		"a stranger with another's signature":  {public(first), signed(t, stranger, wire.Chain{good[0], {Key: public(stranger), Signature: good[1].Signature}}), nil},
		"a link left out":                      {public(first), signed(t, third, wire.Chain{good[0], good[2]}), nil},
		"an earlier key after it was replaced": {public(second), signed(t, first, nil), nil},
		"an earlier key goes on elsewhere":     {public(second), signed(t, stranger, chainOf(first, stranger)), nil},
		"an earlier key in the whole chain":    {public(second), signed(t, first, good), nil},
		"a key of another length":              {public(first), signed(t, third, change(func(c wire.Chain) { c[2].Key = c[2].Key[1:] })), nil},
		"nothing is trusted":                   {nil, signed(t, first, nil), nil},
		"nothing is trusted, and named":        {nil, signed(t, first, wire.Chain{{}, good[0]}), nil},
	} {
		s, by, err := wire.VerifyBy(tc.trusted, tc.signed)
		switch {
		case tc.want == nil && (!errors.Is(err, wire.ErrSignature) || s.Epoch != 0 || by != nil):
			t.Errorf("I3: %s: believed %+v, signed by %x (%v)", name, s, by, err)
		case tc.want != nil && (err != nil || !by.Equal(public(tc.want))):
			t.Errorf("%s: signed by %x, %v", name, by, err)
		}
	}
}

// TestAChainIsNoLongerThanItsSlotTakes, and a longer one is not believed: who checks it does bounded work.
func TestAChainIsNoLongerThanItsSlotTakes(t *testing.T) {
	keys := []ed25519.PrivateKey{newKey(t)}
	for range wire.MaxChain + 2 {
		keys = append(keys, newKey(t))
	}
	last := keys[len(keys)-1]
	c := chainOf(keys...)
	if len(c) != wire.MaxChain || !c.Has(public(last)) || c.Has(public(keys[2])) || !c.Has(public(keys[3])) {
		t.Errorf("a chain of %d keys", len(c))
	}
	if by, ok := c.Last(public(keys[3])); !ok || !by.Equal(public(last)) {
		t.Error("what is left of it does not lead to the last key")
	}
	if s := signed(t, last, c); len(s) > 3500 {
		t.Errorf("the statement has %d bytes", len(s))
	}
	var long wire.Chain
	for i := 1; i < len(keys); i++ {
		long = append(long, chainOf(keys[i-1], keys[i])[min(i-1, 1):]...)
	}
	if _, ok := long.Last(public(keys[0])); ok || len(long) <= wire.MaxChain {
		t.Errorf("a chain of %d keys is believed", len(long))
	}
}

// TestWhatIsNoKeyIsInNoChainI3: neither at its beginning nor behind a good signature.
func TestWhatIsNoKeyIsInNoChainI3(t *testing.T) {
	first := newKey(t)
	short := wire.Chain(nil).Next(first, public(newKey(t))[1:])
	for name, tc := range map[string]struct {
		chain   wire.Chain
		trusted ed25519.PublicKey
	}{
		"nothing is trusted":            {nil, nil},
		"half a key is trusted":         {nil, public(first)[1:]},
		"half a key at the end":         {short, public(first)},
		"half a key is trusted by it":   {short, short[1].Key},
		"nothing is trusted, nor named": {wire.Chain{{}}, nil},
	} {
		if key, ok := tc.chain.Last(tc.trusted); ok {
			t.Errorf("I3: %s: %x signs", name, key)
		}
	}
}

func TestChainsOfTheSameKeysAreEqual(t *testing.T) {
	first, second, third := newKey(t), newKey(t), newKey(t)
	c := chainOf(first, second)
	unsigned := slices.Clone(c)
	unsigned[1].Signature = nil
	for name, tc := range map[string]struct {
		other wire.Chain
		want  bool
	}{
		"itself": {chainOf(first, second), true}, "another key": {chainOf(first, third), false}, "more keys": {chainOf(first, second, third), false},
		"none": {nil, false}, "other signatures": {unsigned, true},
	} {
		if got := c.Equal(tc.other); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAKeyAsText(t *testing.T) {
	key := public(newKey(t))
	if got, err := wire.ParseKey(wire.EncodeKey(key)); err != nil || !got.Equal(key) {
		t.Errorf("%x, %v", got, err)
	}
	for _, bad := range []string{"", "key", base64.StdEncoding.EncodeToString(key[1:]), strings.Repeat(wire.EncodeKey(key), 2)} {
		if _, err := wire.ParseKey(bad); !errors.Is(err, wire.ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
