// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func example() Manifest {
	m := manifestOf(noon)
	m.Version, m.Name, m.Namespace, m.Group = 1, "monday", "shop", "orders"
	m.Parts = []Part{{Name: "data", Bytes: 7, Objects: []Object{
		{Key: "0123456789abcdef/data.00000", Bytes: 20, SHA256: strings.Repeat("a", 64)},
		{Key: "0123456789abcdef/data.00001", Bytes: 1, SHA256: strings.Repeat("b", 64)},
	}}}
	return m
}

func TestManifestIsReadStrictly(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"version 0":                     func(m *Manifest) { m.Version = 0 },
		"a name that leads out":         func(m *Manifest) { m.Name = "../x" },
		"a group that leads out":        func(m *Manifest) { m.Group = "a/b" },
		"unknown method":                func(m *Manifest) { m.Method = "Magic" },
		"negative epoch":                func(m *Manifest) { m.Epoch = -1 },
		"no parts":                      func(m *Manifest) { m.Parts = nil },
		"no start":                      func(m *Manifest) { m.StartedAt = time.Time{} },
		"ends before it starts":         func(m *Manifest) { m.FinishedAt = m.StartedAt.Add(-1) },
		"encrypted for nobody":          func(m *Manifest) { m.Encrypted = true },
		"recipients in the clear":       func(m *Manifest) { m.Recipients = []string{strings.Repeat("a", 32)} },
		"no fingerprint":                func(m *Manifest) { m.Encrypted, m.Recipients = true, []string{"x"} },
		"a part twice":                  func(m *Manifest) { m.Parts = append(m.Parts, m.Parts[0]) },
		"a part that leads out":         func(m *Manifest) { m.Parts[0].Name = "../data" },
		"a part without objects":        func(m *Manifest) { m.Parts[0].Objects = nil },
		"a negative length":             func(m *Manifest) { m.Parts[0].Bytes = -1 },
		"a length beyond all":           func(m *Manifest) { m.Parts[0].Bytes = dataMax + 1 },
		"an object that leads out":      func(m *Manifest) { m.Parts[0].Objects[0].Key = "../monday/data.00000" },
		"an object of another attempt":  func(m *Manifest) { m.Parts[0].Objects[1].Key = "1123456789abcdef/data.00001" },
		"objects swapped":               func(m *Manifest) { o := m.Parts[0].Objects; o[0], o[1] = o[1], o[0] },
		"an object with no digest":      func(m *Manifest) { m.Parts[0].Objects[0].SHA256 = "" },
		"an object beyond all":          func(m *Manifest) { m.Parts[0].Objects[0].Bytes = objectMax + 1 },
		"an object of negative length":  func(m *Manifest) { m.Parts[0].Objects[0].Bytes = -1 },
		"a text beyond all":             func(m *Manifest) { m.Tool = strings.Repeat("a", textMax+1) },
		"a GTID set beyond all":         func(m *Manifest) { m.GTIDExecuted = strings.Repeat("a", gtidMax+1) },
		"more parts than we write":      func(m *Manifest) { m.Parts = make([]Part, partsMax+1) },
		"a volume beyond all":           func(m *Manifest) { m.VolumeBytes = dataMax + 1 },
		"a volume of negative length":   func(m *Manifest) { m.VolumeBytes = -1 },
		"more recipients than we write": func(m *Manifest) { m.Encrypted, m.Recipients = true, make([]string, recipientsMax+1) },
	} {
		m := example()
		change(&m)
		raw, err := json.Marshal(m)
		must(t, err)
		if _, err := ParseManifest(bytes.NewReader(raw)); err == nil {
			t.Errorf("%s is admitted", name)
		}
	}
	m := example()
	raw, err := json.Marshal(m)
	must(t, err)
	if _, err := ParseManifest(bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":          "",
		"unknown field":    strings.Replace(string(raw), `{`, `{"x":1,`, 1),
		"something behind": string(raw) + "{}",
		"too much":         string(raw) + strings.Repeat(" ", manifestMax),
		"wrong type":       strings.Replace(string(raw), `"epoch":3`, `"epoch":"3"`, 1),
	} {
		if _, err := ParseManifest(strings.NewReader(text)); err == nil || errors.Is(err, errTooNew) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseManifest(strings.NewReader(`{"version": 2, "other": true}`)); !errors.Is(err, errTooNew) {
		t.Errorf("a later version: %v", err)
	}
}

// What is admitted can be written and read again, and leads nowhere else.
func FuzzParseManifest(f *testing.F) {
	raw, err := json.Marshal(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, p := range m.Parts {
			for _, o := range p.Objects {
				if strings.Contains(o.Key, "..") || strings.HasPrefix(o.Key, "/") || strings.Count(o.Key, "/") != 1 {
					t.Errorf("key %q", o.Key)
				}
			}
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(bytes.NewReader(again)); err != nil {
			t.Errorf("%s is not read again: %v", again, err)
		}
	})
}
