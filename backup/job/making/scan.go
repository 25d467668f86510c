// SPDX-License-Identifier: Apache-2.0

package making

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// scanner reads the stream of mysqldump while it passes: the GTID set that stands at its beginning, the rows of each table, and whether
// its last line is the one with which mysqldump says that it is complete. Rows are counted in the stream because no second session can
// have the snapshot of the first: MySQL has no such thing, and a second global lock would stop the site's applier for longer.
//
// It relies on what mysqldump writes with the options of dump.go: statements begin on lines of their own, and end with their delimiter on the last
// of their lines; rows are extended inserts between LOCK TABLES and UNLOCK TABLES, whose strings are quoted with backslashes as escapes. It never
// keeps more than one name, or the GTID set.
type scanner struct {
	state     scanState
	head      []byte
	lexer     mysqld.Lexer
	ending    bool // in a statement, behind the first semicolon of a delimiter of two
	quoted    bool // in a name in backticks
	escaped   bool
	schema    string
	locked    bool // between LOCK TABLES and UNLOCK TABLES
	delimited bool // between DELIMITER ;; and DELIMITER ;
	completed bool
	gtid      string
	hasGTID   bool
	tables    []terms.TableRows
	// settled is called once the GTID set was read; nil for nothing. Its error ends the reading.
	settled func() error
	err     error
}

type scanState int

const (
	// lineHead is at the beginning of a line, outside of statements.
	lineHead scanState = iota
	lineRest
	inStatement
	collect
	insertHead
	betweenRows
	inRow
	inString
)

const (
	headBytes = 32
	// collectMax bounds a statement that is kept: a GTID set, or a name.
	collectMax = 2 << 20
	// setMode begins the statement that sets the mode of the trigger, routine or event that follows.
	setMode = "/*!50003 SET sql_mode "
)

// Write reads on. It returns an error once the stream cannot be understood.
func (s *scanner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && s.err == nil {
		p = s.step(p)
	}
	if s.err != nil {
		return 0, s.err
	}
	return n, nil
}

// step takes the beginning of p, and returns the rest.
func (s *scanner) step(p []byte) []byte {
	switch s.state {
	case lineHead:
		return s.stepHead(p)
	case lineRest:
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			return nil
		}
		s.state = lineHead
		return p[i+1:]
	case inStatement:
		return s.stepStatement(p)
	case collect:
		return s.stepCollect(p)
	case insertHead:
		return s.stepInsertHead(p)
	default:
		return s.stepRows(p)
	}
}

// stepHead gathers the beginning of a line until it can be told what it is.
func (s *scanner) stepHead(p []byte) []byte {
	take := min(headBytes-len(s.head), len(p))
	ended := false
	if i := bytes.IndexByte(p[:take], '\n'); i >= 0 {
		take, ended = i+1, true
	}
	s.head = append(s.head, p[:take]...)
	rest := p[take:]
	if !ended && len(s.head) < headBytes {
		return rest
	}
	s.decide()
	return rest
}

// decide tells what a line is by its beginning, and reads that once more in the state that it brings.
func (s *scanner) decide() {
	head := s.head
	s.head = nil
	begins := func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }
	if !begins("\n") {
		s.completed = begins("-- Dump completed")
	}
	again := func(state scanState) {
		s.state, s.quoted, s.ending = state, false, false
		s.lexer = mysqld.Lexer{Literal: s.lexer.Literal}
		for len(head) > 0 && s.err == nil {
			head = s.step(head)
		}
	}
	switch {
	case begins("DELIMITER "):
		s.delimited = !begins("DELIMITER ;\n")
		again(lineRest)
	case begins("--"), begins("\n"):
		again(lineRest)
	case begins(setMode):
		again(collect)
	case s.delimited:
		again(inStatement)
	case begins("INSERT INTO ") && s.locked:
		again(insertHead)
	case begins("USE `"), begins("LOCK TABLES `"), begins("SET @@GLOBAL.GTID_PURGED="):
		again(collect)
	default:
		s.locked = s.locked && !begins("UNLOCK TABLES;")
		again(inStatement)
	}
}

// stepStatement passes a statement up to its delimiter: lines in it are none of mysqldump's, whatever they look like.
func (s *scanner) stepStatement(p []byte) []byte {
	for i, b := range p {
		semicolon := s.lexer.Code(b) && b == ';'
		if semicolon && (s.ending || !s.delimited) {
			s.state = lineRest
			return p[i+1:]
		}
		s.ending = semicolon
	}
	return nil
}

// stepCollect gathers a statement up to its semicolon, which may be part of a name.
func (s *scanner) stepCollect(p []byte) []byte {
	for i, b := range p {
		if b == '`' {
			s.quoted = !s.quoted
		}
		if b == ';' && !s.quoted {
			s.head = append(s.head, p[:i]...)
			s.take(string(s.head))
			s.head, s.state = nil, lineRest
			return p[i+1:]
		}
	}
	s.head = append(s.head, p...)
	if len(s.head) > collectMax {
		s.err = errors.New("the dump has a name or a GTID set that is longer than any can be")
	}
	return nil
}

func (s *scanner) take(statement string) {
	switch {
	case strings.HasPrefix(statement, setMode):
		s.lexer.Literal = strings.Contains(statement, "NO_BACKSLASH_ESCAPES")
	case strings.HasPrefix(statement, "USE "):
		s.schema = name(strings.TrimPrefix(statement, "USE "))
	case strings.HasPrefix(statement, "LOCK TABLES "):
		table := name(strings.TrimSuffix(strings.TrimPrefix(statement, "LOCK TABLES "), " WRITE"))
		s.tables, s.locked = append(s.tables, terms.TableRows{Schema: s.schema, Table: table}), true
	default:
		// What is added to the set is marked with a quoted plus before it; a set holds no quotes.
		last := strings.LastIndexByte(statement, '\'')
		first := strings.LastIndexByte(statement[:max(last, 0)], '\'')
		if first < 0 || s.hasGTID {
			s.err = errors.New("the dump's GTID set cannot be read")
			return
		}
		s.hasGTID = true
		s.gtid = strings.ReplaceAll(statement[first+1:last], "\n", "")
		if s.settled != nil {
			s.err = s.settled()
		}
	}
}

// name is the name in backticks.
func name(quoted string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(quoted, "`"), "`"), "``", "`")
}

// stepInsertHead passes the names up to the word VALUES.
func (s *scanner) stepInsertHead(p []byte) []byte {
	// The words before the name hold a V nowhere, and names are in backticks.
	for i, b := range p {
		switch {
		case b == '`':
			s.quoted = !s.quoted
		case b == 'V' && !s.quoted:
			s.state = betweenRows
			return p[i+1:]
		}
	}
	return nil
}

// stepRows counts rows. Values have no parentheses outside strings.
func (s *scanner) stepRows(p []byte) []byte {
	rows := int64(0)
	defer func() { s.tables[len(s.tables)-1].Rows += rows }()
	state := s.state
	for i := 0; i < len(p); i++ {
		b := p[i]
		switch state {
		case inString:
			switch {
			case s.escaped:
				s.escaped = false
			case b == '\\':
				s.escaped = true
			case b == '\'':
				state = inRow
			}
		case inRow:
			switch b {
			case '\'':
				state = inString
			case ')':
				state = betweenRows
			}
		default:
			switch b {
			case '(':
				rows++
				state = inRow
			case ';':
				s.state = lineRest
				return p[i+1:]
			}
		}
	}
	s.state = state
	return nil
}

// complete is the GTID set of a stream that is whole.
func (s *scanner) complete() (gtid.Set, error) {
	switch {
	case s.err != nil:
		return gtid.Set{}, s.err
	case len(s.head) > 0:
		s.decide() // a last line without its end
	}
	if !s.completed {
		return gtid.Set{}, errors.New("mysqldump's output ends without the line that says that it is complete")
	}
	if !s.hasGTID {
		return gtid.Set{}, errors.New("the dump does not tell its GTID set")
	}
	set, err := gtid.Parse(s.gtid)
	if err != nil {
		return gtid.Set{}, fmt.Errorf("read the GTID set of the dump: %w", err)
	}
	return set, nil
}
