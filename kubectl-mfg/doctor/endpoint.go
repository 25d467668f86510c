// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
// endpoint in its pod. It is the same pod that showed the certificate: the first that runs.
func ownCertificate(ctx context.Context, kube kubernetes.Interface, operatorNamespace string) (bool, error) {
	all, err := kube.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: live.Selector})
	if err != nil {
		return false, fmt.Errorf("find the operator's pod: %w", err)
	}
	first := slices.IndexFunc(all.Items, runs)
	if first < 0 {
		return false, errors.New("no pod of the operator runs")
	}
	for _, c := range all.Items[first].Spec.Containers {
		for _, arg := range c.Args {
			if name, value, given := strings.Cut(arg, "="); name == ownCertificateFlag {
				own, _ := strconv.ParseBool(value)
				return own || !given, nil
			}
		}
	}
	return false, nil
}

func runs(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// cacheCertificateOf returns the certificate that the cache shows; MySQL shows the same one, and its pods exist anyway.
func cacheCertificateOf(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) *Certificate {
	if at := report.CacheOf(g, "", nil); at == nil || !at.TLS || g.Spec.TLS == nil {
		return nil
	}
	raw, err := publicFile(ctx, c, g, certificateFile)
	return &Certificate{PEM: raw, Err: err}
}

// publicFile reads a file of the group's TLS Secret from a running pod of the group: it is public, and reading the Secret would show the
// key too.
func publicFile(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup, file string) ([]byte, error) {
	all, err := c.Kube().CoreV1().Pods(g.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(g.Name, "")})
	if err != nil {
		return nil, err
	}
	for _, pod := range all.Items {
		if !runs(pod) {
			continue
		}
		var pem bytes.Buffer
		err := c.Exec(ctx, pods.Execution{Namespace: pod.Namespace, Pod: pod.Name, Container: pods.ContainerMySQL, Command: []string{"cat", file}, Out: &pem})
		return pem.Bytes(), err
	}
	return nil, errors.New("no pod of the group runs")
}
