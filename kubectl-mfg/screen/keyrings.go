// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

var keyringStates = map[keyrings.State]Colour{
	keyrings.Current: good, keyrings.Missing: bad, keyrings.Kept: dim, keyrings.Newer: warn, keyrings.Deleting: dim,
}

// Keyrings draws what is in escrow, one line for each version, and the findings if it was verified.
func Keyrings(r keyrings.Report, o Options) string {
	var b strings.Builder
	b.WriteString(o.table(o.keyringColumns(r)))
	for _, s := range r.Sites {
		if s.Message != "" {
			b.WriteString(o.paragraph(text{s.Name, warn}, s.Message))
		}
	}
	if !r.Verified {
		return b.String()
	}
	var lines []Finding
	for _, f := range r.Findings {
		lines = append(lines, Finding{Level: string(f.Level), Check: f.Site + " " + f.Check, Message: f.Message, Remedies: f.Remedies})
	}
	return b.String() + "\n" + Findings(r.Metadata.Name, r.Metadata.Namespace, lines, o)
}

func (o Options) keyringColumns(r keyrings.Report) []column {
	site, phase, version := column{title: "SITE"}, column{title: "PHASE"}, column{title: "VERSION"}
	state, digest, hashed := column{title: "STATE"}, column{title: "DIGEST"}, column{title: "RE-HASHED"}
	age, pod, secret := column{title: "AGE", drop: 2}, column{title: "POD HAS", drop: 4}, column{title: "SECRET", drop: 3}
	row := func(s keyrings.Site, v keyrings.Version, first bool) {
		name, is, has := "", text{}, ""
		if first {
			name, is, has = s.Name, phaseCell(s), orNone(s.PodSecret)
		}
		site.cells, phase.cells = append(site.cells, text{s: name}), append(phase.cells, is)
		number, created := none, none
		if v.Version > 0 {
			number = fmt.Sprintf("v%d", v.Version)
		}
		if v.Created != nil {
			created = o.ago(*v.Created)
		}
		version.cells, age.cells = append(version.cells, text{s: number}), append(age.cells, text{s: created})
		state.cells = append(state.cells, text{orNone(string(v.State)), keyringStates[v.State]})
		digest.cells, hashed.cells = append(digest.cells, text{s: o.digest(v.Digest)}), append(hashed.cells, o.hashed(s, v))
		secret.cells, pod.cells = append(secret.cells, text{s: orNone(v.Secret)}), append(pod.cells, text{s: has})
	}
	for _, s := range r.Sites {
		if len(s.Versions) == 0 {
			row(s, keyrings.Version{}, true)
		}
		for i, v := range s.Versions {
			row(s, v, i == 0)
		}
	}
	columns := []column{site, phase, version, state, digest}
	if r.Verified {
		columns = append(columns, hashed)
	}
	columns = append(columns, age)
	if o.Wide {
		columns = append(columns, pod, secret)
	}
	return columns
}

func phaseCell(s keyrings.Site) text {
	switch s.Phase {
	case "Sealed":
		return text{s.Phase, good}
	case "Failed":
		return text{s.Phase, bad}
	}
	return text{orNone(s.Phase), warn}
}

// digest shortens a digest that people only compare by eye.
func (o Options) digest(s string) string {
	const enough = len("sha256:") + 12
	if !o.Wide && len(s) > enough {
		return s[:enough]
	}
	return orNone(s)
}

// hashed says in a word whether the content is what it should be.
func (o Options) hashed(s keyrings.Site, v keyrings.Version) text {
	want := v.Digest
	if v.State == keyrings.Current {
		want = s.Digest
	}
	switch v.Content {
	case "":
		return text{none, bad}
	case want:
		return text{"same", good}
	}
	return text{o.digest(v.Content), bad}
}
