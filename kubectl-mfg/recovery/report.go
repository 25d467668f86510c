// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Failed returns the report of a failed run.
func (op *Op) Failed(f cli.Failure) (any, cli.Output) {
	rep := op.made
	if rep == nil {
		rep = op.bareReport()
	}
	if op.DryRun != request.DryRunNone {
		rep.DryRun = op.DryRun
	}
	rep.Outcome, rep.Message, rep.Next = f.Outcome, f.Message, f.Next
	return rep, op.Output
}

// Report is the answer in machine form. It never holds a byte of a key.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	Verb       string          `json:"verb"`
	DryRun     string          `json:"dryRun,omitempty"`
	Site       string          `json:"site"`
	Secret     string          `json:"secret"`
	Version    int64           `json:"version"`
	Digest     string          `json:"digest"`
	// Steps are the steps that were due, in order; steps that were already done are not among them.
	Steps []stepReport `json:"steps"`
	// MissingRights are the rights that the user lacks to carry it out, in a dry run.
	MissingRights []string `json:"missingRights,omitempty"`
	// Outcome is Planned (dry run), Requested (not waited for), Succeeded, Refused or TimedOut.
	Outcome string `json:"outcome"`
	Message string `json:"message"`
	// Next is what a person can do about an unwanted outcome.
	Next string `json:"next,omitempty"`
}

// stepReport is one step.
type stepReport struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// State is Planned, Done, or NotAllowed if this user has no right to it; the recovery succeeds without.
	State string `json:"state"`
	// Change is the object or patch that is sent, in a dry run; the key is redacted.
	Change any `json:"change,omitempty"`
}

// States of steps.
const (
	stepPlanned = "Planned"
	stepDone    = "Done"
	stepLeft    = "NotAllowed"
)

func (op *Op) recoveryReport(r *recovery, due []recoveryStep) *Report {
	rep := op.bareReport()
	rep.Secret, rep.Version, rep.Digest = r.status.KeyringSecret, r.status.KeyringVersion, r.status.KeyringDigest
	for _, s := range due {
		rep.Steps = append(rep.Steps, stepReport{Name: s.name, Text: s.text(r), State: stepPlanned})
	}
	return rep
}

// bareReport returns what is known before the first look.
func (op *Op) bareReport() *Report {
	return &Report{
		APIVersion: report.APIVersion, Kind: "MfgRecoveryReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace},
		Verb: "recover-keyring", Site: op.Site, Steps: []stepReport{},
	}
}

// finishRecovery writes the outcome.
func (op *Op) finishRecovery(env cli.Environment, rep *Report) (int, error) {
	if op.Output.Printer != nil {
		return cli.ExitHealthy, op.Output.Print(env.Out, rep)
	}
	if err := showChanges(env, rep); err != nil {
		return cli.ExitError, err
	}
	fmt.Fprintln(env.Out, rep.Message)
	return cli.ExitHealthy, nil
}

// showChanges prints each object of a dry run, as YAML that says its purpose.
func showChanges(env cli.Environment, rep *Report) error {
	for _, s := range rep.Steps {
		if s.Change == nil {
			continue
		}
		text, err := yaml.Marshal(s.Change)
		if err != nil {
			return fmt.Errorf("print change: %w", err)
		}
		fmt.Fprintf(env.Out, "# %s: %s\n%s---\n", s.Name, s.Text, text)
	}
	return nil
}
