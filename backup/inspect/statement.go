// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
)

// statement is what a logged statement does, without its text: that may hold anything.
type statement struct {
	// verb is its first words: DROP TABLE, CREATE USER. Empty of what only begins or ends a transaction.
	verb string
	// tables are those that it names; of a database the Table is empty.
	tables []wire.AskTable
}

// words says it in short.
func (s statement) words() string {
	if len(s.tables) == 0 {
		return s.verb
	}
	names := make([]string, 0, len(s.tables))
	for _, t := range s.tables[:min(len(s.tables), wire.MaxInspectTables)] {
		names = append(names, strings.Trim(t.Schema+"."+t.Table, "."))
	}
	return clip(s.verb + " " + strings.Join(names, ", "))
}

// wordsMax bounds one statement in an answer.
const wordsMax = 1000

func clip(text string) string {
	if len(text) > wordsMax {
		return strings.ToValidUTF8(text[:wordsMax], "") + "..."
	}
	return text
}

// removes is true if it takes away a table or all of its rows.
func (s statement) removes(want wire.AskTable) bool {
	switch s.verb {
	case "DROP TABLE", "TRUNCATE TABLE":
		return s.names(want)
	case "DROP DATABASE":
		return len(s.tables) > 0 && want.Schema != "" && strings.EqualFold(s.tables[0].Schema, want.Schema)
	}
	return false
}

// names is true if it names a table.
func (s statement) names(want wire.AskTable) bool {
	for _, t := range s.tables {
		if same(want, t.Schema, t.Table) {
			return true
		}
	}
	return false
}

func same(want wire.AskTable, schema, table string) bool {
	return strings.EqualFold(want.Table, table) && (want.Schema == "" || strings.EqualFold(want.Schema, schema))
}

// tablesMax bounds the tables that one statement may name.
const tablesMax = 4096

// parseStatement reads the beginning of a statement, as far as tables are concerned.
func parseStatement(query, schema string) statement {
	l := &lexer{rest: query}
	first := l.word()
	switch first {
	case "", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA", "RELEASE":
		return statement{}
	}
	second := l.word()
	for second == "TEMPORARY" || second == "UNIQUE" || second == "FULLTEXT" || second == "SPATIAL" || second == "OR" || second == "REPLACE" {
		if second == "TEMPORARY" {
			first += " TEMPORARY"
		}
		second = l.word()
	}
	s := statement{verb: strings.TrimSpace(first + " " + second)}
	switch {
	case first == "TRUNCATE":
		if s.verb = "TRUNCATE TABLE"; second != "TABLE" {
			l.rest = query
			l.word()
		}
		s.tables = l.tables(schema, false)
	case first == "RENAME" && second == "TABLE":
		s.tables = l.tables(schema, true)
	case second == "TABLE" || second == "TABLES" || second == "VIEW":
		s.verb = strings.TrimSuffix(s.verb, "S")
		s.tables = l.tables(schema, false)
	case second == "DATABASE" || second == "SCHEMA":
		s.verb = first + " DATABASE"
		l.skipIf()
		if name := l.name(); name != "" {
			s.tables = []wire.AskTable{{Schema: name}}
		}
	case second == "INDEX":
		if l.until("ON") {
			s.tables = l.tables(schema, false)
		}
	case first != "CREATE" && first != "DROP" && first != "ALTER" && first != "RENAME" && first != "GRANT" && first != "REVOKE":
		s.verb = first // the second word may be anything
	}
	return s
}

// lexer takes a statement apart into words, names and single characters.
type lexer struct{ rest string }

// space drops blanks and comments. What is in /*! */ is a part of the statement.
func (l *lexer) space() {
	for {
		l.rest = strings.TrimLeft(l.rest, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(l.rest, "/*!"):
			l.rest = strings.TrimLeft(l.rest[3:], "0123456789")
		case strings.HasPrefix(l.rest, "*/"):
			l.rest = l.rest[2:]
		case strings.HasPrefix(l.rest, "/*"):
			_, l.rest, _ = strings.Cut(l.rest[2:], "*/")
		case strings.HasPrefix(l.rest, "#"), strings.HasPrefix(l.rest, "-- "), strings.HasPrefix(l.rest, "--\n"):
			_, l.rest, _ = strings.Cut(l.rest, "\n")
		default:
			return
		}
	}
}

// word is the next word in capitals; empty if something else comes.
func (l *lexer) word() string {
	l.space()
	n := 0
	for n < len(l.rest) && letter(l.rest[n]) {
		n++
	}
	word := l.rest[:n]
	if n > 64 {
		return ""
	}
	l.rest = l.rest[n:]
	return strings.ToUpper(word)
}

func letter(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// name is the next name, quoted or not; empty if none comes.
func (l *lexer) name() string {
	l.space()
	if l.rest == "" {
		return ""
	}
	quote := l.rest[0]
	if quote != '`' && quote != '"' {
		n := 0
		for n < len(l.rest) && letter(l.rest[n]) {
			n++
		}
		name := l.rest[:n]
		l.rest = l.rest[n:]
		return name
	}
	var name strings.Builder
	for i := 1; i < len(l.rest); i++ {
		if l.rest[i] == quote {
			if i+1 >= len(l.rest) || l.rest[i+1] != quote {
				l.rest = l.rest[i+1:]
				return name.String()
			}
			i++
		}
		name.WriteByte(l.rest[i])
	}
	l.rest = "" // it does not end: it was cut off
	return name.String()
}

// skipIf drops IF EXISTS and IF NOT EXISTS.
func (l *lexer) skipIf() {
	before := l.rest
	if l.word() != "IF" {
		l.rest = before
		return
	}
	if l.word() == "NOT" {
		l.word()
	}
}

// until drops everything up to and with a word.
func (l *lexer) until(word string) bool {
	for l.rest != "" {
		if w := l.word(); w == word {
			return true
		} else if w == "" && l.name() == "" && l.rest != "" {
			l.rest = l.rest[1:]
		}
	}
	return false
}

// tables are the names of a list; of a RENAME both of each pair.
func (l *lexer) tables(schema string, pairs bool) (all []wire.AskTable) {
	l.skipIf()
	for len(all) < tablesMax {
		t := wire.AskTable{Schema: schema, Table: l.name()}
		if l.space(); strings.HasPrefix(l.rest, ".") {
			l.rest = l.rest[1:]
			t.Schema, t.Table = t.Table, l.name()
		}
		if t.Table == "" {
			return all
		}
		all = append(all, t)
		l.space()
		before := l.rest
		switch {
		case strings.HasPrefix(l.rest, ","):
			l.rest = l.rest[1:]
		case pairs && l.word() == "TO":
		default:
			l.rest = before
			return all
		}
	}
	return all
}
