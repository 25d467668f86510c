// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsOfClientsAndOfPeople(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"a client's":   {in: string(AppendCommand(nil, "SET", "a b", "x\r\ny")), want: []string{"SET", "a b", "x\r\ny"}},
		"a person's":   {in: "REPLTAKEOVER 5\n", want: []string{"REPLTAKEOVER", "5"}},
		"empty":        {in: "*0\r\n"},
		"an empty key": {in: string(AppendCommand(nil, "GET", "")), want: []string{"GET", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadCommand(bufio.NewReader(strings.NewReader(c.in)))
			if err != nil || !cmp.Equal(got, c.want) {
				t.Errorf("read %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, in := range []string{
		"*1\r\n:1\r\n", "*9999999999\r\n", "*1\r\n$-1\r\n", "*1\r\n$99999999999\r\n", "*1\r\n$1\r\nabc\r\n", strings.Repeat("x", maxLine+1) + "\r\n",
	} {
		if got, err := ReadCommand(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.30q was read as %.30q, %v", in, got, err)
		}
	}
	for _, in := range []string{"\r\n", "?\r\n", "$-2\r\n", "$3\r\nabcde\r\n", strings.Repeat("*1\r\n", maxDepth+2) + ":1\r\n"} {
		if got, err := Read(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.30q was read as %v, %v", in, got, err)
		}
	}
}

func TestReplies(t *testing.T) {
	in := "+OK\r\n-ERR no\r\n:-7\r\n$2\r\nhi\r\n$-1\r\n*2\r\n:1\r\n$0\r\n\r\n"
	r := bufio.NewReader(strings.NewReader(in))
	want := []Value{
		{Kind: '+', Text: "OK"}, {Kind: '-', Text: "ERR no"}, {Kind: ':', Int: -7}, {Kind: '$', Text: "hi"}, {Kind: '$', Null: true},
		{Kind: '*', Items: []Value{{Kind: ':', Int: 1}, {Kind: '$'}}},
	}
	for _, w := range want {
		got, err := Read(r)
		if err != nil || !cmp.Equal(got, w) {
			t.Errorf("read %+v, %v; want %+v", got, err, w)
		}
	}
	var told Error
	if err := want[1].Err(); !errors.As(err, &told) || told.Code() != "ERR" {
		t.Errorf("error = %v", err)
	}
}

func TestRepliesOfVersion3AreCopiedWhole(t *testing.T) {
	reply := "|1\r\n+a\r\n:1\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n%2\r\n$1\r\na\r\n#t\r\n$1\r\nb\r\n*2\r\n,1.5\r\n_\r\n"
	var out bytes.Buffer
	r := bufio.NewReader(strings.NewReader(reply + "+next\r\n"))
	if err := CopyReply(&out, r); err != nil || out.String() != reply {
		t.Errorf("copied %q, %v", out.String(), err)
	}
	if rest, err := Read(r); err != nil || rest.Text != "next" {
		t.Errorf("the next reply is %v, %v", rest, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"))
	f.Add([]byte("%1\r\n+a\r\n$-1\r\n"))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = ReadCommand(bufio.NewReader(bytes.NewReader(raw)))
		_, _ = Read(bufio.NewReader(bytes.NewReader(raw)))
		_ = CopyReply(&bytes.Buffer{}, bufio.NewReader(bytes.NewReader(raw)))
	})
}
