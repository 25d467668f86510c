// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"time"
)

// plan is a SELECT taken apart: the expressions of its list, and whether it is one that has a row.
type plan struct {
	expressions, names []string
	row                bool
}

// planOf takes a query apart. A list that the project's queries do not have today is answered too: what is not known is
// NULL. A query of the configuration of a channel by an inner join has no row: the fake forgets what it was told there,
// so that the asker tells it again.
func planOf(query string) plan {
	text := strings.Join(strings.Fields(query), " ")
	list, from := splitSelect(text)
	p := plan{row: from == "" || strings.HasPrefix(from, "(SELECT 1) one") || strings.HasPrefix(list, "COUNT(*)")}
	for _, part := range splitList(list) {
		expression := strings.TrimSpace(part)
		name := expression
		if i := strings.LastIndex(part, " AS "); i >= 0 && !strings.Contains(part[i:], ")") {
			expression, name = strings.TrimSpace(part[:i]), part[i+len(" AS "):]
		}
		p.expressions, p.names = append(p.expressions, expression), append(p.names, name)
	}
	return p
}

// splitSelect returns the list of a SELECT and what follows its FROM.
func splitSelect(text string) (list, from string) {
	text = strings.TrimPrefix(text, "SELECT ")
	depth, quoted := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], " FROM "):
			return text[:i], text[i+len(" FROM "):]
		}
	}
	return text, ""
}

// splitList cuts at the commas that are in no parentheses.
func splitList(list string) []string {
	var parts []string
	depth, quoted, start := 0, false, 0
	for i := range len(list) {
		switch c := list[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, list[start:i])
			start = i + 1
		}
	}
	return append(parts, list[start:])
}

func text(s string) value { return &s }

func number(f float64) value { return text(strconv.FormatFloat(f, 'f', 6, 64)) }

var (
	no  = text("0")
	yes = text("1")
)

func flag01(b bool) value {
	if b {
		return yes
	}
	return no
}

// answers gives the row of a plan as a site is now.
func (p plan) answers(s state, now time.Time) []value {
	if !p.row {
		return nil
	}
	row := make([]value, len(p.names))
	for i, expression := range p.expressions {
		row[i] = s.answer(expression, now)
	}
	return row
}

// answer is the value of one expression.
func (s state) answer(name string, now time.Time) value {
	seconds := float64(now.UnixMicro()) / 1e6
	switch {
	case name == "@@GLOBAL.server_uuid":
		return text(s.uuid)
	case name == "@@GLOBAL.version":
		return text(serverVersion)
	case name == "@@GLOBAL.read_only", name == "@@GLOBAL.super_read_only":
		return flag01(!s.writable)
	case name == "@@GLOBAL.gtid_executed":
		return text(s.executed)
	case name == "@@GLOBAL.gtid_purged":
		return text("")
	case name == "@@SESSION.timestamp":
		return number(seconds)
	case strings.HasPrefix(name, "@@"), strings.HasPrefix(name, "EXISTS"), strings.HasPrefix(name, "SELECT WAIT_FOR"),
		strings.HasPrefix(name, "WAIT_FOR"):
		return no
	case strings.HasPrefix(name, "(SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"):
		return flag01(s.source != "")
	case strings.HasPrefix(name, "(SELECT COUNT(*)"), name == "COUNT(*)":
		return no
	case s.source == "":
		return nil
	}
	return s.replica(name, seconds)
}

// replica is the value of an expression over the tables of replication. Everything that came is applied.
func (s state) replica(name string, seconds float64) value {
	switch {
	case name == "c.HOST":
		return text(s.source)
	case name == "c.PORT":
		return text("3306")
	case name == "c.HEARTBEAT_INTERVAL":
		return yes
	case name == "s.SOURCE_UUID":
		return text(s.sourceUUID)
	case strings.HasSuffix(name, ".SERVICE_STATE"):
		if s.running {
			return text("ON")
		}
		return text("OFF")
	case name == "s.RECEIVED_TRANSACTION_SET":
		return text(s.retrieved)
	case strings.HasPrefix(name, "w."):
		return nil
	case strings.HasSuffix(name, "_ERROR_NUMBER"):
		return no
	case strings.HasSuffix(name, "_ERROR_MESSAGE"):
		return text("")
	case strings.Contains(name, "HEARTBEAT_TIMESTAMP"), strings.Contains(name, "s.LAST_QUEUED_"):
		return number(seconds - replicaBehind.Seconds())
	case strings.HasPrefix(name, "UNIX_TIMESTAMP("):
		return no
	}
	return nil
}
