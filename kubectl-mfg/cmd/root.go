// SPDX-License-Identifier: Apache-2.0

// Package cmd is the command line of `kubectl mfg`, one file per verb. cobra only fills an operation; the operation
// checks itself without any I/O and runs against its arguments.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/klog/v2"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cluster"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// operation is one verb, filled in.
type operation interface {
	// Validate looks only at the operation. Its errors are errors of usage.
	Validate() error
}

// app binds the command line to what runs it.
type app struct {
	env     cli.Environment
	flags   *genericclioptions.ConfigFlags
	connect func() (Cluster, error)
	// perform checks an operation and runs it against the cluster; run returns the exit code if there was no error. Tests that want
	// to see the operation replace it.
	perform func(ctx context.Context, op operation, run func(context.Context, Cluster) (int, error)) error
	// offline does the same without a cluster.
	offline func(ctx context.Context, op operation, run func(context.Context) (int, error)) error
	code    int
}

func newApp(env cli.Environment) *app {
	a := &app{env: env, flags: genericclioptions.NewConfigFlags(true)}
	a.connect = func() (Cluster, error) {
		c, err := cluster.Connect(a.flags)
		return c, err
	}
	a.perform = func(ctx context.Context, op operation, run func(context.Context, Cluster) (int, error)) error {
		if err := op.Validate(); err != nil {
			return cli.Usage("%w", err)
		}
		cluster, err := a.connect()
		if err != nil {
			return err
		}
		a.code, err = run(ctx, cluster)
		return cli.Tell(a.env, op, err)
	}
	a.offline = func(ctx context.Context, op operation, run func(context.Context) (int, error)) (err error) {
		if err := op.Validate(); err != nil {
			return cli.Usage("%w", err)
		}
		a.code, err = run(ctx)
		return cli.Tell(a.env, op, err)
	}
	return a
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, args []string, env cli.Environment) int {
	silenceClientLogs()
	return newApp(env).main(ctx, args)
}

// silenceClientLogs drops the log lines of the Kubernetes client: a command says in its own words what failed and what it does instead, and a
// log line would spoil a dashboard.
var silenceClientLogs = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func (a *app) main(ctx context.Context, args []string) int {
	defer a.escaped()()
	root := a.root() //nolint:contextcheck // commands get the context by ExecuteContext; reading a kubeconfig takes none.
	root.SetArgs(args)
	root.SetIn(a.env.In)
	root.SetOut(a.env.Out)
	root.SetErr(a.env.ErrOut)
	cmd, err := root.ExecuteContextC(ctx)
	var own *cli.Error
	switch {
	case err == nil:
		return a.code
	case errors.Is(err, cli.ErrUsage):
		fmt.Fprintf(a.env.ErrOut, "error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return cli.ExitUsage
	case errors.As(err, &own):
		fmt.Fprintf(a.env.ErrOut, "error: %v\n", own)
		return own.Code
	default:
		fmt.Fprintf(a.env.ErrOut, "error: %v\n", err)
		return cli.ExitError
	}
}

// escaped sends all output from here on through an escape.Writer: nothing that the cluster says can steer the terminal. A verb whose
// output is not for people says so, by escape.Exact or escape.Raw.
func (a *app) escaped() (end func()) {
	before, terminal := a.env.IOStreams, a.env.Terminal != nil
	if terminal {
		_, terminal = a.env.Terminal()
	}
	out, errOut := escape.NewWriter(before.Out, terminal), escape.NewWriter(before.ErrOut, true)
	a.env.Out, a.env.ErrOut = out, errOut
	return func() {
		_ = errors.Join(out.Close(), errOut.Close()) // a reader that has gone misses nothing
		a.env.IOStreams = before
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-mfg",
		Short: "See and operate groups of MySQL sites with automatic failover",
		Long: `See and operate groups of MySQL sites with automatic failover (mfg).

Start with:   kubectl mfg status
At 3 a.m.:    kubectl mfg explain GROUP    why it does or does not fail over, and what to do
By day:       kubectl mfg failover GROUP --to SITE`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mfg"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
				return cli.Usage("unknown command %q; did you mean %s?", args[0], strings.Join(like, ", "))
			}
			return cli.Usage("unknown command %q; kubectl mfg --help lists them", args[0])
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) && bad.GetFlag().Value.Type() == "duration" {
			return cli.Usage("%w; write a number and its unit, such as 90s, 30m or 2h", err)
		}
		return cli.Usage("%w", err)
	})
	// How to use a verb comes first; the codes are the same for all.
	root.SetHelpTemplate(root.HelpTemplate() + "\n" + cli.ExitCodes + "\n")
	a.flags.AddFlags(root.PersistentFlags())
	addGroup(root, "inspect", "Inspect:", a.statusCommand(), a.dashboardCommand(), a.listCommand(), a.explainCommand(), a.historyCommand(), a.eventsCommand(), logsCommand(a))
	addGroup(root, "operate", "Operate:", a.failoverCommand(), a.pauseCommand(), a.resumeCommand(), fenceCommand(a), a.recloneCommand(), a.recoverKeyringCommand(), a.rotatePasswordsCommand(), appPasswordCommand(a), accountCommand(a), restartCommand(a), certificatesCommand(a), a.drillCommand(), a.cacheCommand(), upgradeCommand(a))
	addGroup(root, "backup", "Back up:", a.backupCommand(), a.restoreCommand())
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
			return missing(names, args)
		}
		if len(args) > len(names) {
			return cli.Usage("%d argument(s) expected (%s), got %d: %s", len(names), strings.Join(names, " "), len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// missing names the first argument that is missing, and where to look for it.
func missing(names, args []string) error {
	name, find := names[len(args)], ""
	switch {
	case name == "GROUP":
		find = "; to see your groups: kubectl mfg list -A"
	case name == "SITE" && len(args) > 0:
		find = "; to see the sites: kubectl mfg status " + args[0]
	case name == "BACKUP":
		find = "; to see the backups: kubectl mfg backup list"
	}
	return cli.Usage("%s is missing%s", name, find)
}

// groupArgument reads GROUP as people and kubectl write it.
func groupArgument(arg string) (string, error) {
	name, err := bareName(arg)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", cli.Usage("GROUP is empty")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", cli.Usage("%q cannot be the name of a group", name)
	}
	return name, nil
}

// namespace returns the namespace of the flags, or of the kubeconfig's context.
func (a *app) namespace() (string, error) {
	name, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	return name, nil
}

// addOperatorNamespace adds the flag that says where the operator runs.
func addOperatorNamespace(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "operator-namespace", live.DefaultNamespace, "Namespace in which the operator runs.")
}

// atMost refuses more arguments than a verb takes.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return cli.Usage("at most %d argument(s) expected, got %d: %s", n, len(args), strings.Join(args, " "))
		}
		return nil
	}
}

// family makes a verb that only has verbs of its own: without one of them it shows its help.
func family(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return cli.Usage("unknown command %q; there are %s and %s", args[0], strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
	cmd.AddCommand(verbs...)
	return cmd
}
