// SPDX-License-Identifier: Apache-2.0

package inspect

import "github.com/mysql-mfg/mfg/api/wire"

// transaction is one that is being looked into.
type transaction struct {
	wire.ArchivedTransaction
	to int64
}

func (t *transaction) note(words string) {
	if len(t.Statements) >= wire.MaxInspectTables {
		t.More++
		return
	}
	t.Statements = append(t.Statements, words)
}

func (t *transaction) count(of *table, op operation) {
	for i := range t.Tables {
		if at := &t.Tables[i]; at.Schema == of.schema && at.Table == of.name {
			add(at, op)
			return
		}
	}
	if len(t.Tables) >= wire.MaxInspectTables {
		t.More++
		return
	}
	t.Tables = append(t.Tables, wire.ArchivedTable{Schema: of.schema, Table: of.name})
	add(&t.Tables[len(t.Tables)-1], op)
}

func add(t *wire.ArchivedTable, op operation) {
	switch op {
	case inserted:
		t.Inserted++
	case updated:
		t.Updated++
	case deleted:
		t.Deleted++
	}
}
