// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// realKeyring is what mysqld 9.7.4 wrote when it initialised a datadir with everything encrypted; no data was ever kept
// under these keys.
func realKeyring(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/keyring")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// one is a keyring with one key, whose data is d.
func one(d string) []byte {
	return []byte(`{"version":"1.0","elements":[{"user":"","data_id":"INNODBKey-x-1","data_type":"AES","data":"` + d + `","extension":[]}]}`)
}

func TestContentIsCheckedAsMySQLReadsIt(t *testing.T) {
	real := realKeyring(t)
	tests := map[string]struct {
		reason  string
		content []byte
		want    bool
	}{
		"Real":           {"what mysqld wrote", real, true},
		"OneKey":         {"any key will do", one("00ff"), true},
		"SmallLetters":   {"hexadecimal is hexadecimal", one("abcdef"), true},
		"OfAUser":        {"keys of accounts are keys too", bytes.Replace(one("00"), []byte(`"user":""`), []byte(`"user":"a@b"`), 1), true},
		"NewlineAtEnd":   {"a person may have restored it", append(bytes.Clone(real), '\n'), true},
		"More":           {"a later MySQL may say more", bytes.Replace(one("00"), []byte(`"user"`), []byte(`"new":1,"user"`), 1), true},
		"Empty":          {"no content", nil, false},
		"NotJSON":        {"any other file", []byte("-----BEGIN PRIVATE KEY-----"), false},
		"NoKeys":         {"a missing file is made anew, empty", []byte(`{"version":"1.0","elements":[]}`), false},
		"NullKeys":       {"as empty", []byte(`{"version":"1.0","elements":null}`), false},
		"NullKey":        {"an element that is none", []byte(`{"version":"1.0","elements":[null]}`), false},
		"NoElements":     {"something else", []byte(`{"version":"1.0"}`), false},
		"NoVersion":      {"MySQL requires it", bytes.Replace(one("00"), []byte(`"version":"1.0",`), nil, 1), false},
		"NumberVersion":  {"a string in MySQL's schema", bytes.Replace(one("00"), []byte(`"1.0"`), []byte(`1.0`), 1), false},
		"Capitals":       {"MySQL would not find it", bytes.Replace(one("00"), []byte(`"elements"`), []byte(`"Elements"`), 1), false},
		"NoUser":         {"required", bytes.Replace(one("00"), []byte(`"user":"",`), nil, 1), false},
		"NullUser":       {"a string in MySQL's schema", bytes.Replace(one("00"), []byte(`"user":""`), []byte(`"user":null`), 1), false},
		"NoID":           {"required", bytes.Replace(one("00"), []byte(`"data_id":"INNODBKey-x-1",`), nil, 1), false},
		"NoType":         {"required", bytes.Replace(one("00"), []byte(`"data_type":"AES",`), nil, 1), false},
		"NoExtension":    {"required", bytes.Replace(one("00"), []byte(`,"extension":[]`), nil, 1), false},
		"TextExtension":  {"an array in MySQL's schema", bytes.Replace(one("00"), []byte(`[]}`), []byte(`""}`), 1), false},
		"NoData":         {"a key without a key", one(""), false},
		"OddData":        {"a key that was cut short", one("00f"), false},
		"OtherData":      {"no key", one("xy"), false},
		"AnArray":        {"not MySQL's", []byte(`[]`), false},
		"Null":           {"not MySQL's", []byte(`null`), false},
		"TwoFiles":       {"a file and its rest", append(bytes.Clone(real), real...), false},
		"InvalidUnicode": {"MySQL writes none", one("00\xff"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkContent(wire.KeyringEscrow{Keyring: tc.content, Digest: wire.KeyringDigest(tc.content)})
			if (err == nil) != tc.want || err != nil && !errors.Is(err, wire.ErrNotAKeyring) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			err = checkContent(wire.KeyringEscrow{Keyring: append(bytes.Clone(tc.content), ' '), Digest: wire.KeyringDigest(tc.content)})
			if !errors.Is(err, wire.ErrDigestMismatch) {
				t.Errorf("content that was changed on the way: %v", err)
			}
		})
	}
}

// Half a file is what a reader sees that looks while MySQL writes.
func TestNoPartOfAKeyringIsAKeyring(t *testing.T) {
	real := realKeyring(t)
	for n := range real {
		if isKeyring(real[:n]) {
			t.Fatalf("the first %d bytes of %d are taken for a keyring", n, len(real))
		}
	}
}

// I11: nothing of what was pushed is in what is said of it.
func TestRefusalsOfContentTellNothingOfIt(t *testing.T) {
	for _, content := range []string{
		`{"version":"1.0","elements":[{"user":"","data_id":"x","data_type":"AES","data":"5EC2E75EC2E7x","extension":[]}]}`,
		`{"version":"1.0","elements":5EC2E7}`, `5EC2E7`, `"5EC2E7`, `{"5EC2E7":1}`, `{"version":5.2e7,"elements":"5EC2E7"}`,
	} {
		err := checkContent(wire.KeyringEscrow{Keyring: []byte(content), Digest: wire.KeyringDigest([]byte(content))})
		if err == nil || strings.Contains(strings.ToUpper(err.Error()), "5EC2E7") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// FuzzKeyring: whatever comes, checking it ends; and what is taken is what MySQL's own schema asks for.
func FuzzKeyring(f *testing.F) {
	f.Add(realKeyring(f))
	f.Add(one("00"))
	f.Add([]byte(`{"version":"1.0","elements":[]}`))
	f.Add([]byte(`{"version":"1.0","elements":[{"user":null}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if !isKeyring(content) {
			return
		}
		var file struct {
			Version  *string
			Elements []struct {
				User, Data *string
				DataID     *string `json:"data_id"`
				DataType   *string `json:"data_type"`
				Extension  []any
			}
		}
		if err := json.Unmarshal(content, &file); err != nil || file.Version == nil || len(file.Elements) == 0 {
			t.Fatalf("taken: %q (%v)", content, err)
		}
	})
}
