// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of `kubectl mfg`, one file per verb. cobra only fills an operation; the operation
// checks itself without any I/O and runs against what it is given.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Exit codes; they are part of the interface.
const (
	exitHealthy  = 0
	exitError    = 1
	exitUsage    = 2
	exitDegraded = 3
	exitTimeout  = 4
	exitRefused  = 5
)

const exitCodes = `Exit codes:
  0  healthy, or done
  1  error: the question could not be answered
  2  wrong usage, or not confirmed: nothing was changed
  3  degraded: the answer is on stdout, and something in it needs attention
  4  the wait ended (--timeout, Ctrl-C) before the outcome was known; what was asked for goes on
  5  refused, reverted or given up: the message says why and what to do next`

// coded is an error with an exit code of its own.
type coded struct {
	code int
	err  error
	// reason is the operator's word for a refusal, where there is one.
	reason v1alpha1.Reason
	// ended is why a wait ended, without what to do about it.
	ended string
	// told is true if the report on stdout says it too.
	told bool
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func refused(format string, args ...any) error {
	return &coded{code: exitRefused, err: fmt.Errorf(format, args...)}
}
func waitedOut(format string, args ...any) error {
	return &coded{code: exitTimeout, err: fmt.Errorf(format, args...)}
}
func notConfirmed(format string, args ...any) error {
	return &coded{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// errUsage marks errors of the command line itself.
var errUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUsage, fmt.Errorf(format, args...))
}

// Environment is all that a command may touch besides the cluster.
type Environment struct {
	genericiooptions.IOStreams
	Getenv func(string) string
	Now    func() time.Time
	// Wait sleeps; it is false if the context ended first.
	Wait func(context.Context, time.Duration) bool
	// Terminal is the width of stdout; ok is false where it is none.
	Terminal func() (width int, ok bool)
	// Interactive is true if a person can be asked: stdin is a terminal.
	Interactive func() bool
}

// System is the environment of the process.
func System() Environment {
	return Environment{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Getenv:    os.Getenv,
		Now:       time.Now,
		Wait: func(ctx context.Context, d time.Duration) bool {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				return true
			case <-ctx.Done():
				return false
			}
		},
		Terminal: func() (int, bool) {
			width, _, err := term.GetSize(int(os.Stdout.Fd()))
			return width, err == nil
		},
		Interactive: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
	}
}

// operation is one verb, ready to run.
type operation interface {
	// validate looks at nothing but the operation. Its errors are errors of usage.
	validate() error
	// run does it, and returns the exit code if there was no error.
	run(ctx context.Context, env Environment, c Cluster) (int, error)
}

// app binds the command line to what runs it.
type app struct {
	env     Environment
	flags   *genericclioptions.ConfigFlags
	connect func() (Cluster, error)
	// perform is replaced by tests that want to see the operation.
	perform func(ctx context.Context, op operation) error
	code    int
}

func newApp(env Environment) *app {
	a := &app{env: env, flags: genericclioptions.NewConfigFlags(true)}
	a.connect = func() (Cluster, error) { return connect(a.flags) }
	a.perform = func(ctx context.Context, op operation) error {
		if err := op.validate(); err != nil {
			return usage("%w", err)
		}
		cluster, err := a.connect()
		if err != nil {
			return err
		}
		a.code, err = op.run(ctx, a.env, cluster)
		return tell(a.env, op, err)
	}
	return a
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, args []string, env Environment) int {
	hush()
	return newApp(env).main(ctx, args)
}

// hush drops what the Kubernetes client logs by itself: a command says in its own words what failed and what it does instead, and
// a line of log would lie across a dashboard.
var hush = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func (a *app) main(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // commands get the context by ExecuteContext; reading a kubeconfig takes none.
	root.SetArgs(args)
	root.SetIn(a.env.In)
	root.SetOut(a.env.Out)
	root.SetErr(a.env.ErrOut)
	cmd, err := root.ExecuteContextC(ctx)
	var own *coded
	switch {
	case err == nil:
		return a.code
	case errors.Is(err, errUsage):
		fmt.Fprintf(a.env.ErrOut, "error: %s\nSee '%s --help'.\n", strings.TrimPrefix(err.Error(), errUsage.Error()+": "), cmd.CommandPath())
		return exitUsage
	case errors.As(err, &own):
		fmt.Fprintf(a.env.ErrOut, "error: %v\n", own)
		return own.code
	default:
		fmt.Fprintf(a.env.ErrOut, "error: %v\n", err)
		return exitError
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-mfg",
		Short: "See and operate groups of MySQL sites with automatic failover",
		Long: `See and operate groups of MySQL sites with automatic failover (mfg).

Start with:   kubectl mfg status
At 3 a.m.:    kubectl mfg explain GROUP    why it does, or does not, fail over, and what to do
By day:       kubectl mfg failover GROUP --to SITE

` + exitCodes,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mfg"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return usage("unknown command %q; did you mean %s?", args[0], strings.Join(like, ", "))
			}
			return usage("unknown command %q", args[0])
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	a.flags.AddFlags(root.PersistentFlags())
	addGroup(root, "inspect", "Inspect:", a.statusCommand(), a.dashboardCommand(), a.listCommand(), a.explainCommand(), a.historyCommand(), a.eventsCommand())
	addGroup(root, "operate", "Operate:", a.failoverCommand(), a.pauseCommand(), a.resumeCommand(), a.recloneCommand(), a.recoverKeyringCommand(), a.rotatePasswordsCommand(), a.drillCommand())
	addGroup(root, "encryption", "Encryption:", a.rotateCommand(), a.adoptCommand())
	addGroup(root, "troubleshoot", "Troubleshoot:", a.doctorCommand(), a.keyringCommand(), a.reportCommand(), a.mysqlCommand())
	addGroup(root, "other", "Other:", a.completionCommand(), a.versionCommand())
	root.SetHelpCommandGroupID("other")
	// Only fails for a flag that does not exist.
	_ = root.RegisterFlagCompletionFunc("namespace", a.completeNamespace)
	return root
}

// addGroup adds commands under a title; without commands there is no title.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	if len(commands) == 0 {
		return
	}
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// exactly wants each argument that the usage line names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return usage("%d argument(s) expected (%s), got %d: %s", len(names), strings.Join(names, " "), len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// groupArgument reads GROUP as people and kubectl write it.
func groupArgument(arg string) (string, error) {
	name, err := bareName(arg)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", usage("GROUP is empty")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", usage("%q cannot be the name of a group", name)
	}
	return name, nil
}

// namespace is the one of the flags, or of the kubeconfig's context.
func (a *app) namespace() (string, error) {
	name, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return name, nil
}

// addOperatorNamespace adds the flag that says where the operator runs.
func addOperatorNamespace(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "operator-namespace", defaultOperatorNamespace, "Namespace in which the operator runs.")
}

// atMost refuses more arguments than a verb takes.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("at most %d argument(s) expected, got %d: %s", n, len(args), strings.Join(args, " "))
		}
		return nil
	}
}
