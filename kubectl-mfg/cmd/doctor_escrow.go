// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
)

// authoritiesFile is where every pod of a group with TLS has the authorities that it believes (operator/render/pod.go).
const authoritiesFile = "/etc/mfg-tls/ca.crt"

// handshakeTimeout bounds the look at the escrow endpoint's certificate.
const handshakeTimeout = 5 * time.Second

// escrow looks at the escrow endpoint as a sidecar of the group would; nil for a group without encryption.
func (op *doctorOp) escrow(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) *doctor.Endpoint {
	if at := g.Spec.EncryptionAtRest; at == nil || !at.Enabled {
		return nil
	}
	e := &doctor.Endpoint{}
	if e.Chain, e.Err = c.EscrowChain(ctx, op.OperatorNamespace); e.Err == nil {
		e.Authorities, e.AuthoritiesErr = authorities(ctx, c, g)
	}
	return e
}

// authorities reads ca.crt out of a running pod of the group: it is public, and reading the Secret would show the key too.
func authorities(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) ([]byte, error) {
	selector := v1alpha1.LabelGroup + "=" + g.Name + "," + v1alpha1.LabelName + "=" + v1alpha1.NameMySQL
	pods, err := c.Kube().CoreV1().Pods(g.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		var pem bytes.Buffer
		err := c.Exec(ctx, execution{Namespace: pod.Namespace, Pod: pod.Name, Container: containerMySQL, Command: []string{"cat", authoritiesFile}, Out: &pem})
		return pem.Bytes(), err
	}
	return nil, errors.New("no pod of the group runs")
}

// EscrowChain shakes hands with the escrow endpoint through a forwarded port. Nothing is sent, and nobody is believed: the
// caller judges what was shown.
func (a *api) EscrowChain(ctx context.Context, operatorNamespace string) ([]*x509.Certificate, error) {
	port, end, err := a.forward(ctx, operatorNamespace, wire.PortOperatorEscrow)
	if err != nil {
		return nil, err
	}
	defer end()
	return peerChain(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func peerChain(ctx context.Context, address string) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // only looked at; the doctor verifies it
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	defer func() { _ = conn.Close() }()
	secured, is := conn.(*tls.Conn)
	if !is {
		return nil, fmt.Errorf("impossible connection %T", conn)
	}
	return secured.ConnectionState().PeerCertificates, nil
}
