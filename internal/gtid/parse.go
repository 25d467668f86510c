// SPDX-License-Identifier: Apache-2.0

package gtid

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("not a GTID set")

const (
	uuidLength   = 36
	maxTagLength = 32
)

// Parse reads a GTID set as MySQL writes it (gtid_executed, RECEIVED_TRANSACTION_SET and the like): UUIDs and tags in
// any case, spaces and newlines between tokens, members and intervals in any order, repeated or overlapping. The empty
// string is the empty set. Anything else that MySQL would not print is an error rather than a guess: a misread set can
// promote the wrong site.
func Parse(text string) (Set, error) {
	if strings.TrimSpace(text) == "" {
		return Set{}, nil
	}
	found := map[key][]interval{}
	for part := range strings.SplitSeq(text, ",") {
		if err := parseMember(strings.TrimSpace(part), found); err != nil {
			return Set{}, err
		}
	}
	members := make([]member, 0, len(found))
	for k, ivs := range found {
		members = append(members, member{key: k, intervals: normalize(ivs)})
	}
	slices.SortFunc(members, func(a, b member) int { return a.key.compare(b.key) })
	return Set{members: members}, nil
}

// MustParse is Parse for sets written in tests; it panics on an error.
func MustParse(text string) Set {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// parseMember reads "uuid[:tag]:interval[:interval]...[:tag:interval...]" into found.
func parseMember(text string, found map[key][]interval) error {
	if text == "" {
		return fmt.Errorf("%w: empty member beside a comma", ErrSyntax)
	}
	head, rest, ok := strings.Cut(text, ":")
	k := key{}
	if err := parseUUID(strings.TrimSpace(head), &k.uuid); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s has no interval", ErrSyntax, clip(head))
	}
	pending := true // the UUID, or the last tag, still waits for an interval
	for token := range strings.SplitSeq(rest, ":") {
		token = strings.TrimSpace(token)
		if isTag(token) {
			if pending && k.tag != "" {
				return fmt.Errorf("%w: tag %s has no interval", ErrSyntax, k.tag)
			}
			k.tag, pending = strings.ToLower(token), true
			continue
		}
		iv, err := parseInterval(token)
		if err != nil {
			return err
		}
		found[k] = append(found[k], iv)
		pending = false
	}
	if pending {
		return fmt.Errorf("%w: tag %s has no interval", ErrSyntax, k.tag)
	}
	return nil
}

func parseUUID(text string, into *[16]byte) error {
	bad := fmt.Errorf("%w: %s is not a UUID", ErrSyntax, clip(text))
	if len(text) != uuidLength {
		return bad
	}
	for _, i := range []int{8, 13, 18, 23} {
		if text[i] != '-' {
			return bad
		}
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(into[:], []byte(digits)); err != nil {
		return bad
	}
	return nil
}

// isTag reports whether a token can be a tag: a letter or underscore, then letters, digits and underscores.
func isTag(token string) bool {
	if token == "" || len(token) > maxTagLength {
		return false
	}
	for i := range len(token) {
		c := token[i]
		letter := c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')
		if digit := '0' <= c && c <= '9'; !letter && (!digit || i == 0) {
			return false
		}
	}
	return true
}

func parseInterval(token string) (interval, error) {
	first, last, ranged := strings.Cut(token, "-")
	start, err := parseNumber(first)
	if err != nil {
		return interval{}, err
	}
	end := start
	if ranged {
		if end, err = parseNumber(last); err != nil {
			return interval{}, err
		}
	}
	if end < start {
		return interval{}, fmt.Errorf("%w: interval %s runs backwards", ErrSyntax, clip(token))
	}
	return interval{start: start, end: end + 1}, nil
}

// parseNumber is stricter than strconv: digits only, so no sign, no underscore, no base.
func parseNumber(text string) (int64, error) {
	text = strings.TrimSpace(text)
	bad := fmt.Errorf("%w: %s is not a transaction number", ErrSyntax, clip(text))
	if text == "" {
		return 0, bad
	}
	var n int64
	for i := range len(text) {
		d := int64(text[i]) - '0'
		if d < 0 || d > 9 || n > (maxNumber-d)/10 {
			return 0, bad
		}
		n = n*10 + d
	}
	if n == 0 {
		return 0, bad
	}
	return n, nil
}

// clip quotes text that Parse did not understand, and shortens a long one.
func clip(text string) string {
	const most = 48
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
