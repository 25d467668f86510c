// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Names of the parts of a backup besides bucket.PartKeyring.
const (
	PartDump  = "dump"
	PartData  = "data"
	PartFacts = "facts"
)

const factsVersion = 1

// Facts are in the envelope: what is to be known of the data, and what a dump does not hold.
type Facts struct {
	Version int `json:"version"`
	// Tables are all base tables of users with their rows, in the snapshot of the backup. Counted is false if nobody counted.
	Counted bool        `json:"counted"`
	Tables  []TableRows `json:"tables"`
	// Accounts are statements that make the users' accounts and roles; of a Logical backup.
	Accounts []string `json:"accounts,omitempty"`
	// Tablespaces are the general ones; of a Logical backup.
	Tablespaces []Tablespace `json:"tablespaces,omitempty"`
	// Events are those of the active site; of a backup of a site that holds events back.
	Events []Event `json:"events,omitempty"`
	// Views are those that were not valid; of a Logical backup.
	Views []View `json:"views,omitempty"`
	// PageSize, CaseNames and DataFilePath are settings that the data was made with.
	PageSize     int64  `json:"pageSize"`
	CaseNames    int64  `json:"caseNames"`
	DataFilePath string `json:"dataFilePath"`
}

// TableRows is how many rows a table has.
type TableRows struct {
	Schema string `json:"schema"`
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
}

// Rows is how many there are in all tables.
func (f Facts) Rows() int64 {
	var sum int64
	for _, t := range f.Tables {
		sum += t.Rows
	}
	return sum
}

// Event is one event of the scheduler as it is on the active site.
type Event struct {
	Schema  string `json:"schema"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled,omitempty"`
}

// View is one that was not valid: mysqldump cannot read it.
type View struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	// Create is the statement that makes it, and Collation that of the connection that made it.
	Create    string `json:"create"`
	Collation string `json:"collation"`
}

// Tablespace is a general one.
type Tablespace struct {
	Name string `json:"name"`
	// BlockBytes is the size of its compressed pages; 0 if they are not compressed.
	BlockBytes int64 `json:"blockBytes,omitempty"`
	Encrypted  bool  `json:"encrypted,omitempty"`
}

// factsMax is far above what a million tables need.
const factsMax = 512 << 20

// WriteFacts makes them the last part of a backup.
func WriteFacts(ctx context.Context, w *bucket.Writer, f Facts) error {
	part, err := w.Part(ctx, PartFacts)
	if err != nil {
		return err
	}
	f.Version = factsVersion
	if err := json.NewEncoder(part).Encode(f); err != nil {
		part.Abort()
		return err
	}
	return part.Close()
}

// ReadFacts reads those of a backup.
func ReadFacts(ctx context.Context, b *bucket.Backup) (f Facts, err error) {
	part, err := b.Part(ctx, PartFacts)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(part, factsMax)) // to its end: only that says that it is whole
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, Fail(Reason(bucket.Damaged), fmt.Errorf("read what the backup says of its data: %w", err))
	}
	if f.Version > factsVersion {
		return f, Fail(Reason(bucket.TooNew), errors.New("the backup was written by a newer version: load it with that one"))
	}
	return f, nil
}
