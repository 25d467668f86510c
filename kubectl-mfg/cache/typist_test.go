// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// said is what redis-cli 7.0 says on a terminal, as it was recorded.
const (
	question = "Please input password: "
	stars    = "***********\r\n"
	prompt   = "127.0.0.1:6379> "
)

// TestTypist: the password is typed once it is asked for and not before, nothing of that is shown, and then the person types.
func TestTypist(t *testing.T) {
	for name, tc := range map[string]struct {
		says        []string
		typed, seen string
	}{
		"Sized":   {[]string{question, stars + prompt}, "hunter2.x\rkeys", prompt},
		"Pieces":  {[]string{"Please input pass", "word: ", "****", "*******\r", "\n" + prompt, "more"}, "hunter2.x\rkeys", prompt + "more"},
		"Unsized": {[]string{whereIs, "\x1b[999C" + whereIs, "\x1b[79D" + question, stars + whereIs, prompt}, "\x1b[1;1R\x1b[1;80Rhunter2.x\rkeys", whereIs + prompt},
		"Echoed":  {[]string{question, "hunter2.x\r\n" + prompt}, "hunter2.x\rkeys", prompt}, // a terminal that cannot hide it
		"TooMuch": {[]string{strings.Repeat("x", mostAsked+1), question}, "keys", strings.Repeat("x", mostAsked+1) + question},
		"Many":    {[]string{whereIs, whereIs + whereIs + whereIs, question, stars}, "\x1b[1;1R\x1b[1;80Rhunter2.x\rkeys", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			k := newTypist(strings.NewReader("keys"), &out, "hunter2.x")
			for _, s := range tc.says {
				if n, err := k.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
			typed, err := io.ReadAll(k)
			if err != nil || string(typed) != tc.typed || out.String() != tc.seen {
				t.Errorf("%v, typed %q, seen %q", err, typed, out.String())
			}
		})
	}
}

// TestTypistWaits: nothing is typed before the question, and a client that never asks leaves the keyboard, and what it said, to the person.
func TestTypistWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newTypist(strings.NewReader("keys"), &out, "hunter2.x")
		typed := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(k)
			typed <- string(all)
		}()
		_, _ = k.Write([]byte("sh: nothing\r\n"))
		time.Sleep(askWithin - time.Millisecond)
		synctest.Wait()
		if len(typed) > 0 || out.Len() > 0 {
			t.Fatalf("typed before it was asked for; seen %q", out.String())
		}
		if got := <-typed; got != "keys" || out.String() != "sh: nothing\r\n" {
			t.Errorf("typed %q, seen %q", got, out.String())
		}
	})
}
