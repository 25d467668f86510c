// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// enginesInterval is how often the sidecar searches the data directory for tables that a clone does not copy. enginesShare bounds
// the load if there are very many files: the next search waits at least this many times as long as the last one took.
const (
	enginesInterval = time.Minute
	enginesShare    = 100
	// definitionBytes bounds the size of a table's definition that is read.
	definitionBytes = 16 << 20
)

// rowsIn are the engines that keep rows of their own outside InnoDB, with the ending of the file that has them. A clone copies
// InnoDB alone: it makes their tables, but without rows. The file of an ARCHIVE table does not show whether it is empty. MEMORY keeps
// rows too, but every restart loses them, so no user relies on them; the other engines have none.
var rowsIn = map[string]string{"MyISAM": ".MYD", "CSV": ".CSV", "ARCHIVE": ".ARZ"}

// engines looks for tables whose rows a clone loses. It looks at files and asks MySQL nothing, so our accounts need no right to
// see the tables of users.
type engines struct {
	datadir string
	log     *slog.Logger

	mu     sync.Mutex
	report *wire.EngineReport
}

// Report is what the last look found; nil before the first.
func (e *engines) Report() *wire.EngineReport {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report
}

// run looks now and then until ctx ends. Its caller must not wait for it: a look may hang for as long as the volume does.
func (e *engines) run(ctx context.Context) {
	for {
		began := time.Now()
		found, err := look(e.datadir)
		wait := max(enginesInterval, enginesShare*time.Since(began))
		if err == nil {
			e.mu.Lock()
			e.report = &found
			e.mu.Unlock()
		} else {
			// The last answer stays valid. An incomplete datadir, as during a clone, proves nothing.
			e.log.Debug("look for tables that a clone does not copy", "error", err)
			wait = enginesInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// look counts the tables of users whose rows a clone loses.
func look(datadir string) (wire.EngineReport, error) {
	schemas, err := os.ReadDir(datadir)
	if err != nil {
		return wire.EngineReport{}, err
	}
	var found wire.EngineReport
	for _, schema := range schemas {
		switch name := schema.Name(); {
		case !schema.IsDir(), strings.HasPrefix(name, "#"), name == "mysql", name == "sys", name == "performance_schema":
			continue
		}
		if err := lookAt(filepath.Join(datadir, schema.Name()), &found); err != nil {
			return wire.EngineReport{}, err
		}
	}
	return found, nil
}

func lookAt(dir string, found *wire.EngineReport) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // dropped meanwhile
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		// Only tables outside InnoDB have their definition in a file of its own: NAME_NUMBER.sdi.
		definition, is := strings.CutSuffix(file.Name(), ".sdi")
		if !is {
			continue
		}
		ending, keeps := rowsIn[engineOf(filepath.Join(dir, file.Name()))]
		if !keeps {
			continue
		}
		found.Tables++
		table := definition[:max(0, strings.LastIndexByte(definition, '_'))]
		if info, err := os.Stat(filepath.Join(dir, table+ending)); err != nil || info.Size() > 0 {
			found.WithRows++ // a file that cannot be checked counts as one with rows
		}
	}
	return nil
}

// engineOf reads the engine of a table from its definition; empty if it cannot be read.
func engineOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || info.Size() > definitionBytes {
		return ""
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var definition struct {
		Object struct {
			Engine string `json:"engine"`
		} `json:"dd_object"`
	}
	if err := json.Unmarshal(raw, &definition); err != nil {
		return ""
	}
	return definition.Object.Engine
}
