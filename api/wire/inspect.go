// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"time"
)

// Questions about an archive of binary logs: commands of the program `backup`, which reads an InspectRequest from stdin and writes lines of
// InspectLine. The question comes by stdin because arguments and environments are seen by others than who asks.
const (
	InspectTimeline = "timeline"
	InspectFind     = "find"
	InspectLost     = "lost"
)

// Bounds of question and answer.
const (
	MaxInspectRequest = 128 << 10
	// MaxInspectLine bounds one line of the answer, and MaxInspectText what of it is text of rows.
	MaxInspectLine = 4 << 20
	MaxInspectText = 64 << 10
	// MaxInspectTransactions is how many transactions are told at most; DefaultInspectTransactions unless another number is asked for.
	MaxInspectTransactions     = 100000
	DefaultInspectTransactions = 1000
	// MaxInspectTables is how many tables of a transaction are told.
	MaxInspectTables = 16
	inspectTextMax   = 4 << 10
)

// Why a question was not answered, where that is no reason of a condition: the others are those, or kinds of storage.
const (
	// InspectBadRequest: the question is none, or has no answer.
	InspectBadRequest = "BadRequest"
	// InspectUnreadableLog: the archive holds a binary log that cannot be read.
	InspectUnreadableLog = "UnreadableLog"
)

// InspectRequest is a question.
type InspectRequest struct {
	// Identity has age identities, as a file of age-keygen has; empty takes those of BackupConfig.IdentityFile. It is a secret.
	Identity string       `json:"identity,omitempty"`
	Timeline *AskTimeline `json:"timeline,omitempty"`
	Find     *AskFind     `json:"find,omitempty"`
	Lost     *AskLost     `json:"lost,omitempty"`
}

// AskTimeline asks what can be recovered, and, with a Target, whether that can.
type AskTimeline struct {
	Target *BackupTarget `json:"target,omitempty"`
	// Backup is the one that a restore to Target begins with; empty for the newest that leads there.
	Backup string `json:"backup,omitempty"`
}

// BackupTarget is a point in the history of a group: exactly one of its fields.
type BackupTarget struct {
	Time           time.Time `json:"time,omitzero"`
	GTID           string    `json:"gtid,omitempty"`
	BeforeGTID     string    `json:"beforeGTID,omitempty"`
	BeforeFailover int64     `json:"beforeFailover,omitempty"`
	Latest         bool      `json:"latest,omitempty"`
}

// AskFind asks for transactions of the history: exactly one of Drop, Before and Touching.
type AskFind struct {
	// Drop finds what removed a table or all of its rows: DROP TABLE, TRUNCATE, DROP DATABASE.
	Drop *AskTable `json:"drop,omitempty"`
	// Before finds the last transaction that was committed until then, and the first one after it.
	Before time.Time `json:"before,omitzero"`
	// Touching finds every transaction that changed a table or one of its rows.
	Touching *AskRow `json:"touching,omitempty"`
	// Since and Until bound when it was committed; zero does not. Epoch bounds in which; 0 does not.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Epoch int64     `json:"epoch,omitempty"`
	Most  int       `json:"most,omitempty"`
}

// AskTable is a table; without a schema one of any schema.
type AskTable struct {
	Schema string `json:"schema,omitempty"`
	Table  string `json:"table"`
}

// AskRow is a table, or a row of it.
type AskRow struct {
	AskTable
	// Key are the values of the primary key, in its order; empty for any row. Column is the place of the one column to compare instead, from
	// 1; 0 for the primary key.
	Key    []string `json:"key,omitempty"`
	Column int      `json:"column,omitempty"`
}

// How rows are written out.
const (
	RowsNone = ""
	RowsSQL  = "sql"
	RowsJSON = "json"
)

// AskLost asks for what failovers lost and the archive still has.
type AskLost struct {
	// Epoch is the epoch in which it was committed; 0 for all.
	Epoch int64 `json:"epoch,omitempty"`
	// Rows are written out in this form, as Text.
	Rows string `json:"rows,omitempty"`
	Most int    `json:"most,omitempty"`
}

// InspectLine is one line of an answer: exactly one of its fields.
type InspectLine struct {
	Timeline    *ArchiveTimeline     `json:"timeline,omitempty"`
	Check       *TargetCheck         `json:"check,omitempty"`
	Transaction *ArchivedTransaction `json:"transaction,omitempty"`
	// Text is a piece of the rows that were asked for: SQL, or a line of JSON for each change (ArchivedChange). A piece may end anywhere.
	Text string      `json:"text,omitempty"`
	End  *InspectEnd `json:"end,omitempty"`
}

// InspectEnd is the last line. An answer without it was cut off.
type InspectEnd struct {
	// Reason is Succeeded, or one CamelCase word for what went wrong. Message says it for people, and what to do.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Files, Bytes and Transactions are how much was read; Truncated is true if there is more than was told.
	Files        int   `json:"files,omitempty"`
	Bytes        int64 `json:"bytes,omitempty"`
	Transactions int64 `json:"transactions,omitempty"`
	Truncated    bool  `json:"truncated,omitempty"`
	// KeyBy says by what a row was compared if the log does not say what the primary key is.
	KeyBy string `json:"keyBy,omitempty"`
}

// ArchiveTimeline is what can be recovered.
type ArchiveTimeline struct {
	Location string `json:"location"`
	// Earliest and Latest are the points that the archive reaches, without regard to gaps; zero if there is nothing. What can be recovered
	// begins with a backup: Backups say which leads on.
	Earliest time.Time         `json:"earliest,omitzero"`
	Latest   time.Time         `json:"latest,omitzero"`
	Epochs   []ArchiveEpoch    `json:"epochs"`
	Gaps     []ArchiveGap      `json:"gaps"`
	Backups  []ArchiveBackup   `json:"backups"`
	Files    int               `json:"files"`
	Bytes    int64             `json:"bytes"`
	Archived string            `json:"archivedGTID,omitempty"`
	Problems []string          `json:"problems,omitempty"`
	Heart    *ArchiveHeartbeat `json:"heartbeat,omitempty"`
}

// ArchiveHeartbeat says until when nothing was written beyond what is archived.
type ArchiveHeartbeat struct {
	Site  string    `json:"site"`
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
}

// ArchiveEpoch is one epoch.
type ArchiveEpoch struct {
	Epoch int64  `json:"epoch"`
	Site  string `json:"site"`
	// Kind is how it began: Initial, Planned, Emergency and so on. PromotedAt is when; zero if the archive does not know.
	Kind       string    `json:"kind,omitempty"`
	PromotedAt time.Time `json:"promotedAt,omitzero"`
	// First and Last are the first and last commits in its files, SeenAt until when it was archived.
	First        time.Time `json:"first,omitzero"`
	Last         time.Time `json:"last,omitzero"`
	SeenAt       time.Time `json:"seenAt,omitzero"`
	Transactions int64     `json:"transactions"`
	// Lost counts what no later epoch knew; LostGTIDs names it, if it is not too long.
	Lost      int64  `json:"lost"`
	LostGTIDs string `json:"lostGTIDs,omitempty"`
	Files     int    `json:"files"`
	Bytes     int64  `json:"bytes"`
}

// ArchiveGap is what is missing.
type ArchiveGap struct {
	GTIDs        string    `json:"gtids,omitempty"`
	Transactions int64     `json:"transactions"`
	After        time.Time `json:"after,omitzero"`
	Before       time.Time `json:"before,omitzero"`
	Epoch        int64     `json:"epoch"`
	Site         string    `json:"site"`
}

// ArchiveBackup is a backup in the same place, as its manifest tells.
type ArchiveBackup struct {
	Name       string    `json:"name"`
	Profile    string    `json:"profile,omitempty"`
	Method     string    `json:"method,omitempty"`
	Site       string    `json:"site,omitempty"`
	Epoch      int64     `json:"epoch,omitempty"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Bytes      int64     `json:"bytes,omitempty"`
	// Reaches is true if the archive leads on from it to its latest point; Why says what is in the way.
	Reaches bool   `json:"reaches"`
	Why     string `json:"why,omitempty"`
}

// TargetCheck says whether a target can be recovered.
type TargetCheck struct {
	// Refusal is empty if it can, else one CamelCase word, and Message says why and what to do.
	Refusal string      `json:"refusal,omitempty"`
	Message string      `json:"message,omitempty"`
	Gap     *ArchiveGap `json:"gap,omitempty"`
	// Backup is the one that it begins with, Files and Bytes how much is replayed after it.
	Backup string `json:"backup,omitempty"`
	Files  int    `json:"files,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
}

// ArchivedTransaction is one transaction of the archive. It tells nothing of rows.
type ArchivedTransaction struct {
	GTID string `json:"gtid"`
	// Time is when it was committed first, to the microsecond.
	Time  time.Time `json:"time,omitzero"`
	Epoch int64     `json:"epoch"`
	Site  string    `json:"site"`
	// Log and Position are where it begins, Bytes how long it is there.
	Log      string `json:"log"`
	Position int64  `json:"position"`
	Bytes    int64  `json:"bytes"`
	// Statements are what is no row, as verb and object: "DROP TABLE shop.orders". Tables count rows. More is how many of both did not fit.
	Statements []string        `json:"statements,omitempty"`
	Tables     []ArchivedTable `json:"tables,omitempty"`
	More       int             `json:"more,omitempty"`
	// Role says why it is told: Match, or Before or After a time; LostInEpoch is 0 unless a failover lost it.
	Role string `json:"role,omitempty"`
	// Previous is the transaction of the history before it, of a match of DROP; empty if the archive begins with it.
	Previous string `json:"previous,omitempty"`
}

// Roles of a transaction in an answer.
const (
	RoleMatch  = "Match"
	RoleBefore = "Before"
	RoleAfter  = "After"
	RoleLost   = "Lost"
)

// ArchivedTable counts the changed rows of one table.
type ArchivedTable struct {
	Schema   string `json:"schema"`
	Table    string `json:"table"`
	Inserted int64  `json:"inserted,omitempty"`
	Updated  int64  `json:"updated,omitempty"`
	Deleted  int64  `json:"deleted,omitempty"`
}

// ArchivedChange is one change of a row.
type ArchivedChange struct {
	GTID   string          `json:"gtid"`
	Schema string          `json:"schema"`
	Table  string          `json:"table"`
	Op     string          `json:"op"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Why says why the values are left out.
	Why string `json:"why,omitempty"`
}

var errNoInspectLine = errors.New("what came is no answer of the program backup: is its image of the version of this plugin?")

// ParseInspectLine reads one line of an answer. What is in a bucket may have been put there by others: names come back as printable text on
// one line. Text is passed on as it is: it is what was asked for.
func ParseInspectLine(raw []byte) (InspectLine, error) {
	var l InspectLine
	if len(raw) > MaxInspectLine || json.Unmarshal(raw, &l) != nil {
		return InspectLine{}, errNoInspectLine
	}
	if l.End != nil {
		if !word(l.End.Reason) {
			return InspectLine{}, errNoInspectLine
		}
		l.End.Message, l.End.KeyBy = line(l.End.Message, inspectTextMax), line(l.End.KeyBy, inspectTextMax)
	}
	if t := l.Transaction; t != nil {
		t.clean()
	}
	if t := l.Timeline; t != nil {
		t.clean()
	}
	if c := l.Check; c != nil {
		c.Refusal, c.Message, c.Backup = line(c.Refusal, backupReasonMax), line(c.Message, inspectTextMax), line(c.Backup, backupNameMax)
		if c.Gap != nil {
			c.Gap.clean()
		}
	}
	return l, nil
}

func (t *ArchivedTransaction) clean() {
	for _, s := range []*string{&t.GTID, &t.Site, &t.Log, &t.Role, &t.Previous} {
		*s = line(*s, inspectTextMax)
	}
	for i := range t.Statements {
		t.Statements[i] = line(t.Statements[i], inspectTextMax)
	}
	for i := range t.Tables {
		t.Tables[i].Schema, t.Tables[i].Table = line(t.Tables[i].Schema, inspectTextMax), line(t.Tables[i].Table, inspectTextMax)
	}
}

func (t *ArchiveTimeline) clean() {
	t.Location, t.Archived = line(t.Location, inspectTextMax), line(t.Archived, MaxInspectLine)
	for i := range t.Epochs {
		e := &t.Epochs[i]
		e.Site, e.Kind, e.LostGTIDs = line(e.Site, backupNameMax), line(e.Kind, backupReasonMax), line(e.LostGTIDs, inspectTextMax)
	}
	for i := range t.Gaps {
		t.Gaps[i].clean()
	}
	for i := range t.Backups {
		b := &t.Backups[i]
		b.Name, b.Profile, b.Method, b.Site = line(b.Name, backupNameMax), line(b.Profile, backupNameMax), line(b.Method, backupNameMax), line(b.Site, backupNameMax)
		b.Why = line(b.Why, inspectTextMax)
	}
	for i := range t.Problems {
		t.Problems[i] = line(t.Problems[i], inspectTextMax)
	}
	if t.Heart != nil {
		t.Heart.Site = line(t.Heart.Site, backupNameMax)
	}
}

func (g *ArchiveGap) clean() {
	g.GTIDs, g.Site = line(g.GTIDs, inspectTextMax), line(g.Site, backupNameMax)
}
