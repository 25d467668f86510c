// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"strings"
	"testing"
)

// TestTheHashOfAPassword: what openssl passwd -5 says, for keys shorter and longer than a digest.
func TestTheHashOfAPassword(t *testing.T) {
	for _, tc := range []struct {
		password, salt string
		rounds         int
		want           string
	}{
		{"Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		{"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ and more", "sixteenbytesalt.", 6000, "SklAyDco8Q6HkurNcAD.nMBplYOPxz9d/moWGCZMuL/"},
	} {
		if got := shaCrypt(tc.password, tc.salt, tc.rounds); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.password, got, tc.want)
		}
	}
	const salt = "\x01 a salt of 20 bytes"
	stored := "$A$005$" + salt + shaCrypt("one", salt, 5000)
	for name, tc := range map[string]struct {
		stored         string
		is, understood bool
	}{
		"its own":        {stored, true, true},
		"another":        {"$A$005$" + salt + shaCrypt("two", salt, 5000), false, true},
		"other rounds":   {strings.Replace(stored, "$005$", "$006$", 1), false, true},
		"no rounds":      {strings.Replace(stored, "$005$", "$000$", 1), false, false},
		"rounds of what": {strings.Replace(stored, "$005$", "$x05$", 1), false, false},
		"no separator":   {strings.Replace(stored, "$005$", "$0055", 1), false, false},
		"cut off":        {stored[:len(stored)-1], false, false},
		"another kind":   {strings.Replace(stored, "$A$", "$B$", 1), false, false},
		"none":           {"", false, false},
	} {
		if is, understood := isHashOf(tc.stored, "one"); is != tc.is || understood != tc.understood {
			t.Errorf("%s: %t, understood: %t", name, is, understood)
		}
	}
}
