// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"
)

// Phase is what is being done.
type Phase string

// The phases.
const (
	Preparing Phase = "Preparing"
	Dumping   Phase = "Dumping"
	Cloning   Phase = "Cloning"
	Storing   Phase = "Storing"
	Loading   Phase = "Loading"
	Unpacking Phase = "Unpacking"
	Checking  Phase = "Checking"
	Replaying Phase = "Replaying"
	Done      Phase = "Done"
)

// Progress is one line of JSON.
type Progress struct {
	Time  time.Time `json:"time"`
	Phase Phase     `json:"phase"`
	// Bytes of the plaintext that were done in this phase, and Total, which is an estimate; 0 if it is not known.
	Bytes int64 `json:"bytes,omitempty"`
	Total int64 `json:"total,omitempty"`
	// Stored is how many bytes the storage was given.
	Stored int64 `json:"stored,omitempty"`
	// Percent of this phase, from 0 to 100; an estimate that never goes beyond 99 before the phase has ended.
	Percent int `json:"percent"`
	// Result is in the last line alone.
	Result *Result `json:"result,omitempty"`
}

// Result is the outcome. It fits into the 4096 bytes of a termination message.
type Result struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message,omitempty"`
	Backup  string `json:"backup,omitempty"`
	// Method is that of the backup that was loaded.
	Method string `json:"method,omitempty"`
	// GTIDExecuted is left out if it is longer than 1 KiB; the manifest has it, and an archiver that prunes reads it there.
	GTIDExecuted string `json:"gtidExecuted,omitempty"`
	MySQLVersion string `json:"mysqlVersion,omitempty"`
	Encrypted    bool   `json:"encrypted,omitempty"`
	// Bytes are those of the plaintext, StoredBytes those in the storage.
	Bytes       int64 `json:"bytes,omitempty"`
	StoredBytes int64 `json:"storedBytes,omitempty"`
	// Tables and Rows were counted.
	Tables int   `json:"tables,omitempty"`
	Rows   int64 `json:"rows,omitempty"`
	// Seconds is how long all of it took, RestoreSeconds the part until the data was there.
	Seconds        float64 `json:"seconds"`
	RestoreSeconds float64 `json:"restoreSeconds,omitempty"`
	// Warnings are what was left out and can be done without, ten at most.
	Warnings []string `json:"warnings,omitempty"`
	// ManifestRead is true once the manifest of the backup was read in the storage: that, and nothing else, makes it one.
	ManifestRead bool `json:"manifestRead,omitempty"`
	// Removed counts what delete and sweep removed.
	Removed int `json:"removed,omitempty"`
	// ReplayedTo is when the last of the transactions was committed that the archive added, Replayed how many these were, and
	// ReplaySeconds how long that took. Nil without any.
	ReplayedTo    *time.Time `json:"replayedTo,omitempty"`
	Replayed      int64      `json:"replayed,omitempty"`
	ReplaySeconds float64    `json:"replaySeconds,omitempty"`
}

const (
	progressInterval = time.Second
	messageMax       = 1024
	warningMax       = 120
	warningsMax      = 10
	resultGTIDMax    = 1024
)

const (
	// workBytes is by how many bytes a server has gone on that is at work. What one that hangs says in its log is far less.
	workBytes = 16 << 20
	// workShare is the part of the time for which a server computes that is at work. One that waits takes a hundredth.
	workShare = 10
	// silencePatience is how many times as long what works in silence may stand still: a replay passes what is not wanted, preparations list the
	// archive, a check counts the rows of a large table.
	silencePatience = 4
)

// Work is what a process has done so far: bytes that it read and wrote, and the time for which it computed.
type Work struct {
	Bytes int64
	CPU   time.Duration
}

// Reporter writes progress. Nobody waits for it: what cannot be written is left out.
type Reporter struct {
	out io.Writer
	// stored is how many bytes the storage was given; nil if nothing is stored.
	stored func() int64
	// work is what the server here has done; nil without one.
	work func() Work

	mu    sync.Mutex
	file  *os.File
	ended bool
	moved time.Time
	// worked is what the server had done when it was last seen to go on.
	worked Work
	last   time.Time
	phase  Phase
	bytes  int64
	total  int64
}

// NewReporter writes to the output, and to a file if one is named.
func NewReporter(out io.Writer, file string) *Reporter {
	r := &Reporter{out: out}
	if file != "" {
		r.file, _ = os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // best effort, see above
	}
	return r
}

// Begin begins a phase.
func (r *Reporter) Begin(p Phase, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.bytes, r.total, r.moved = p, 0, total, time.Now()
	r.write(Progress{})
}

// Add counts bytes of the phase, and writes a line now and then.
func (r *Reporter) Add(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes += n; n > 0 {
		r.moved = time.Now()
	}
	r.tick()
}

// Meter is a writer that counts what goes on to another one as bytes of the phase.
func (r *Reporter) Meter(to io.Writer) io.Writer { return &meter{to: to, report: r} }

type meter struct {
	to     io.Writer
	report *Reporter
}

func (w *meter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.report.Add(int64(n))
	return n, err
}

// Stores has every line tell how many bytes the storage was given.
func (r *Reporter) Stores(stored func() int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored = stored
}

// Watches has the work of a server count as well as bytes: it may be silent while it builds an index, or flushes what it has in memory.
func (r *Reporter) Watches(work func() Work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work, r.worked = work, work()
}

// Set sets the bytes of the phase.
func (r *Reporter) Set(bytes, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes != r.bytes {
		r.moved = time.Now()
	}
	r.bytes, r.total = bytes, total
	r.tick()
}

// Stalled is true if not a byte went on for so long, and the server here did nothing. The phases that are left out are bounded in themselves, and so
// is a check whose server is not watched.
func (r *Reporter) Stalled(limit time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.phase == Dumping, r.phase == Loading, r.phase == Unpacking:
	case r.phase == Replaying, r.phase == Preparing, r.phase == Checking && r.work != nil:
		limit *= silencePatience
	default:
		return false
	}
	r.look(limit)
	return time.Since(r.moved) > limit
}

// look notices that the server has gone on. Of a server that was started again nothing is known yet.
func (r *Reporter) look(limit time.Duration) {
	if r.work == nil {
		return
	}
	now := r.work()
	if now.Bytes-r.worked.Bytes >= workBytes || now.CPU-r.worked.CPU >= limit/workShare {
		r.worked, r.moved = now, time.Now()
	}
	if now.Bytes < r.worked.Bytes || now.CPU < r.worked.CPU {
		r.worked = now
	}
}

func (r *Reporter) tick() {
	if time.Since(r.last) >= progressInterval {
		r.write(Progress{})
	}
}

// write writes a line. The outcome is the last: what was given up may still want to say something.
func (r *Reporter) write(p Progress) {
	if r.ended {
		return
	}
	r.last = time.Now()
	p.Time, p.Phase, p.Bytes, p.Total = r.last.UTC(), r.phase, r.bytes, r.total
	if r.stored != nil {
		p.Stored = r.stored()
	}
	switch {
	case p.Result != nil && p.Result.Reason == Succeeded:
		p.Percent = 100
	case r.total > 0:
		p.Percent = int(min(99, r.bytes*100/r.total))
	}
	line, err := json.Marshal(p)
	if err != nil {
		return
	}
	line = append(line, '\n')
	_, _ = r.out.Write(line)
	if r.file != nil {
		_, _ = r.file.Write(line)
	}
}

// End writes the outcome, as a last line and into a file if one is named.
func (r *Reporter) End(res Result, file string) {
	res = res.Bounded()
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.Reason == Succeeded {
		r.phase = Done
	}
	r.write(Progress{Result: &res})
	r.ended = true
	if r.file != nil {
		_ = r.file.Close()
	}
	if file == "" {
		return
	}
	if raw, err := json.Marshal(res); err == nil {
		_ = os.WriteFile(file, raw, 0o640) //nolint:gosec // the kubelet reads it
	}
}

// Bounded is the result as a termination message takes it.
func (res Result) Bounded() Result {
	res.Message = Clip(res.Message, messageMax)
	if len(res.GTIDExecuted) > resultGTIDMax {
		res.GTIDExecuted = ""
	}
	res.Warnings = res.Warnings[:min(len(res.Warnings), warningsMax)]
	for i := range res.Warnings {
		res.Warnings[i] = Clip(res.Warnings[i], warningMax)
	}
	return res
}

// Clip cuts a text without cutting a character.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most] + "..."
}
