// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"
)

// Server is the MySQL server behind a connection.
type Server struct {
	UUID string
	// Host is what the server reports as its host, the name of its site's Service.
	Host string
	Site string
}

// Key names one row for good: a sequence number is never used twice, also not after an unknown outcome.
type Key struct {
	Writer string
	Worker int
	Seq    int64
}

// Commit is a row whose commit was acknowledged. The server committed it at some moment from Start to Ack.
type Commit struct {
	Key
	Server
	Start, Ack time.Duration
}

// Attempt is a row with an unknown outcome.
type Attempt struct {
	Key
	Server
	Start, GaveUp time.Duration
	Reason        string
}

// State is a moment from which on a worker was refused for one and the same reason.
type State struct {
	Worker int
	Server Server
	At     time.Duration
	Reason string
}

// Loss is a write of a session that was acknowledged and is not there any more.
type Loss struct {
	Key
	Server
	At    time.Duration
	Found string
}

// Journal is what one writer did.
type Journal struct {
	Writer  string
	Commits []Commit
	Unknown []Attempt
	States  []State
	Lost    []Loss
	Refused map[string]int64
	// Complete is true if the closing line is there and its totals fit: nothing was lost on the way here.
	Complete bool
	// Offset added to a monotonic time gives the wall clock.
	Offset time.Time
}

// Errors of Read.
var (
	ErrNoStart = errors.New("journal does not begin with a start line")
	ErrTotals  = errors.New("journal's totals differ from its lines")
)

// maxLine bounds one line of a journal.
const maxLine = 1 << 20

// ReadFile reads the journal in a file.
func ReadFile(path string) (Journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return Journal{}, fmt.Errorf("open journal: %w", err)
	}
	defer func() { _ = f.Close() }()
	j, err := Read(f)
	if err != nil {
		return j, fmt.Errorf("read %s: %w", path, err)
	}
	return j, nil
}

// Read reads a journal. A torn last line, as a killed writer leaves, only makes it incomplete.
func Read(r io.Reader) (Journal, error) {
	j := Journal{Refused: map[string]int64{}}
	conns := map[int]Server{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if !lines.Scan() {
				return j, lines.Err()
			}
			return j, fmt.Errorf("decode line %d: %w", n, err)
		}
		if (n == 1) != (e.Kind == KindStart) {
			return j, fmt.Errorf("line %d: %w", n, ErrNoStart)
		}
		if err := j.add(e, conns); err != nil {
			return j, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return j, lines.Err()
}

func (j *Journal) add(e Entry, conns map[int]Server) error {
	at, key := time.Duration(e.At), Key{Writer: j.Writer, Worker: e.Worker, Seq: e.Seq}
	switch e.Kind {
	case KindStart:
		j.Writer, j.Offset = e.ID, e.Wall.Add(-at)
	case KindConn:
		conns[e.Worker] = Server{UUID: e.Server, Host: e.Host, Site: e.Site}
	case KindAck:
		j.Commits = append(j.Commits, Commit{Key: key, Server: conns[e.Worker], Start: time.Duration(e.Start), Ack: at})
	case KindUnknown:
		j.Unknown = append(j.Unknown, Attempt{
			Key: key, Server: conns[e.Worker], Start: time.Duration(e.Start), GaveUp: at, Reason: e.Reason,
		})
	case KindState:
		j.States = append(j.States, State{Worker: e.Worker, Server: conns[e.Worker], At: at, Reason: e.Reason})
	case KindLost:
		j.Lost = append(j.Lost, Loss{Key: key, Server: conns[e.Worker], At: at, Found: e.Reason})
	case KindEnd:
		maps.Copy(j.Refused, e.Refused)
		if e.Acked != int64(len(j.Commits)) || e.Unknowns != int64(len(j.Unknown)) || e.Losses != int64(len(j.Lost)) {
			return fmt.Errorf("%w: %d of %d acknowledged, %d of %d unknown, %d of %d lost",
				ErrTotals, len(j.Commits), e.Acked, len(j.Unknown), e.Unknowns, len(j.Lost), e.Losses)
		}
		j.Complete = true
	default:
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
	return nil
}

// Wall turns a monotonic time of this journal's machine into the wall clock.
func (j Journal) Wall(at time.Duration) time.Time { return j.Offset.Add(at) }

// Commits gathers the commits of several journals.
func Commits(journals ...Journal) []Commit {
	var all []Commit
	for _, j := range journals {
		all = append(all, j.Commits...)
	}
	return all
}

// Unknowns gathers the attempts with unknown outcome of several journals.
func Unknowns(journals ...Journal) []Attempt {
	var all []Attempt
	for _, j := range journals {
		all = append(all, j.Unknown...)
	}
	return all
}
