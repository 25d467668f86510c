// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Where every pod of a group with TLS has the authorities that it trusts, and the certificate that it shows (operator/render/pod.go).
const (
	authoritiesFile = "/etc/mfg-tls/ca.crt"
	certificateFile = "/etc/mfg-tls/tls.crt"
)

// escrow looks at the escrow endpoint as a sidecar of the group would; nil for a group without encryption.
func (op *Op) escrow(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) *Endpoint {
	if at := g.Spec.EncryptionAtRest; at == nil || !at.Enabled {
		return nil
	}
	e := &Endpoint{}
	if e.Chain, e.Err = c.EscrowChain(ctx, op.OperatorNamespace); e.Err != nil {
		return e
	}
	if e.Own, e.Err = ownCertificate(ctx, c.Kube(), op.OperatorNamespace); e.Err == nil && !e.Own {
		e.Authorities, e.AuthoritiesErr = publicFile(ctx, c, g, authoritiesFile)
	}
	return e
}

// ownCertificateFlag has the operator make the certificate of the escrow endpoint itself (operator/main.go).
const ownCertificateFlag = "--escrow-own-certificate"

// ownCertificate is true if the operator makes the certificate of its endpoint. Its pod tells, because a sealed site has nothing of the
// endpoint in its pod. It is the pod that is asked first for the certificate.
func ownCertificate(ctx context.Context, kube kubernetes.Interface, operatorNamespace string) (bool, error) {
	all, err := kube.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: live.Selector})
	if err != nil {
		return false, fmt.Errorf("find the operator's pod: %w", err)
	}
	operators, err := live.Operators(all.Items)
	if err != nil {
		return false, err
	}
	for _, c := range operators[0].Spec.Containers {
		for _, arg := range c.Args {
			if name, value, given := strings.Cut(arg, "="); name == ownCertificateFlag {
				own, _ := strconv.ParseBool(value)
				return own || !given, nil
			}
		}
	}
	return false, nil
}

// cacheCertificateOf returns the certificate that the cache shows; MySQL shows the same one, and its pods exist anyway.
func cacheCertificateOf(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) *Certificate {
	if at := report.CacheOf(g, "", nil); at == nil || !at.TLS || g.Spec.TLS == nil {
		return nil
	}
	raw, err := publicFile(ctx, c, g, certificateFile)
	return &Certificate{PEM: raw, Err: err}
}

// fileTimeout bounds the look into one pod: one on a node that is lost does not answer.
const fileTimeout = 5 * time.Second

// publicFile reads a file of the group's TLS Secret from a running pod of the group, a ready one first: it is public, and reading the
// Secret would show the key too.
func publicFile(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup, file string) ([]byte, error) {
	all, err := c.Kube().CoreV1().Pods(g.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(g.Name, "")})
	if err != nil {
		return nil, err
	}
	running := slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool { return !pods.Runs(pod) })
	if len(running) == 0 {
		return nil, errors.New("no pod of the group runs")
	}
	slices.SortStableFunc(running, func(a, b corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	var first error
	for _, pod := range running {
		pem, err := catFile(ctx, c, pod, file)
		if err == nil {
			return pem, nil
		}
		first = cmp.Or(first, fmt.Errorf("pod %s: %w", pod.Name, err))
		if apierrors.IsForbidden(err) || ctx.Err() != nil { // the others would say the same
			break
		}
	}
	return nil, first
}

func rank(pod corev1.Pod) int {
	if pods.Ready(pod) {
		return 0
	}
	return 1
}

func catFile(ctx context.Context, c Cluster, pod corev1.Pod, file string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	var pem bytes.Buffer
	err := c.Exec(ctx, pods.Execution{Namespace: pod.Namespace, Pod: pod.Name, Container: pods.ContainerMySQL, Command: []string{"cat", file}, Out: &pem})
	return pem.Bytes(), err
}
