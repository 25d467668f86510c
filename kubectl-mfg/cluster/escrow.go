// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/wire"
)

// handshakeTimeout bounds the look at the certificate of an endpoint.
const handshakeTimeout = 5 * time.Second

// EscrowChain shakes hands with the escrow endpoint through a forwarded port, of the next pod if one does not answer. It sends
// nothing and verifies nothing: the caller judges what was shown.
func (a *API) EscrowChain(ctx context.Context, operatorNamespace string) (chain []*x509.Certificate, err error) {
	err = a.eachOperator(ctx, operatorNamespace, func(ctx context.Context, pod corev1.Pod) error {
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		port, end, err := a.forwardTo(ctx, pod, wire.PortOperatorEscrow)
		if err != nil {
			return err
		}
		defer end()
		chain, err = PeerChain(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err
	})
	return chain, err
}

// PeerChain returns the certificates that a server shows in a TLS handshake.
func PeerChain(ctx context.Context, address string) ([]*x509.Certificate, error) {
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
