// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/wire"
)

// The parts of the MySQL protocol that TLS needs.
const (
	protocolOf41 = 10
	errorPacket  = 0xff
	// Capabilities: what a client must ask for to begin with TLS.
	clientProtocol41 = 1 << 9
	clientSSL        = 1 << 11
	clientSecure     = 1 << 15
	clientPluginAuth = 1 << 19
	// mostGreeting bounds what a server may say first; it takes some 80 bytes.
	mostGreeting = 4096
)

var errNoServerTLS = errors.New("MySQL does not speak TLS")

// SiteChain shakes hands with the MySQL of a pod through a forwarded port. It neither logs in nor verifies: the caller judges what was shown.
func (a *API) SiteChain(ctx context.Context, pod corev1.Pod) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	port, end, err := a.forwardTo(ctx, pod, wire.PortMySQL)
	if err != nil {
		return nil, err
	}
	defer end()
	return MySQLChain(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// MySQLChain returns the certificates that a MySQL server shows in a TLS handshake.
func MySQLChain(ctx context.Context, address string) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("reach MySQL: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, fmt.Errorf("reach MySQL: %w", err)
	}
	greeting, err := readPacket(conn)
	if err != nil {
		return nil, fmt.Errorf("read MySQL's greeting: %w", err)
	}
	if err := offersTLS(greeting); err != nil {
		return nil, err
	}
	if _, err := conn.Write(requestTLS()); err != nil {
		return nil, fmt.Errorf("ask MySQL for TLS: %w", err)
	}
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only looked at; the caller judges it
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	return secured.ConnectionState().PeerCertificates, nil
}

// readPacket reads one packet: three bytes of length, one of sequence number, and the contents.
func readPacket(from io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if length == 0 || length > mostGreeting {
		return nil, fmt.Errorf("%d bytes are no greeting of MySQL", length)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(from, body)
	return body, err
}

// offersTLS looks whether the server's first packet, of protocol 10, has the capability: version, NUL, thread (4), salt (8), a zero, capabilities.
func offersTLS(greeting []byte) error {
	switch {
	case greeting[0] == errorPacket:
		return errors.New("MySQL takes no connection now")
	case greeting[0] != protocolOf41:
		return fmt.Errorf("protocol %d is not MySQL's", greeting[0])
	}
	for i := 1; i < len(greeting); i++ {
		if greeting[i] != 0 {
			continue
		}
		if at := i + 1 + 4 + 8 + 1; at+2 <= len(greeting) && binary.LittleEndian.Uint16(greeting[at:])&clientSSL != 0 {
			return nil
		}
		break
	}
	return errNoServerTLS
}

// requestTLS returns the packet with which a client begins TLS, before it names its user.
func requestTLS() []byte {
	packet := make([]byte, 4+32)
	packet[0], packet[3] = 32, 1
	binary.LittleEndian.PutUint32(packet[4:], clientProtocol41|clientSSL|clientSecure|clientPluginAuth)
	binary.LittleEndian.PutUint32(packet[8:], 1<<24)
	packet[12] = 255 // utf8mb4
	return packet
}
