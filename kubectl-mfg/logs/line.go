// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Level of a line, the least important first.
type Level int

// The levels; unlevelled is for a line without one, such as a line of a stack trace.
const (
	unlevelled Level = iota
	Debug
	Info
	Warning
	Error
)

// Levels are the values of --level.
var Levels = []string{"debug", "info", "warning", "error"}

// words are the names of the levels, as shown.
var words = map[Level]string{Debug: "DEBUG", Info: "INFO", Warning: "WARN", Error: "ERROR"}

// ParseLevel reads --level.
func ParseLevel(s string) (Level, error) {
	if i := slices.Index(Levels, strings.ToLower(s)); i >= 0 {
		return Level(i + 1), nil
	}
	return unlevelled, fmt.Errorf("--level must be one of %s", strings.Join(Levels, ", "))
}

// Line is a line of a log.
type Line struct {
	// At is when the kubelet got it.
	At    time.Time
	Level Level
	Text  string
}

// Parse splits a line as the API server sends it, with a timestamp before it.
func Parse(raw string) Line {
	stamp, text, _ := strings.Cut(raw, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return Line{Text: raw}
	}
	l := Line{At: at, Text: text}
	if level, said, is := structured(text); is {
		l.Level, l.Text = level, said
	} else if level, said, is := ofMySQL(text); is {
		l.Level, l.Text = level, said
	}
	return l
}

// Keys of the JSON logs of sidecar, archiver, backups and operator that appear elsewhere in a shown line.
const (
	keyTime    = "time"
	keyLevel   = "level"
	keyMessage = "msg"
)

// structured reads a line of our own programs: a JSON object with a level and a message.
func structured(text string) (Level, string, bool) {
	if !strings.HasPrefix(text, "{") {
		return unlevelled, "", false
	}
	var all map[string]any
	if json.Unmarshal([]byte(text), &all) != nil {
		return unlevelled, "", false
	}
	name, _ := all[keyLevel].(string)
	message, has := all[keyMessage].(string)
	level, known := ofWord(name)
	if !has || !known {
		return unlevelled, "", false
	}
	var b strings.Builder
	b.WriteString(message)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key == keyTime || key == keyLevel || key == keyMessage {
			continue
		}
		value, is := all[key].(string)
		if !is {
			raw, err := json.Marshal(all[key])
			if err != nil {
				continue
			}
			value = string(raw)
		} else if value == "" || strings.ContainsAny(value, " \"=") {
			value = fmt.Sprintf("%q", value)
		}
		b.WriteString(" " + key + "=" + value)
	}
	return level, b.String(), true
}

// lineOfMySQL matches a line of mysqld's error log: time, thread, [Level] and the rest.
var lineOfMySQL = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ \d+ \[(System|Note|Warning|ERROR|Error)\] (.*)$`)

func ofMySQL(text string) (Level, string, bool) {
	m := lineOfMySQL.FindStringSubmatch(text)
	if m == nil {
		return unlevelled, "", false
	}
	level, _ := ofWord(m[1])
	return level, m[2], true
}

// ofWord knows the words of slog and of MySQL. slog writes levels in between as INFO+2.
func ofWord(s string) (Level, bool) {
	s, _, _ = strings.Cut(s, "+")
	switch strings.ToUpper(s) {
	case "DEBUG", "TRACE":
		return Debug, true
	case "INFO", "NOTE", "SYSTEM":
		return Info, true
	case "WARN", "WARNING":
		return Warning, true
	case "ERROR", "FATAL":
		return Error, true
	}
	return unlevelled, false
}
