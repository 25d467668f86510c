// SPDX-License-Identifier: Apache-2.0

// Package restore makes the specification of a new group that is loaded from a backup, checks what it can before anything begins,
// and follows the restore. See docs/backups.md and docs/disaster.md.
package restore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what a restore needs of the cluster.
type Cluster interface {
	pitr.Cluster
	// CreateGroup makes a group, or lets the API server only check it.
	CreateGroup(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, dryRun bool) (*v1alpha1.MysqlFailoverGroup, error)
}

// lineOfPlan is one line of the plan.
type lineOfPlan = screen.Line

// Op is `kubectl mfg restore`.
type Op struct {
	Namespace string
	// Group is the new group.
	Group string
	// From is the group that the backup was taken from, in FromNamespace, or in Namespace if that is empty.
	From, FromNamespace string
	// Backup is empty for the newest.
	Backup string
	// Profile or StorageFile say where the backup is. With neither, the only profile of the group.
	Profile, StorageFile string
	// IdentitySecret opens an encrypted backup. Default: the profile's.
	IdentitySecret string
	// File has the specification of the new group. Default: the living group's.
	File string
	// At is the point in time beyond the backup; empty stops at the backup. Check first looks into the archive whether it can be reached, in
	// a pod with Image, or with the image of the operator in OperatorNamespace.
	At                       string
	Check                    bool
	Image, OperatorNamespace string
	// Apply makes the group; without it its YAML is printed.
	Apply   bool
	Wait    bool
	Timeout time.Duration
	Output  cli.Output

	rep    *Report
	target wire.BackupTarget
}

// Report is the outcome in machine form.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	From       string          `json:"from"`
	Backup     string          `json:"backup,omitempty"`
	// Target is the point in time, in words.
	Target string        `json:"target,omitempty"`
	Checks []screen.Line `json:"checks"`
	// Outcome is Requested (not waited for), Succeeded, Refused or TimedOut.
	Outcome        string          `json:"outcome"`
	Reason         v1alpha1.Reason `json:"reason,omitempty"`
	Message        string          `json:"message,omitempty"`
	Next           string          `json:"next,omitempty"`
	RestoreSeconds int64           `json:"restoreSeconds,omitempty"`
}

// groupForm is the form of group names, as in the definition.
var groupForm = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,28}[a-z0-9])?$`)

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case !groupForm.MatchString(op.Group):
		return fmt.Errorf("%q cannot be the name of a group: at most 30 lower-case letters, digits and '-', beginning with a letter", op.Group)
	case op.From == "":
		return errors.New("--from is missing: name the group that the backup was made of")
	case !groupForm.MatchString(op.From):
		return fmt.Errorf("--from %q cannot be the name of a group", op.From)
	case op.FromNamespace != "" && len(validation.IsDNS1123Label(op.FromNamespace)) > 0:
		return fmt.Errorf("--from-namespace %q cannot be the name of a namespace", op.FromNamespace)
	case op.Profile != "" && op.StorageFile != "":
		return errors.New("--profile and --storage-file exclude each other: each says where the backup is")
	case op.IdentitySecret != "" && len(validation.IsDNS1123Subdomain(op.IdentitySecret)) > 0:
		return fmt.Errorf("--identity-secret %q cannot be the name of a Secret", op.IdentitySecret)
	case op.Apply && op.Wait && op.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	case op.At == "":
		return nil
	}
	var err error
	op.target, err = parseAt(op.At)
	return err
}

// Failed is the outcome in machine form.
func (op *Op) Failed(f cli.Failure) (any, cli.Output) {
	if op.rep == nil || !op.Apply {
		return nil, op.Output
	}
	op.rep.Outcome, op.rep.Reason, op.rep.Message, op.rep.Next = f.Outcome, f.Reason, f.Message, f.Next
	return op.rep, op.Output
}

// Run makes the specification, checks it, and prints or applies it.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	if op.FromNamespace == "" {
		op.FromNamespace = op.Namespace
	}
	op.rep = &Report{APIVersion: report.APIVersion, Kind: "MfgRestoreReport", Metadata: report.Metadata{Name: op.Group, Namespace: op.Namespace}, From: op.FromNamespace + "/" + op.From, Checks: []screen.Line{}}
	if err := op.free(ctx, c); err != nil {
		return cli.ExitError, err
	}
	template, err := op.template(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if template.storage, err = op.storage(); err != nil {
		return cli.ExitError, err
	}
	if err := op.archiveProfile(template); err != nil {
		return cli.ExitError, err
	}
	known, unseen := op.known(ctx, c)
	if template.storage != nil && op.Backup == "" {
		known, unseen = op.inStorage(*template.storage, known, unseen)
	}
	plan, err := op.plan(template, known, env.Now())
	if err != nil {
		return cli.ExitError, err
	}
	if unseen != "" {
		plan.say("Unseen", "%s", unseen)
	}
	// First, because a pod that reads the archive mounts the same Secrets: without one of them it does not start, and does not say why.
	if err := op.prerequisites(ctx, c, plan); err != nil {
		return cli.ExitError, err
	}
	if err := op.aim(ctx, c, plan); err != nil {
		return cli.ExitError, err
	}
	op.rep.Backup = plan.group.Spec.InitFromBackup.Backup
	if err := op.rehearse(ctx, c, plan); err != nil {
		return cli.ExitError, err
	}
	op.rep.Checks = plan.checks
	width, _ := env.Terminal()
	fmt.Fprint(env.ErrOut, screen.Plan(fmt.Sprintf("Restore %s into the new group %s (namespace %s)", op.rep.From, op.Group, op.Namespace), plan.checks, screen.Options{Width: width}))
	if !op.Apply {
		return cli.ExitHealthy, op.print(env, plan.group)
	}
	return op.apply(ctx, env, c, plan.group)
}

// free refuses a name that is taken: nothing is restored over living data.
func (op *Op) free(ctx context.Context, c Cluster) error {
	_, err := c.Group(ctx, op.Namespace, op.Group)
	switch {
	case err == nil:
		return cli.Refused("refused: there is a group %s in namespace %s already, and nothing is restored over a group\n  restore into a new one, under another name: kubectl mfg restore %s-restored --from %s -n %s", op.Group, op.Namespace, op.Group, op.From, op.Namespace)
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// known returns the backups that the cluster knows of. The bucket is the truth: if they are gone, or cannot be seen, the restore does without.
func (op *Op) known(ctx context.Context, c Cluster) (all []v1alpha1.MysqlBackup, unseen string) {
	all, err := c.Backups(ctx, op.FromNamespace, op.From)
	if err != nil {
		return nil, "the backups that this cluster knows of could not be listed (" + cli.FirstLine(err) + "): whether there is one, the operator finds out"
	}
	if len(all) == 0 {
		return nil, "this cluster knows of no backup of " + op.rep.From + ": whether there is one in the storage, the operator finds out before it touches anything"
	}
	return all, ""
}

// inStorage leaves the backups that lie in the storage of the file: the newest of another storage would be looked for in vain, or hide a newer one.
func (op *Op) inStorage(s v1alpha1.BackupStorage, known []v1alpha1.MysqlBackup, unseen string) ([]v1alpha1.MysqlBackup, string) {
	place := v1alpha1.StoragePlace{Location: s.Location(op.FromNamespace, op.From), Digest: s.Digest(op.FromNamespace, op.From)}
	var there []v1alpha1.MysqlBackup
	for i := range known {
		if known[i].Status.LiesIn(place) {
			there = append(there, known[i])
		}
	}
	if len(known) > 0 && len(there) == 0 {
		unseen = "the backups of " + op.rep.From + " that this cluster knows of lie elsewhere: whether there is one in this storage, the operator finds out before it touches anything"
	}
	return there, unseen
}

// print writes the group as YAML, or as one of the formats of kubectl.
func (op *Op) print(env cli.Environment, g *v1alpha1.MysqlFailoverGroup) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g.Spec)
	if err != nil {
		return fmt.Errorf("encode the group: %w", err)
	}
	content := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "MysqlFailoverGroup",
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace}, "spec": spec,
	}
	fmt.Fprintln(env.ErrOut, "Nothing was changed. To begin: the same command with --apply, or kubectl apply -f - with what is on stdout.")
	if op.Output.Printer != nil {
		return op.Output.Print(env.Out, &unstructured.Unstructured{Object: content})
	}
	raw, err := escape.YAML(content)
	if err != nil {
		return fmt.Errorf("encode the group: %w", err)
	}
	if _, err := escape.Exact(env.Out).Write(raw); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
