// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/certificates"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Chains reads the certificates that servers show in a handshake.
type Chains interface {
	// SiteChain returns what MySQL in a pod shows.
	SiteChain(ctx context.Context, pod corev1.Pod) ([]*x509.Certificate, error)
	// EscrowChain returns what the operator's escrow endpoint shows.
	EscrowChain(ctx context.Context, operatorNamespace string) ([]*x509.Certificate, error)
}

// Certificates is `kubectl mfg certificates`.
type Certificates struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate checks only the command line.
func (op *Certificates) Validate() error {
	if !slices.Contains(cli.Colors, op.Color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	return nil
}

// Run looks, judges and shows it.
func (op *Certificates) Run(ctx context.Context, env cli.Environment, c interface {
	Cluster
	Chains
}) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	if g.Spec.TLS == nil {
		return cli.ExitError, fmt.Errorf("%s has no TLS (spec.tls), so it has no certificates\n  how to give it some while it serves: docs/tls.md", op.Group)
	}
	f := certificates.Facts{Group: g, Now: env.Now()}
	f.Secret, f.SecretErr = secretOf(ctx, c, g)
	f.Sites = shownBySites(ctx, c, g)
	if e := g.Spec.EncryptionAtRest; e != nil && e.Enabled {
		f.Escrow = &certificates.Shown{}
		f.Escrow.Chain, f.Escrow.Err = c.EscrowChain(ctx, op.OperatorNamespace)
	}
	if ctx.Err() != nil {
		return cli.ExitError, ctx.Err()
	}
	rep := certificates.Build(f)
	if f.Secret != nil {
		clear(f.Secret.Data[corev1.TLSPrivateKeyKey])
	}
	code := cli.ExitHealthy
	if rep.Worst() == certificates.Fail {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Certificates(rep, screen.Options{
		Width: width, Color: cli.Colored(op.Color, env), Now: env.Now(), Wide: op.Output.Format == cli.OutputWide,
	}))
	return code, nil
}

// secretOf returns nil for one that does not exist.
func secretOf(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) (*corev1.Secret, error) {
	secret, err := c.Kube().CoreV1().Secrets(g.Namespace).Get(ctx, g.Spec.TLS.Secret(g.Name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return secret, nil
}

// errNoPod and errNoTLS say why a site shows nothing.
var (
	errNoPod = errors.New("the site has no pod that runs")
	errNoTLS = errors.New("the site's pods get a certificate with a later step; see docs/tls.md")
)

// shownBySites asks one site after the other.
func shownBySites(ctx context.Context, c interface {
	Cluster
	Chains
}, g *v1alpha1.MysqlFailoverGroup) (all []certificates.Shown) {
	list, err := c.Kube().CoreV1().Pods(g.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(g.Name, "")})
	for _, site := range g.Spec.Sites {
		shown := certificates.Shown{Name: site.Name, Err: err}
		switch {
		case err != nil:
		case !g.TLSMounted():
			shown.Err = errNoTLS
		default:
			shown.Err = errNoPod
			for _, pod := range list.Items {
				if pod.Labels[v1alpha1.LabelSite] == site.Name && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					shown.Chain, shown.Err = c.SiteChain(ctx, pod)
				}
			}
		}
		all = append(all, shown)
	}
	return all
}
