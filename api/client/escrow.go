// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// escrowTimeout bounds one push when the caller's context does not.
const escrowTimeout = 15 * time.Second

// Errors of a push that never left this program.
var (
	// ErrPlaintext refuses an address without TLS: a keyring is never sent in the clear.
	ErrPlaintext = errors.New("the address of the escrow endpoint does not begin with https://")
	// ErrNoToken says that the file of the token is empty.
	ErrNoToken = errors.New("the file of the escrow token is empty")
	// ErrNoCA says that the CA file holds no certificate.
	ErrNoCA = errors.New("the CA file holds no certificate")
	// ErrOtherKeyring says that the operator's answer is about another content than the one that was sent.
	ErrOtherKeyring = errors.New("the answer is about another keyring")
)

// Escrow hands keyrings to an operator. Everything is read again for each push, so that a certificate, a CA or a token
// that was replaced counts at once. No error of it holds anything of the keyring or of the token.
type Escrow struct {
	// URL is the base URL of the escrow listener, such as https://mfg-auxiliary.mfg-system.svc:8443.
	URL string
	// CAFile holds the only authorities that are believed, TokenFile the site's bearer token.
	CAFile, TokenFile string
	// Dial opens a connection; nil stands for a plain dialer.
	Dial DialFunc
}

// Push sends a keyring and returns where the operator keeps it. The same content may be pushed again and again.
func (e Escrow) Push(ctx context.Context, body wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
	answer, err := e.push(ctx, body)
	if err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("escrow keyring: %w", err)
	}
	return answer, nil
}

func (e Escrow) push(ctx context.Context, body wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
	if !strings.HasPrefix(e.URL, "https://") {
		return wire.KeyringEscrowed{}, ErrPlaintext
	}
	ctx, cancel := context.WithTimeout(ctx, escrowTimeout)
	defer cancel()
	token, err := readToken(e.TokenFile)
	if err != nil {
		return wire.KeyringEscrowed{}, err
	}
	transport, err := e.transport()
	if err != nil {
		return wire.KeyringEscrowed{}, err
	}
	defer transport.CloseIdleConnections()
	raw, err := json.Marshal(body)
	if err != nil {
		return wire.KeyringEscrowed{}, errors.New("encode keyring")
	}
	answer, err := sendKeyring(ctx, transport, e.URL, token, raw)
	if err != nil {
		return wire.KeyringEscrowed{}, withoutToken(err, token)
	}
	if answer.Digest != body.Digest || answer.Version < 1 {
		return wire.KeyringEscrowed{}, ErrOtherKeyring
	}
	return answer, nil
}

func sendKeyring(ctx context.Context, transport http.RoundTripper, base, token string, raw []byte) (wire.KeyringEscrowed, error) {
	target := join(base, wire.PathKeyringEscrow)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(raw))
	if err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	// Not http.Client: a redirect would carry the keyring somewhere else.
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("POST %s: %w", target, stable(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := readLimited(resp.Body, resp.ContentLength, wire.MaxBodyBytes)
	if resp.StatusCode != http.StatusOK {
		return wire.KeyringEscrowed{}, fmt.Errorf("POST %s: %w", target, statusError(resp.StatusCode, body))
	}
	if err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("read answer of %s: %w", target, err)
	}
	var answer wire.KeyringEscrowed
	if err := json.Unmarshal(body, &answer); err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("decode answer of %s: %w", target, err)
	}
	return answer, nil
}

// reachTimeout bounds a look whether the endpoint is there.
const reachTimeout = 5 * time.Second

// Reach shakes hands with the operator's listener and sends nothing. It fails where a push would, before any keyring is at stake: no
// route, no listener, a certificate that these authorities did not make, or one with other names.
func (e Escrow) Reach(ctx context.Context, authorities []byte) error {
	if !strings.HasPrefix(e.URL, "https://") {
		return ErrPlaintext
	}
	target, err := url.Parse(e.URL)
	if err != nil {
		return fmt.Errorf("reach the escrow endpoint: %w", err)
	}
	transport, err := e.believing(authorities)
	if err != nil {
		return fmt.Errorf("reach the escrow endpoint: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	address := target.Host
	if target.Port() == "" {
		address = net.JoinHostPort(target.Hostname(), "443")
	}
	plain, err := transport.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("reach %s: %w", address, stable(err))
	}
	config := transport.TLSClientConfig.Clone()
	config.ServerName = target.Hostname()
	secured := tls.Client(plain, config)
	defer func() { _ = secured.Close() }()
	if err := secured.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("shake hands with %s: %w", address, stable(err))
	}
	return nil
}

func (e Escrow) transport() (*http.Transport, error) {
	raw, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	return e.believing(raw)
}

func (e Escrow) believing(raw []byte) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(raw) {
		return nil, ErrNoCA
	}
	dial := e.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	return &http.Transport{
		Proxy:                  nil, // a proxy could read along
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots},
		TLSHandshakeTimeout:    5 * time.Second,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 16 << 10,
	}, nil
}

func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read escrow token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", ErrNoToken
	}
	return token, nil
}

// withoutToken keeps an error only if it does not repeat the token: what the other side says goes into logs and reports.
func withoutToken(err error, token string) error {
	if strings.Contains(err.Error(), token) {
		return errors.New("the push failed (text withheld: it holds the token)")
	}
	return err
}

// stable is an error of the network without what is another with every try: it becomes a condition, which must not change while nothing does.
func stable(err error) error {
	if dns, is := errors.AsType[*net.DNSError](err); is {
		if dns.IsNotFound {
			return fmt.Errorf("look up %s: no such host", dns.Name)
		}
		return fmt.Errorf("look up %s: the name server does not answer", dns.Name) // its own words name a port of ours
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is && invalid.Reason == x509.Expired && invalid.Cert != nil {
		return fmt.Errorf("the certificate of the endpoint is valid from %s to %s, and not now by this clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if op, is := errors.AsType[*net.OpError](err); is {
		return fmt.Errorf("%s: %w", op.Op, op.Err) // without our address: its port is another one each time
	}
	return err
}
