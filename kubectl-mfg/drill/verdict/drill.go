// SPDX-License-Identifier: Apache-2.0

// Package verdict holds the result of a drill: each move judged against a target, as one value for every output. It is pure.
package verdict

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// DrillKind is the kind of Drill.
const DrillKind = "MfgDrillReport"

// drillMeasured says what the figures are, in every format.
const (
	drillMeasured = "by the operator: from the persisted intent to move, before writes were stopped, to the new site seen open; "
	// drillOperatorOnly is added if no canary wrote.
	drillOperatorOnly = "clients see less inside MySQL, plus the time that they take to reconnect"
	drillCanary       = "by the canary: the longest time in which no row was acknowledged, on either site; clients see that, plus the time that they take to reconnect"
)

// Outcomes of a leg that say more than a plain failure.
const (
	// LegUnknown: the wait for the move ended before its outcome was known.
	LegUnknown   = "Unknown"
	legSucceeded = string(v1alpha1.PlannedSucceeded)
)

// Drill is a planned failover there and back, judged against a target.
type Drill struct {
	APIVersion   string          `json:"apiVersion"`
	Kind         string          `json:"kind"`
	Metadata     report.Metadata `json:"metadata"`
	StartedAt    time.Time       `json:"startedAt"`
	FinishedAt   time.Time       `json:"finishedAt"`
	TargetMillis int64           `json:"targetMillis"`
	Measured     string          `json:"measured"`
	// Passed is true if both moves were done, each within the target, and nothing was lost.
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures,omitempty"`
	Legs     []Leg    `json:"legs"`
	// Outcome is set if it did not begin: Refused or TimedOut. Reason and Message say why.
	Outcome string          `json:"outcome,omitempty"`
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Next is what to do about a drill that did not begin, or did not finish.
	Next string `json:"next,omitempty"`
	// Canary is left out if none wrote.
	Canary *Canary `json:"canary,omitempty"`
}

// Canary is what a writer saw that kept trying both sites.
type Canary struct {
	// EveryMillis is how often each site was tried.
	EveryMillis int64 `json:"everyMillis"`
	// Rows counts the acknowledged rows. Missing counts those that are not on the active site in the end; it is left out
	// if they could not be read, and Message says why.
	Rows    int64  `json:"rows"`
	Missing *int64 `json:"missing,omitempty"`
	Message string `json:"message,omitempty"`
}

// Leg is one of the moves.
type Leg struct {
	Name      string    `json:"name"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	StartedAt time.Time `json:"startedAt"`
	// Outcome is Succeeded, Refused, Reverted, Aborted or Unknown.
	Outcome          string          `json:"outcome"`
	Reason           v1alpha1.Reason `json:"reason,omitempty"`
	Message          string          `json:"message,omitempty"`
	Epoch            int64           `json:"epoch,omitempty"`
	WritePauseMillis *int64          `json:"writePauseMillis,omitempty"`
	LostTransactions *int64          `json:"lostTransactions,omitempty"`
	// SettledMillis is the time from the open site until the whole group was healthy. Unsettled says why that was not seen.
	SettledMillis int64  `json:"settledMillis,omitempty"`
	Unsettled     string `json:"unsettled,omitempty"`
	// CanaryPauseMillis is the longest time without an acknowledged row of the canary; CanaryRows counts its acknowledged rows.
	CanaryPauseMillis *int64 `json:"canaryPauseMillis,omitempty"`
	CanaryRows        int64  `json:"canaryRows,omitempty"`
}

// NewDrill begins a report.
func NewDrill(namespace, group string, target time.Duration, now time.Time) Drill {
	return Drill{APIVersion: report.APIVersion, Kind: DrillKind, Metadata: report.Metadata{Name: group, Namespace: namespace},
		StartedAt: now, TargetMillis: target.Milliseconds(), Measured: drillMeasured + drillOperatorOnly, Legs: []Leg{}}
}

// NotBegun notes that no move was tried, and why.
func (d *Drill) NotBegun(outcome string, reason v1alpha1.Reason, message, next string) {
	d.FinishedAt, d.Outcome, d.Reason, d.Message, d.Next = d.StartedAt, outcome, reason, message, next
	d.Failures = []string{"not begun: " + d.failed(d.notBegun())}
}

// notBegun returns the move that stands for a drill that did not begin.
func (d *Drill) notBegun() Leg {
	return Leg{Name: "begin", Outcome: d.Outcome, Reason: d.Reason, Message: d.Message}
}

// Finish judges.
func (d *Drill) Finish(now time.Time, failure error) {
	d.FinishedAt = now
	if d.Canary != nil {
		d.Measured = drillMeasured + drillCanary
	}
	for _, l := range d.Legs {
		if why := d.failed(l); why != "" {
			d.Failures = append(d.Failures, l.Name+": "+why)
		}
	}
	if len(d.Legs) < 2 {
		d.Failures = append(d.Failures, "back: not tried: "+d.whyNotBack())
	}
	if why := d.canaryFailed(); why != "" {
		d.Failures = append(d.Failures, "canary: "+why)
	}
	if failure != nil && len(d.Failures) == 0 {
		d.Failures = append(d.Failures, failure.Error())
	}
	d.Passed = len(d.Failures) == 0
}

// whyNotBack says why the role was not moved back.
func (d *Drill) whyNotBack() string {
	if len(d.Legs) == 0 {
		return "the first move was not asked for"
	}
	switch there := d.Legs[0]; {
	case there.Outcome == LegUnknown:
		return "the outcome of the first move is not known"
	case there.Outcome != legSucceeded:
		return "the first move did not succeed"
	case there.Unsettled != "":
		return "the group was not seen healthy after the first move, and " + there.To + " is active"
	default:
		return "the drill was interrupted after the first move, and " + there.To + " is active"
	}
}

// canaryFailed says why the canary's rows do not pass, or "".
func (d *Drill) canaryFailed() string {
	switch c := d.Canary; {
	case c == nil:
		return ""
	case c.Missing == nil:
		return c.Message
	case *c.Missing > 0:
		return fmt.Sprintf("%d of %d acknowledged rows are missing", *c.Missing, c.Rows)
	}
	return ""
}

// failed says why a move does not pass, or "". A pause that was not measured is not within any target.
func (d *Drill) failed(l Leg) string {
	switch {
	case l.Outcome != legSucceeded && l.Reason == "":
		return fmt.Sprintf("%s: %s", l.Outcome, l.Message)
	case l.Outcome != legSucceeded:
		return fmt.Sprintf("%s (%s): %s", l.Outcome, l.Reason, l.Message)
	case l.WritePauseMillis == nil:
		return "the pause of writes was not measured"
	case *l.WritePauseMillis > d.TargetMillis:
		return fmt.Sprintf("writes were kept out for %d ms, the target is %d ms", *l.WritePauseMillis, d.TargetMillis)
	case l.LostTransactions == nil || *l.LostTransactions > 0:
		return "transactions were lost, or it is not known that none were"
	case l.Unsettled != "":
		return "the group was not seen healthy after it: " + l.Unsettled
	case d.Canary != nil && l.CanaryPauseMillis == nil:
		return "the canary got no row acknowledged by " + l.To
	case l.CanaryPauseMillis != nil && *l.CanaryPauseMillis > d.TargetMillis:
		return fmt.Sprintf("no row of the canary was acknowledged for %d ms, the target is %d ms", *l.CanaryPauseMillis, d.TargetMillis)
	}
	return ""
}

// settled says when the group was healthy after a move, if it was seen so.
func (l Leg) settled() string {
	if l.Unsettled != "" {
		return "group not seen healthy after it"
	}
	return fmt.Sprintf("group healthy %.1f s later", float64(l.SettledMillis)/1000)
}

// Text is the report for people.
func (d *Drill) Text() string {
	var b strings.Builder
	verdict := "PASSED"
	if !d.Passed {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "Drill of %s (namespace %s): %s\n", d.Metadata.Name, d.Metadata.Namespace, verdict)
	for _, l := range d.Legs {
		fmt.Fprintf(&b, "  %-6s %s -> %s  %s", l.Name, l.From, l.To, strings.ToLower(l.Outcome))
		if l.WritePauseMillis != nil {
			fmt.Fprintf(&b, ", writes kept out for %d ms (target %d ms)", *l.WritePauseMillis, d.TargetMillis)
		}
		if l.LostTransactions != nil {
			fmt.Fprintf(&b, ", %d transactions lost, %s", *l.LostTransactions, l.settled())
		}
		b.WriteString("\n")
		if l.CanaryPauseMillis != nil {
			fmt.Fprintf(&b, "         canary: no row acknowledged for at most %d ms (target %d ms), %d rows acknowledged\n", *l.CanaryPauseMillis, d.TargetMillis, l.CanaryRows)
		}
	}
	if c := d.Canary; c != nil && c.Missing != nil {
		fmt.Fprintf(&b, "  canary: %d rows acknowledged, %d of them missing\n", c.Rows, *c.Missing)
	}
	for _, f := range d.Failures {
		fmt.Fprintf(&b, "  failed: %s\n", f)
	}
	fmt.Fprintf(&b, "  measured %s\n", d.Measured)
	return b.String()
}

type junitSuite struct {
	XMLName    xml.Name        `xml:"testsuite"`
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
}

// JUnit is the report for CI systems: a test case for each move, with the time for which writes were kept out.
func (d *Drill) JUnit() ([]byte, error) {
	suite := junitSuite{
		Name: "drill " + d.Metadata.Namespace + "/" + d.Metadata.Name, Timestamp: d.StartedAt.Format(time.RFC3339),
		Time:       fmt.Sprintf("%.3f", d.FinishedAt.Sub(d.StartedAt).Seconds()),
		Properties: []junitProperty{{"targetMillis", fmt.Sprint(d.TargetMillis)}, {"measured", d.Measured}},
	}
	if c := d.Canary; c != nil && c.Missing != nil {
		suite.Properties = append(suite.Properties, junitProperty{"canaryRows", fmt.Sprint(c.Rows)}, junitProperty{"canaryMissing", fmt.Sprint(*c.Missing)})
	}
	legs := d.Legs
	switch {
	case d.Outcome != "":
		legs = []Leg{d.notBegun()}
	case len(legs) < 2:
		legs = append(legs[:len(legs):len(legs)], Leg{Name: "back", Outcome: "NotTried", Message: d.whyNotBack()})
	}
	for _, l := range legs {
		c := junitCase{Class: "drill." + d.Metadata.Namespace + "." + d.Metadata.Name, Name: strings.TrimSpace(l.Name + " " + l.From + " to " + l.To), Time: "0.000", Out: l.Message}
		if l.WritePauseMillis != nil {
			c.Time = fmt.Sprintf("%.3f", float64(*l.WritePauseMillis)/1000)
		}
		if l.CanaryPauseMillis != nil {
			c.Out = strings.TrimSpace(fmt.Sprintf("%s canaryPauseMillis=%d", c.Out, *l.CanaryPauseMillis))
		}
		if why := d.failed(l); why != "" {
			c.Failure = &junitFailure{Message: why}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if why := d.canaryFailed(); d.Canary != nil {
		c := junitCase{Class: "drill." + d.Metadata.Namespace + "." + d.Metadata.Name, Name: "every acknowledged row of the canary is there", Time: "0.000"}
		if why != "" {
			c.Failure = &junitFailure{Message: why}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	body, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}
