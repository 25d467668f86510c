// SPDX-License-Identifier: Apache-2.0

// Package mysqlclient runs the mysql client in the pod of a site, over its socket.
package mysqlclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Cluster is the way into the pod of a site.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Exec runs a command in a container.
	Exec(ctx context.Context, e pods.Execution) error
	Kube() kubernetes.Interface
}

// Op is `kubectl mfg mysql`.
type Op struct {
	Namespace string
	Group     string
	// Site is empty for the active one.
	Site string
	// Account is one whose name and password are in a Secret of the group; User is any other, whose password a person types.
	// Exactly one of the two is set.
	Account string
	User    string
	Execute string
	Args    []string
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.User == "" && op.Account == "":
		return errors.New("--login is empty")
	case op.User != "" && op.Account != "":
		return errors.New("--login and --account exclude each other")
	case op.Account != "" && !slices.Contains(Accounts, op.Account):
		return fmt.Errorf("--account must be one of %s; for any other user of MySQL: --login", strings.Join(Accounts, ", "))
	}
	return nil
}

// Run runs the client, on the terminal or with what stdin holds.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	pod, err := op.Pod(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	e := pods.Execution{Namespace: op.Namespace, Pod: pod, Container: pods.ContainerMySQL, In: env.In, Out: escape.Raw(env.Out), ErrOut: escape.Raw(env.ErrOut)}
	terminal := op.Execute == "" && env.Interactive()
	who, err := op.login(ctx, c, terminal)
	if err != nil {
		return cli.ExitError, err
	}
	client := []string{"mysql", "--no-defaults", "--user=" + who.user, "--socket=" + pods.MysqlSocket}
	if who.database != "" && len(op.Args) == 0 { // the user's own arguments may name another one
		client = append(client, "--database="+who.database)
	}
	client = append(client, op.Args...)
	if terminal {
		client = append(client, "--password")
		e.Command, e.TTY = client, true
		if who.password == "" && op.Account != "" {
			fmt.Fprintf(env.ErrOut, "The Secret with the password of %s cannot be read, so the client asks for it.\n", who.user)
		}
		e = answering(ctx, e, who.password)
		return op.interactive(ctx, env, c, e)
	}
	if op.Execute != "" {
		client, e.In = append(client, "--execute="+op.Execute), strings.NewReader("")
	}
	e.Command, e.In = WithPassword(who.password, e.In, client...)
	return op.Outcome(c.Exec(ctx, e))
}

// WithPassword makes a MySQL client read its password from the first line of stdin, and then the rest of stdin. The command line of an exec is in the
// audit log of the API server.
func WithPassword(password string, in io.Reader, client ...string) (command []string, stdin io.Reader) {
	return append([]string{"sh", "-c", `IFS= read -r MYSQL_PWD && export MYSQL_PWD && exec "$@"`, "sh"}, client...),
		io.MultiReader(strings.NewReader(password+"\n"), in)
}

// Pod finds the pod of the site.
func (op *Op) Pod(ctx context.Context, c Cluster) (string, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return "", err
	}
	site := op.Site
	if site == "" {
		if site = g.Status.ActiveSite; site == "" {
			return "", fmt.Errorf("%s has no active site yet; name one of %s: kubectl mfg mysql %s SITE -n %s", op.Group, request.SiteNames(g), op.Group, op.Namespace)
		}
	}
	if _, known := request.RoleOf(g, site); !known {
		return "", fmt.Errorf("%s has no site %q; its sites are %s", op.Group, site, request.SiteNames(g))
	}
	all, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(op.Group, site)})
	if err != nil {
		return "", cli.RightsHint(err, "list", "pods", op.Namespace)
	}
	for _, p := range all.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			return p.Name, nil
		}
	}
	return "", fmt.Errorf("site %s has no pod that runs\n  see why: kubectl describe pods -n %s -l %s", site, op.Namespace, pods.Selector(op.Group, site))
}

// interactive hands over the terminal.
func (op *Op) interactive(ctx context.Context, env cli.Environment, c Cluster, e pods.Execution) (int, error) {
	file, is := env.In.(*os.File)
	if !is {
		return op.Outcome(c.Exec(ctx, e))
	}
	fd := int(file.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return cli.ExitError, fmt.Errorf("prepare the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	e.Resize = &terminalSize{fd: fd}
	return op.Outcome(c.Exec(ctx, e))
}

// terminalSize tells the size once: an SQL client needs no more.
type terminalSize struct {
	fd   int
	told bool
}

// Next returns the size once, then nil.
func (t *terminalSize) Next() *remotecommand.TerminalSize {
	width, height, err := term.GetSize(t.fd)
	if t.told || err != nil {
		return nil
	}
	t.told = true
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}

// service returns the Service through which a client outside the pod reaches the same server.
func (op *Op) service() string {
	if op.Site == "" {
		return v1alpha1.PrimaryService(op.Group)
	}
	return v1alpha1.SiteName(op.Group, op.Site)
}

// Outcome says in plain words what went wrong. The client's own exit code is an error; it has said why.
func (op *Op) Outcome(err error) (int, error) {
	var exit utilexec.CodeExitError
	switch {
	case err == nil:
		return cli.ExitHealthy, nil
	case errors.As(err, &exit) && (exit.Code == 126 || exit.Code == 127), err != nil && strings.Contains(err.Error(), "executable file not found"):
		return cli.ExitError, fmt.Errorf("the image of MySQL has no mysql client (or no sh)\n  forward a port instead: kubectl port-forward -n %s service/%s 3306", op.Namespace, op.service())
	case errors.As(err, &exit):
		return cli.ExitError, fmt.Errorf("mysql ended with code %d", exit.Code)
	case apierrors.IsForbidden(err):
		return cli.ExitError, cli.RightsHint(err, "create", "pods/exec", op.Namespace)
	}
	return cli.ExitError, fmt.Errorf("exec into the pod: %w", err)
}
