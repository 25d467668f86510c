// SPDX-License-Identifier: Apache-2.0

// Package doctor checks around a group what the operator has no right to see, but a person may. It only reads, and never
// a Secret.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Level is how bad a finding is.
type Level string

// The levels, the worst last, except Unknown, which is no judgement.
const (
	Unknown Level = "UNKNOWN"
	OK      Level = "OK"
	Warn    Level = "WARN"
	Fail    Level = "FAIL"
)

// Finding is what one check found.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Remedies are what to do next, and Remedy the same as words in one line.
	Remedies []wire.Remedy `json:"remedies,omitempty"`
	Remedy   string        `json:"remedy,omitempty"`
}

// advised returns the finding with what to do next, if there is anything.
func (f Finding) advised(remedy wire.Remedy) Finding {
	if remedy != (wire.Remedy{}) {
		f.Remedies, f.Remedy = []wire.Remedy{remedy}, remedy.String()
	}
	return f
}

// Report is all findings.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	Findings   []Finding       `json:"findings"`
}

// Worst is Fail, Warn or OK.
func (r Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// World is what the checks look at.
type World struct {
	Group             *v1alpha1.MysqlFailoverGroup
	Kube              kubernetes.Interface
	OperatorNamespace string
	// Now is this machine's clock when the API server was asked for its own; Asked when the operator answered.
	Now, Asked time.Time
	// OperatorTime is the operator's clock; zero if it could not be asked, and OperatorMissing says why.
	OperatorTime    time.Time
	OperatorVersion string
	OperatorMissing string
	OperatorDown    bool
	// ServerTime is the API server's clock, to the second; the answer took ServerTook.
	ServerTime time.Time
	ServerTook time.Duration
	ServerErr  error
	// Forecast and Problems are those of kubectl mfg status; Forecast is nil while the group is not healthy.
	Forecast *report.Forecast
	Problems []report.Problem
	// Summary is what `status` says in a word.
	Summary report.Summary
	// Escrow is nil for a group without encryption.
	Escrow *Endpoint
	// CacheCertificate is nil for a group without a cache store, or whose cache does not speak TLS.
	CacheCertificate *Certificate
	// BackupSecrets are the Secrets that backups need: nil for one that exists, or else why it cannot be seen.
	BackupSecrets map[string]error
}

// clock returns the time by the API server, if known: this machine's clock may be wrong by hours.
func (w World) clock() time.Time {
	if w.ServerErr == nil && !w.ServerTime.IsZero() {
		return w.ServerTime
	}
	return w.Now
}

// check looks at one thing. It returns one or more findings under its name.
type check struct {
	name string
	look func(context.Context, World) []Finding
}

// checks are all, in the order in which a person would want to read them.
var checks = []check{
	{"operator", operator},
	{"leader", leader},
	{"pause", pause},
	{"failover", forecast},
	{"clocks", clocks},
	{"nodes", nodes},
	{"spread", spread},
	{"swap", swap},
	{"eviction", eviction},
	{"volumes", volumes},
	{"certificate", groupCertificate},
	{"cache", cacheStore},
	{"backups", backupStore},
	{"escrow", escrow},
	{"secrets at rest", secretsAtRest},
	{"who reads secrets", secretReaders},
	{"who reads keys", keyReaders},
}

// Examine runs every check.
func Examine(ctx context.Context, w World) []Finding {
	var all []Finding
	for _, c := range checks {
		if ctx.Err() != nil {
			break
		}
		for _, f := range c.look(ctx, w) {
			f.Check = c.name
			all = append(all, f)
		}
	}
	return all
}

func one(level Level, remedy wire.Remedy, format string, args ...any) []Finding {
	return []Finding{Finding{Level: level, Message: fmt.Sprintf(format, args...)}.advised(remedy)}
}

// cannotSee says that a check could not look, and which right is missing.
func cannotSee(err error, verb, kind, namespace string) []Finding {
	where := "--all-namespaces"
	if namespace != "" {
		where = "-n " + namespace
	}
	if apierrors.IsForbidden(err) {
		return one(Unknown, wire.Remedy{Text: "ask a person for whom this command says yes", Command: fmt.Sprintf("kubectl auth can-i %s %s %s", verb, kind, where)}, "you may not %s %s", verb, kind)
	}
	return one(Unknown, wire.Remedy{}, "%v", err)
}

func operator(_ context.Context, w World) []Finding {
	switch {
	case w.OperatorDown:
		return one(Fail, wire.Remedy{Command: "kubectl get pods -n " + w.OperatorNamespace + " -l app.kubernetes.io/name=mfg"}, "no operator looks after the group: %s", w.OperatorMissing)
	case w.OperatorMissing != "":
		return one(Unknown, wire.Remedy{}, "not asked: %s", w.OperatorMissing)
	}
	return one(OK, wire.Remedy{}, "version %s answers", w.OperatorVersion)
}

func pause(_ context.Context, w World) []Finding {
	value, set := w.Group.Annotations[v1alpha1.AnnotationPauseUntil]
	resume := wire.Remedy{Command: fmt.Sprintf("kubectl mfg resume %s -n %s", w.Group.Name, w.Group.Namespace)}
	until, err := time.Parse(time.RFC3339, value)
	switch {
	case !set:
		return one(OK, wire.Remedy{}, "not paused; failover mode is %s", mode(w.Group))
	case err != nil:
		return one(Fail, resume, "the pause %q is no time, so nothing is paused", value)
	case w.clock().Before(until):
		return one(Warn, resume, "paused until %s: a lost active site is not replaced", until.UTC().Format(time.RFC3339))
	}
	return one(OK, wire.Remedy{}, "a pause ended at %s", until.UTC().Format(time.RFC3339))
}

func mode(g *v1alpha1.MysqlFailoverGroup) v1alpha1.FailoverMode {
	if g.Spec.Failover.Mode == "" {
		return v1alpha1.FailoverAuto
	}
	return g.Spec.Failover.Mode
}

func forecast(_ context.Context, w World) []Finding {
	explain := wire.Remedy{Command: fmt.Sprintf("kubectl mfg explain %s -n %s", w.Group.Name, w.Group.Namespace)}
	f, known := w.Forecast, ""
	if w.OperatorMissing != "" {
		known = "last known: "
	}
	switch {
	case w.OperatorDown: // which is already a failure; an older forecast is no answer
		return one(Unknown, explain, "no forecast: no operator looks after the group")
	// Who would take over does not matter while clients cannot write, while two sites take writes, or if the forecast is old.
	case len(w.Problems) > 0 && (f == nil || w.Summary == report.SummaryUnavailable || w.Summary == report.SummarySplitBrain || report.IsStale(w.Problems)):
		return one(Fail, wire.Remedy{Command: fmt.Sprintf("kubectl mfg status %s -n %s", w.Group.Name, w.Group.Namespace)},
			"%sthe group is not healthy now: %s", known, gravest(w.Problems))
	case f == nil && w.OperatorMissing != "":
		return one(Unknown, explain, "no forecast: the operator was not asked, and the last known status has none")
	case f == nil:
		return one(Fail, explain, "no forecast: the group is not healthy now")
	case f.Site == "":
		return one(Fail, explain, "%sno site would take over: %s", known, f.Message)
	case f.BlockedBy != "":
		return one(Warn, explain, "%s%s would not take over without an order (%s): %s", known, f.Site, f.BlockedBy, f.Message)
	}
	return one(OK, wire.Remedy{}, "%s%s", known, f.Message)
}

// gravest returns the first problem in words, and how many more there are.
func gravest(all []report.Problem) string {
	words := strings.TrimSpace(all[0].Site+" "+all[0].Message) + " [" + string(all[0].Reason) + "]"
	if more := len(all) - 1; more > 0 {
		words += fmt.Sprintf("; %d more", more)
	}
	return words
}

// Bounds of how much two clocks may differ. No decision compares them; but people who look at another clock read pauses,
// cooldowns and records.
const (
	clockWarn = 2 * time.Second
	clockFail = 30 * time.Second
)

func clocks(_ context.Context, w World) []Finding {
	switch {
	case w.ServerErr != nil:
		return one(Unknown, wire.Remedy{}, "the API server's clock was not read: %v", w.ServerErr)
	case w.OperatorTime.IsZero():
		return one(Unknown, wire.Remedy{}, "the operator's clock was not read")
	}
	// Both were read at moments that this machine's clock can tell apart. The header has whole seconds: half a second is
	// added for the cut-off part.
	operatorAhead := w.OperatorTime.Sub(w.Asked)
	serverAhead := w.ServerTime.Add(500 * time.Millisecond).Sub(w.Now.Add(w.ServerTook / 2))
	apart := (operatorAhead - serverAhead).Abs().Round(100 * time.Millisecond)
	level, remedy := OK, wire.Remedy{}
	if apart > clockWarn {
		level, remedy = Warn, wire.Remedy{Text: "see that the nodes keep time by NTP"}
	}
	if apart > clockFail {
		level = Fail
	}
	return one(level, remedy, "the operator's and the API server's differ by about %s (±1 s)", apart)
}
