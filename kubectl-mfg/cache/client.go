// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Cluster is the way into a cache pod.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Exec runs a command in a container.
	Exec(ctx context.Context, e pods.Execution) error
	Kube() kubernetes.Interface
}

// Client is `kubectl mfg cache cli`.
type Client struct {
	Namespace string
	Group     string
	// Site is the site of the cache; empty for the master.
	Site string
	Args []string
}

// Validate has nothing to refuse.
func (op *Client) Validate() error { return nil }

// startClient runs the client that the image has. The command line of an exec is in the audit log of the API server and in the list of
// processes of the node, and an environment is readable in /proc: the password is in neither. With --askpass the client itself asks
// for it, and the typist types it.
const startClient = `for c in valkey-cli redis-cli; do command -v "$c" >/dev/null 2>&1 && exec "$c" --askpass "$@"; done; exit 127`

// Run runs the client, on the terminal or with what stdin holds.
func (op *Client) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	pod, err := op.pod(ctx, c, g)
	if err != nil {
		return cli.ExitError, err
	}
	password, err := op.password(ctx, c, g)
	if err != nil {
		return cli.ExitError, err
	}
	e := pods.Execution{Namespace: op.Namespace, Pod: pod.Name, Container: containerOf(pod), Out: escape.Raw(env.Out), ErrOut: escape.Raw(env.ErrOut)}
	e.Command = append([]string{"sh", "-c", startClient, "sh"}, op.arguments(g)...)
	switch {
	case len(op.Args) > 0: // a single command reads nothing else
		e.In = strings.NewReader(password + "\n")
		err = c.Exec(ctx, e)
	case !env.Interactive():
		e.In = io.MultiReader(strings.NewReader(password+"\n"), env.In)
		err = c.Exec(ctx, e)
	default:
		e.TTY = true
		err = interactive(ctx, env, c, e, password)
	}
	return op.outcome(g, err)
}

// arguments returns the client's. The connection stays in the pod, so the name in the certificate and its validity prove nothing; and
// people want to look at a cache whose certificate has run out.
func (op *Client) arguments(g *v1alpha1.MysqlFailoverGroup) []string {
	args := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(v1alpha1.CachePort)}
	if c := report.CacheOf(g, "", nil); c != nil && c.TLS {
		args = append(args, "--tls", "--insecure")
	}
	return append(args, op.Args...)
}

// pod finds the pod of the site, or of the master.
func (op *Client) pod(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) (corev1.Pod, error) {
	if !isOn(g) {
		return corev1.Pod{}, off(op.Group)
	}
	site := op.Site
	if site == "" && g.Status.Cache != nil {
		site = g.Status.Cache.ActiveSite
	}
	if site == "" {
		return corev1.Pod{}, fmt.Errorf("no cache of %s is the master\n  name a site: kubectl mfg cache cli %s -n %s --site SITE", op.Group, op.Group, op.Namespace)
	}
	if _, known := request.RoleOf(g, site); !known {
		return corev1.Pod{}, cli.Usage("%s has no site %q; its sites are %s", op.Group, site, request.SiteNames(g))
	}
	selector := labels.Set{v1alpha1.LabelGroup: op.Group, v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelSite: site}.String()
	all, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return corev1.Pod{}, cli.RightsHint(err, "list", "pods", op.Namespace)
	}
	for _, p := range all.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && len(p.Spec.Containers) > 0 {
			return p, nil
		}
	}
	return corev1.Pod{}, fmt.Errorf("the cache of %s has no pod that runs\n  see why: kubectl describe pods -n %s -l %s", site, op.Namespace, selector)
}

// containerOf returns the engine's container, even if something else put others beside it.
func containerOf(pod corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == v1alpha1.NameCache {
			return c.Name
		}
	}
	return pod.Spec.Containers[0].Name
}

// password reads the operator's Secret with the caller's own rights: it holds what the pods have now, even while a new password in the
// Secret of spec.cache.auth cannot be used.
func (op *Client) password(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) (string, error) {
	name := v1alpha1.CacheAuthSecret(g.Name)
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", cli.RightsHint(err, "get", "secrets/"+name, op.Namespace)
	}
	password, has := secret.Data[v1alpha1.CachePassword]
	if !has || len(password) == 0 || strings.ContainsAny(string(password), "\r\n") {
		return "", fmt.Errorf("secret %s has no usable key %s\n  it is one line of 8 to 128 letters, digits, '-', '_' and '.'", name, v1alpha1.CachePassword)
	}
	return string(password), nil
}

// interactive hands over the terminal.
func interactive(ctx context.Context, env cli.Environment, c Cluster, e pods.Execution, password string) error {
	t := newTypist(env.In, escape.Raw(env.Out), password)
	defer t.giveUp()
	e.In, e.Out = t, t
	if file, is := env.In.(*os.File); is {
		fd := int(file.Fd())
		before, err := term.MakeRaw(fd)
		if err != nil {
			return fmt.Errorf("prepare the terminal: %w", err)
		}
		defer func() { _ = term.Restore(fd, before) }()
		e.Resize = &terminalSize{fd: fd}
	}
	return c.Exec(ctx, e)
}

// terminalSize tells the size once.
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

// outcome says in plain words what went wrong. The client's own exit code is an error; it has said why.
func (op *Client) outcome(g *v1alpha1.MysqlFailoverGroup, err error) (int, error) {
	var exit utilexec.CodeExitError
	switch {
	case err == nil:
		return cli.ExitHealthy, nil
	case errors.As(err, &exit) && (exit.Code == 126 || exit.Code == 127), strings.Contains(err.Error(), "executable file not found"):
		return cli.ExitError, fmt.Errorf("the image of the cache (%s) has neither valkey-cli nor redis-cli, or no sh\n  forward a port and use a client of your own: kubectl port-forward -n %s service/%s %d",
			g.Spec.Cache.Engine, op.Namespace, v1alpha1.CacheService(op.Group), v1alpha1.CachePort)
	case errors.As(err, &exit):
		return cli.ExitError, fmt.Errorf("the client ended with code %d", exit.Code)
	case apierrors.IsForbidden(err):
		return cli.ExitError, cli.RightsHint(err, "create", "pods/exec", op.Namespace)
	}
	return cli.ExitError, fmt.Errorf("exec into the pod: %w", err)
}
