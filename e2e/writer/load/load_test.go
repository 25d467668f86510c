// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// server is a MySQL that answers the nth insert as told, and every later one with nil.
type server struct {
	site    string
	answers []error
	rows    []Row
	opened  int
	closed  int
}

func (s *server) Server() journal.Server { return journal.Server{UUID: "u", Host: "h", Site: s.site} }

func (s *server) Close() error {
	s.closed++
	return nil
}

func (s *server) Insert(row Row) error {
	s.rows = append(s.rows, row)
	if n := len(s.rows) - 1; n < len(s.answers) {
		return s.answers[n]
	}
	return nil
}

// write runs one worker against the server for a second of pretended time.
func write(t *testing.T, s *server, cfg Config) journal.Journal {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cfg.Concurrency, cfg.Rate, cfg.RefusedRate = 1, 10, 10
		if cfg.Address == nil {
			cfg.Address = func() (string, error) { return "here", nil }
		}
		cfg.Connect = func(context.Context, string) (Conn, error) {
			s.opened++
			return s, nil
		}
		if err := Run(ctx, cfg, journal.NewWriter(&out, "w", Now(), time.Now())); err != nil {
			t.Error(err)
		}
	})
	j, err := journal.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if !j.Complete {
		t.Error("the journal has no end")
	}
	return j
}

func TestEveryOutcomeIsJournaledAsWhatItWas(t *testing.T) {
	s := &server{site: "east", answers: []error{nil, Refusal{Reason: "1290"}, errors.New("connection lost"), nil}}
	j := write(t, s, Config{Site: "east"})
	if len(j.Unknown) != 1 || j.Unknown[0].Seq != 3 {
		t.Errorf("unknown = %+v, want the third row", j.Unknown)
	}
	if len(j.Commits) != len(s.rows)-2 || j.Commits[0].Seq != 1 || j.Commits[1].Seq != 4 {
		t.Errorf("commits = %+v of %d rows", j.Commits, len(s.rows))
	}
	if j.Refused["1290"] != 1 {
		t.Errorf("refused = %v", j.Refused)
	}
	seen := map[int64]bool{}
	for _, r := range s.rows {
		if seen[r.Seq] {
			t.Errorf("row %d was sent twice", r.Seq)
		}
		seen[r.Seq] = true
	}
}

func TestReconnects(t *testing.T) {
	refused := []error{Refusal{Reason: "1290"}}
	for name, tt := range map[string]struct {
		reason string
		site   string
		answer []error
		want   int
	}{
		"direct, read-only":    {reason: "there is no better server to find", site: "east", answer: refused, want: 1},
		"Service, read-only":   {reason: "the Service may lead elsewhere by now", answer: refused, want: 2},
		"direct, offline mode": {reason: "the server cuts it", site: "east", answer: []error{Refusal{Reason: "3032", Gone: true}}, want: 2},
		"outcome unknown":      {reason: "the connection is in no known state", site: "east", answer: []error{errors.New("eof")}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{site: "east", answers: tt.answer}
			write(t, s, Config{Site: tt.site})
			if s.opened != tt.want || s.closed != tt.want {
				t.Errorf("%s: %d connections opened and %d closed, want %d", tt.reason, s.opened, s.closed, tt.want)
			}
		})
	}
}

func TestDirectWriterNeverWritesElsewhere(t *testing.T) {
	s := &server{site: "west"}
	j := write(t, s, Config{Site: "east"})
	if len(s.rows) != 0 || j.Refused["other site"] == 0 {
		t.Errorf("%d rows went to another site, refused %v", len(s.rows), j.Refused)
	}
}

func TestWithoutAddressNothingIsTried(t *testing.T) {
	s := &server{site: "east"}
	j := write(t, s, Config{Address: func() (string, error) { return "", errors.New("none") }})
	if s.opened != 0 || j.Refused["no address"] < 10 {
		t.Errorf("opened %d, refused %v: it must go on asking", s.opened, j.Refused)
	}
}

func TestClassify(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want Refusal
	}{
		"read-only":    {&mysql.MySQLError{Number: 1290}, Refusal{Reason: "1290"}},
		"offline mode": {&mysql.MySQLError{Number: 3032}, Refusal{Reason: "3032", Gone: true}},
		// Killed in the middle of a commit, or caught by a shutdown: nobody knows.
		"interrupted":     {&mysql.MySQLError{Number: 1317}, Refusal{}},
		"shutdown":        {&mysql.MySQLError{Number: 1053}, Refusal{}},
		"connection lost": {mysql.ErrInvalidConn, Refusal{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Refusal
			_ = errors.As(classify(tt.err), &got)
			if got != tt.want {
				t.Errorf("refusal = %+v, want %+v", got, tt.want)
			}
		})
	}
	if classify(nil) != nil {
		t.Error("success became an error")
	}
}

func TestSiteOfHost(t *testing.T) {
	for host, want := range map[string]string{
		"mysql-orders-east.shop.svc.cluster.local": "east",
		"mysql-orders-eu-west.shop":                "eu-west",
		"elsewhere":                                "elsewhere",
		"":                                         "",
	} {
		if got := SiteOfHost("orders", host); got != want {
			t.Errorf("site of %q = %q, want %q", host, got, want)
		}
	}
}
