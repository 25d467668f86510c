// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decoyPrefix begins what is said of the decoys of plantDecoys.
const decoyPrefix = "a decoy"

// plantDecoys writes a key and a token that open nothing into a directory of logs, a file for each spelling, and returns what has
// to be found there.
func plantDecoys(t *testing.T, dir string) (*vault, map[string]bool) {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	d := &vault{needles: map[string]string{}}
	d.key(t, strings.ToUpper(hex.EncodeToString(raw)), decoyPrefix+" of a key")
	d.token(rand.Text()+rand.Text(), decoyPrefix+" of a token")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	missing, n := map[string]bool{}, 0
	for text, what := range d.needles {
		n++
		// Each behind so much else that it lies across two reads.
		content := strings.Repeat(".", readSize-len(text)/2) + text + "\n"
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", n)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		missing[what] = true
	}
	return d, missing
}

// key remembers a key in every spelling. A keyring has it in hexadecimal digits.
func (v *vault) key(t *testing.T, digits, what string) {
	t.Helper()
	for text, spelling := range keySpellings(t, digits) {
		v.needles[text] = what + " (" + spelling + ")"
	}
}

// token remembers a token in every spelling.
func (v *vault) token(token, what string) {
	for text, spelling := range tokenSpellings(token) {
		v.needles[text] = what + " (" + spelling + ")"
	}
}

// keySpellings are how a program could tell a key: as the keyring has it, or as the bytes that it is.
func keySpellings(t *testing.T, digits string) map[string]string {
	t.Helper()
	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal("a key of a keyring is not in hexadecimal digits") // not the error: it may repeat parts of it
	}
	texts := map[string]string{
		digits: "as in the keyring", strings.ToUpper(digits): "upper hex", hex.EncodeToString(raw): "lower hex", string(raw): "bytes",
		inNumbers(raw): "numbers",
	}
	// A Secret, and the body of a request, hold the whole keyring in base64.
	inBase64(texts, digits, "base64 of the digits")
	inBase64(texts, string(raw), "base64 of the bytes")
	return texts
}

func tokenSpellings(token string) map[string]string {
	texts := map[string]string{
		token: "text", hex.EncodeToString([]byte(token)): "lower hex", strings.ToUpper(hex.EncodeToString([]byte(token))): "upper hex",
		inNumbers([]byte(token)): "numbers",
	}
	inBase64(texts, token, "base64")
	return texts
}

// inNumbers is what Go prints of bytes, without the brackets: they may be a part of more.
func inNumbers(raw []byte) string { return strings.Trim(fmt.Sprintf("%d", raw), "[]") }

// inBase64 adds what any text in base64 holds that holds a secret, for each of the three places in a group of bytes at which it may
// begin, in both alphabets.
func inBase64(texts map[string]string, secret, spelling string) {
	for begins := range 3 {
		part := []byte(secret[begins:])
		part = part[:len(part)/3*3]
		texts[base64.RawURLEncoding.EncodeToString(part)] = fmt.Sprintf("%s for URLs, from %d", spelling, begins)
		texts[base64.RawStdEncoding.EncodeToString(part)] = fmt.Sprintf("%s, from %d", spelling, begins)
	}
}
