// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Names of the parts of a backup besides bucket.PartKeyring.
const (
	partDump  = "dump"
	partData  = "data"
	partFacts = "facts"
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
	// PageSize, CaseNames and DataFilePath are settings that the data was made with.
	PageSize     int64  `json:"pageSize"`
	CaseNames    int64  `json:"caseNames"`
	DataFilePath string `json:"dataFilePath"`
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

func writeFacts(ctx context.Context, w *bucket.Writer, f Facts) error {
	part, err := w.Part(ctx, partFacts)
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

func readFacts(ctx context.Context, b *bucket.Backup) (f Facts, err error) {
	part, err := b.Part(ctx, partFacts)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(part, factsMax)) // to its end: only that says that it is whole
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fail(Reason(bucket.Damaged), fmt.Errorf("read what the backup says of its data: %w", err))
	}
	if f.Version > factsVersion {
		return f, fail(Reason(bucket.TooNew), errors.New("the backup was written by a newer version: load it with that one"))
	}
	return f, nil
}

// tablespaces are the general ones, which mysqldump leaves out.
func tablespaces(ctx context.Context, conn *sql.Conn) (out []Tablespace, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT name, IF(zip_page_size > 0, zip_page_size, 0), encryption = 'Y' FROM information_schema.innodb_tablespaces "+
		"WHERE space_type = 'General' AND name <> 'mysql' ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t Tablespace
		if err := rows.Scan(&t.Name, &t.BlockBytes, &t.Encrypted); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// statement makes the tablespace, in a file of its name in the data directory, wherever it was before.
func (t Tablespace) statement(encrypt bool) string {
	file := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(path.Base(t.Name) + ".ibd")
	s := "CREATE TABLESPACE " + quoteName(t.Name) + " ADD DATAFILE '" + file + "'"
	if t.BlockBytes > 0 {
		s += fmt.Sprintf(" FILE_BLOCK_SIZE = %d", t.BlockBytes)
	}
	if encrypt {
		s += " ENCRYPTION = 'Y'"
	}
	return s
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
