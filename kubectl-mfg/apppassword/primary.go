// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

// Which one of an account's two passwords is the primary one? MySQL lets in with either and says of neither which it is; only the hash that it
// stores tells. caching_sha2_password stores $A$ROUNDS$, a salt and a digest: ROUNDS are thousands in hex, and the digest is that of SHA-crypt
// (https://www.akkadia.org/drepper/SHA-crypt.txt). It is written out here because libraries of SHA-crypt cut a salt to the 16 characters of that
// text, and MySQL's has 20.
const (
	pluginHashed = "caching_sha2_password"
	hashMagic    = "$A$"
	roundsWidth  = 3
	saltWidth    = 20
	digestWidth  = 43
	hashWidth    = len(hashMagic) + roundsWidth + len("$") + saltWidth + digestWidth
)

func primaryStatement(user string) string {
	return "SELECT plugin, HEX(authentication_string) FROM mysql.user WHERE User = " + mysqlclient.Quote(user) + " AND Host = '%'"
}

// primary is true if a password is the account's primary one. What cannot be told is an error.
func (s server) primary(ctx context.Context, rootPassword, user, password string) (bool, error) {
	said, err := s.Run(ctx, mysqlclient.Root, rootPassword, primaryStatement(user))
	if err != nil {
		return false, err
	}
	fields := strings.Fields(said)
	if len(fields) != 2 || fields[0] != pluginHashed {
		return false, fmt.Errorf("mysql in pod %s does not store the password of %s as %s does", s.Pod, user, pluginHashed)
	}
	stored, err := hex.DecodeString(fields[1])
	if err != nil {
		return false, fmt.Errorf("mysql in pod %s stores a password of %s that is not understood", s.Pod, user)
	}
	is, understood := isHashOf(string(stored), password)
	if !understood {
		return false, fmt.Errorf("mysql in pod %s stores a password of %s that is not understood", s.Pod, user)
	}
	return is, nil
}

// isHashOf is true if a stored hash is that of a password; understood is false for what is no such hash.
func isHashOf(stored, password string) (is, understood bool) {
	rest, is := strings.CutPrefix(stored, hashMagic)
	if !is || len(stored) != hashWidth || rest[roundsWidth] != '$' {
		return false, false
	}
	thousands, err := strconv.ParseUint(rest[:roundsWidth], 16, 16)
	if err != nil || thousands == 0 {
		return false, false
	}
	rest = rest[roundsWidth+1:]
	return shaCrypt(password, rest[:saltWidth], int(thousands)*1000) == rest[saltWidth:], true
}

// shaCrypt is the digest of SHA-crypt with SHA-256.
func shaCrypt(password, salt string, rounds int) string {
	key := []byte(password)
	alternate := sum(key, []byte(salt), key)
	first := bytes.Join([][]byte{key, []byte(salt), filled(alternate, len(key))}, nil)
	for n := len(key); n > 0; n >>= 1 {
		if n&1 != 0 {
			first = append(first, alternate...)
		} else {
			first = append(first, key...)
		}
	}
	digest := sum(first)
	keys := filled(sum(bytes.Repeat(key, len(key))), len(key))
	salts := filled(sum(bytes.Repeat([]byte(salt), 16+int(digest[0]))), len(salt))
	for i := range rounds {
		var parts [][]byte
		ends := [2][]byte{digest, keys}
		parts = append(parts, ends[i&1])
		if i%3 != 0 {
			parts = append(parts, salts)
		}
		if i%7 != 0 {
			parts = append(parts, keys)
		}
		digest = sum(append(parts, ends[1-i&1])...)
	}
	return encoded(digest)
}

func sum(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write(p) // it never fails
	}
	return h.Sum(nil)
}

// filled repeats a digest up to a length.
func filled(digest []byte, length int) []byte {
	return bytes.Repeat(digest, length/len(digest)+1)[:length]
}

// encoded writes a digest in the alphabet and the order of SHA-crypt: three bytes that are ten apart in four characters, the lowest bits first.
func encoded(digest []byte) string {
	const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	put := func(bits uint32, characters int) {
		for range characters {
			out.WriteByte(alphabet[bits&0x3f])
			bits >>= 6
		}
	}
	const apart = 10
	at := [3]int{0, apart, 2 * apart}
	for range apart {
		put(uint32(digest[at[0]])<<16|uint32(digest[at[1]])<<8|uint32(digest[at[2]]), 4)
		for i, j := range at {
			at[i] = (j + 2*apart + 1) % (3 * apart)
		}
	}
	put(uint32(digest[3*apart+1])<<8|uint32(digest[3*apart]), 3)
	return out.String()
}
