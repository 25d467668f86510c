// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/certificates"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// makers say who makes the certificates of a group.
var makers = map[string]string{
	"Operator": "the operator (spec.tls: {})", "Issuer": "cert-manager (spec.tls.issuerRef)", "Somebody": "you, or another program (spec.tls.secretName)",
}

// roles name the roles for people.
var roles = map[string]text{
	certificates.Signs: {"signs", good}, certificates.SignsNext: {"trusted, signs next", warn}, certificates.Former: {"trusted, signed before", warn},
	certificates.Current: {"as in the Secret", good}, certificates.Other: {"another one", warn},
}

// Certificates draws the certificates of a group, and the findings.
func Certificates(r certificates.Report, o Options) string {
	var b strings.Builder
	b.WriteString(o.paragraph(text{s: "Made by"}, makers[r.MadeBy]+"; servers and clients find them in Secret "+r.Secret))
	b.WriteString("\n" + o.table(certificateColumns(r, o.Wide)) + "\n")
	var lines []Finding
	for _, f := range r.Findings {
		line := Finding{Level: string(f.Level), Check: f.Check, Message: escaped(f.Message)}
		if f.Remedy != "" {
			line.Remedies = []wire.Remedy{{Text: f.Remedy}}
		}
		if strings.HasPrefix(f.Remedy, "kubectl ") {
			line.Remedies = []wire.Remedy{{Command: f.Remedy}}
		}
		lines = append(lines, line)
	}
	return b.String() + Findings(r.Metadata.Name, r.Metadata.Namespace, lines, o)
}

func certificateColumns(r certificates.Report, wide bool) []column {
	what, role, subject := column{title: "CERTIFICATE"}, column{title: "ROLE"}, column{title: "SUBJECT", drop: 3}
	issuer, until, left := column{title: "ISSUED BY", drop: 2}, column{title: "UNTIL"}, column{title: "LEFT"}
	renewal, names, sum := column{title: "RENEWED FROM"}, column{title: "NAMES"}, column{title: "SHA256"}
	for _, c := range r.Certificates {
		name := strings.TrimSpace(c.What + " " + c.Site)
		what.cells, role.cells = append(what.cells, text{s: name}), append(role.cells, certificateRole(c))
		subject.cells, issuer.cells = append(subject.cells, text{s: escaped(c.Subject)}), append(issuer.cells, text{s: escaped(c.Issuer)})
		until.cells, left.cells = append(until.cells, text{s: c.NotAfter.Format(time.DateOnly)}), append(left.cells, leftCell(c))
		from := none
		if c.Renewal != nil {
			from = c.Renewal.Format(time.DateOnly)
		}
		renewal.cells = append(renewal.cells, text{s: from})
		names.cells, sum.cells = append(names.cells, text{s: escaped(orNone(strings.Join(c.Names, ",")))}), append(sum.cells, text{s: c.SHA256})
	}
	columns := []column{what, role, subject, issuer, until, left, renewal}
	if wide {
		columns = append(columns, names, sum)
	}
	return columns
}

func certificateRole(c certificates.Certificate) text {
	if cell, known := roles[c.Role]; known {
		return cell
	}
	return text{s: none}
}

func leftCell(c certificates.Certificate) text {
	cell := text{s: fmt.Sprintf("%dd", c.DaysLeft), colour: good}
	switch {
	case c.DaysLeft < 0:
		return text{"ended", bad}
	case c.DaysLeft < 3:
		cell.colour = bad
	case c.DaysLeft < 14:
		cell.colour = warn
	}
	return cell
}

// escaped leaves out what a terminal would obey: the makers of certificates choose the names in them.
func escaped(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// certificate draws until when a group's certificate is valid.
func (o Options) certificate(c report.Certificate) string {
	label, words := text{s: "TLS"}, c.Words(o.Now)
	if trouble, ended := c.Trouble(o.Now); trouble != "" {
		label.colour, words = warn, trouble
		if ended {
			label.colour = bad
		}
	}
	return o.paragraph(label, words)
}
