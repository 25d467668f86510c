// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	containerMySQL = "mysql"
	mysqlSocket    = "/run/mfg/mysqld.sock"
)

// mysqlOp is `kubectl mfg mysql`.
type mysqlOp struct {
	Namespace string
	Group     string
	Site      string
	User      string
	Execute   string
	Args      []string
}

func (a *app) mysqlCommand() *cobra.Command {
	op := mysqlOp{}
	cmd := &cobra.Command{
		Use:   "mysql GROUP SITE [-e SQL] [-- ARGUMENTS]",
		Short: "Open a mysql client in the pod of a site",
		Long: `Open a mysql client in the pod of a site, over its socket. It needs the right to exec into pods; the client is the one
in the image of MySQL, if it has one.

On a terminal the client asks for the password. With -e, or with SQL on stdin, the password of root is taken from the
group's Secret, which needs the right to read it, and goes through stdin: never through a command line.

A write on a site that is not active is refused by MySQL: such a site is read-only, also for root.

` + exitCodes,
		Example: `  # A session on the active site; the password:
  kubectl get secret mysql-orders-root -o jsonpath='{.data.password}' | base64 -d
  kubectl mfg mysql orders paris

  # One statement
  kubectl mfg mysql orders frankfurt -e 'SHOW REPLICA STATUS\G'

  # As another user, with further arguments of the client
  kubectl mfg mysql orders paris --user app -- --table`,
		ValidArgsFunction: a.completeGroupAndSite,
	}
	cmd.Flags().StringVarP(&op.User, "user", "u", "root", "User of MySQL.")
	cmd.Flags().StringVarP(&op.Execute, "execute", "e", "", "Run this SQL and end.")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, op.Args = args[:dash], args[dash:]
		}
		if err := exactly("GROUP", "SITE")(cmd, args); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		op.Site = args[1]
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *mysqlOp) validate() error {
	if op.User == "" {
		return errors.New("--user is empty")
	}
	return nil
}

func (op *mysqlOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	pod, err := op.pod(ctx, c)
	if err != nil {
		return exitError, err
	}
	e := execution{Namespace: op.Namespace, Pod: pod, Container: containerMySQL, In: env.In, Out: env.Out, ErrOut: env.ErrOut}
	client := append([]string{"mysql", "--no-defaults", "--user=" + op.User, "--socket=" + mysqlSocket}, op.Args...)
	if op.Execute == "" && env.Interactive() {
		client = append(client, "--password")
		e.Command, e.TTY = client, true
		return op.interactive(ctx, env, c, e)
	}
	if op.Execute != "" {
		client, e.In = append(client, "--execute="+op.Execute), strings.NewReader("")
	}
	password, err := op.password(ctx, c)
	if err != nil {
		return exitError, err
	}
	// The command line of an exec is in the audit log of the API server, so the password goes through stdin.
	e.Command = append([]string{"sh", "-c", `IFS= read -r MYSQL_PWD && export MYSQL_PWD && exec "$@"`, "sh"}, client...)
	e.In = io.MultiReader(strings.NewReader(password+"\n"), e.In)
	return op.outcome(c.Exec(ctx, e))
}

// pod finds the pod of the site.
func (op *mysqlOp) pod(ctx context.Context, c Cluster) (string, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return "", err
	}
	if _, known := roleOf(g, op.Site); !known {
		return "", fmt.Errorf("%s has no site %q; its sites are %s", op.Group, op.Site, siteNames(g))
	}
	pods, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: podSelector(op.Group, op.Site)})
	if err != nil {
		return "", rightsHint(err, "list", "pods", op.Namespace)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("site %s has no pod that runs\n  see why: kubectl describe pods -n %s -l %s", op.Site, op.Namespace, podSelector(op.Group, op.Site))
}

// password is root's. Of another user the plugin knows none.
func (op *mysqlOp) password(ctx context.Context, c Cluster) (string, error) {
	if op.User != "root" {
		return "", usage("without a terminal only --user root is possible: the password of %s is not known", op.User)
	}
	name := v1alpha1.RootSecret(op.Group)
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", rightsHint(err, "get", "secrets/"+name, op.Namespace)
	}
	return string(secret.Data["password"]), nil
}

// interactive hands the terminal over.
func (op *mysqlOp) interactive(ctx context.Context, env Environment, c Cluster, e execution) (int, error) {
	file, is := env.In.(*os.File)
	if !is {
		return op.outcome(c.Exec(ctx, e))
	}
	fd := int(file.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return exitError, fmt.Errorf("prepare the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	e.Resize = &terminalSize{fd: fd}
	return op.outcome(c.Exec(ctx, e))
}

// terminalSize tells the size once: a client of SQL needs no more.
type terminalSize struct {
	fd   int
	told bool
}

// Next is the size, then nothing.
func (t *terminalSize) Next() *remotecommand.TerminalSize {
	width, height, err := term.GetSize(t.fd)
	if t.told || err != nil {
		return nil
	}
	t.told = true
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}

// outcome says in plain words what went wrong. The client's own exit code is an error; it has said why.
func (op *mysqlOp) outcome(err error) (int, error) {
	var exit utilexec.CodeExitError
	switch {
	case err == nil:
		return exitHealthy, nil
	case errors.As(err, &exit) && (exit.Code == 126 || exit.Code == 127), err != nil && strings.Contains(err.Error(), "executable file not found"):
		return exitError, fmt.Errorf("the image of MySQL has no mysql client (or no sh)\n  forward a port instead: kubectl port-forward -n %s service/%s 3306", op.Namespace, v1alpha1.SiteName(op.Group, op.Site))
	case errors.As(err, &exit):
		return exitError, fmt.Errorf("mysql ended with code %d", exit.Code)
	case apierrors.IsForbidden(err):
		return exitError, rightsHint(err, "create", "pods/exec", op.Namespace)
	}
	return exitError, fmt.Errorf("exec into the pod: %w", err)
}
