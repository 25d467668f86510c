// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/agent"
)

const (
	// certificateInterval is how often the sidecar looks at the files. The kubelet takes up to a minute or two to renew them.
	certificateInterval = 5 * time.Second
	// certificateTimeout bounds the questions to MySQL in one look.
	certificateTimeout = 3 * time.Second
)

// certificateServer is the MySQL that shows the certificate; *mysql.DB implements it.
type certificateServer interface {
	ReloadTLS(ctx context.Context) error
	ServedCertificate(ctx context.Context) (notBefore, notAfter time.Time, err error)
	PlainClients(ctx context.Context) (int, error)
}

// certificate makes sure that MySQL shows the certificate in the pod: mysqld reads its files when it starts, and again only
// on a statement. Without that, a certificate ends under a running mysqld, and from then on no new connection succeeds.
type certificate struct {
	dir    string
	server certificateServer
	now    func() time.Time
	log    *slog.Logger

	// loaded is the digest of the files that MySQL last took, zero before; found is that of the last look.
	loaded, found [sha256.Size]byte

	// plain remembers what the looks saw of clients without TLS.
	plain plainClients

	mu     sync.Mutex
	report wire.CertificateReport
}

// watchCertificate makes one; nil without TLS. It has connections of its own, as the keyring's agent has.
func watchCertificate(s settings, log *slog.Logger) (*certificate, func(), error) {
	if tlsConfig(filepath.Join(s.tlsDir, caFile)) == nil {
		return nil, func() {}, nil
	}
	db, err := openMySQL(s, "mfg sidecar (certificate)")
	if err != nil {
		return nil, nil, err
	}
	return &certificate{dir: s.tlsDir, server: db, now: time.Now, log: log}, func() { _ = db.Close() }, nil
}

// certificateOf prevents a nil pointer from becoming an interface that is not nil.
func certificateOf(c *certificate) agent.Certificate {
	if c == nil {
		return nil
	}
	return c
}

// runCertificate looks after the certificate, if there is one, until ctx ends.
func runCertificate(ctx context.Context, c *certificate) (wait func()) {
	if c == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(certificateInterval)
		defer ticker.Stop()
		for {
			c.step(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { <-done }
}

// Report is what the last look found.
func (c *certificate) Report() *wire.CertificateReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	report := c.report
	return &report
}

// step looks once: it makes MySQL take new files, and then asks which certificate MySQL shows.
func (c *certificate) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	problem, settled := c.load(ctx)
	begins, ends, err := c.server.ServedCertificate(ctx)
	plain := c.plain.look(ctx, c.server, c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Plain = plain
	if settled && problem != c.report.Problem {
		c.log.Warn("the certificate that MySQL shows", "problem", problem)
		c.report.Problem = problem
	}
	if c.report.NotBefore, c.report.NotAfter = nil, nil; err == nil {
		c.report.NotBefore, c.report.NotAfter = &begins, &ends
	}
}

// load makes MySQL take the files if they differ from those that it last took. It says what is wrong with them; settled is
// false if that is not known yet. It never offers useless files to MySQL, which keeps what it has.
func (c *certificate) load(ctx context.Context) (problem string, settled bool) {
	files, err := c.read()
	if err != nil {
		return err.Error(), true
	}
	sum := sha256.New()
	for _, raw := range files {
		part := sha256.Sum256(raw)
		_, _ = sum.Write(part[:])
	}
	before := c.found
	if c.found = [sha256.Size]byte(sum.Sum(nil)); c.found != before {
		// Some files may be old and some new: wait until two looks show the same.
		return "", false
	}
	if c.found == c.loaded {
		return "", true
	}
	if err := usable(files, c.now()); err != nil {
		return "it keeps the former one, because the new one is of no use: " + err.Error(), true
	}
	switch err := c.server.ReloadTLS(ctx); {
	case errors.Is(err, mysql.ErrCertificate):
		return "it keeps the former one: " + err.Error(), true
	case err != nil:
		return "", false // MySQL does not answer, which others report; the next look tries again
	}
	c.loaded = c.found
	c.took(files)
	c.log.Info("MySQL took the certificate that lies in the pod")
	return "", true
}

// took notes which files MySQL took: the operator waits for that when it replaces an authority.
func (c *certificate) took(files [3][]byte) {
	bundle, current := sha256.Sum256(files[0]), sha256.Sum256(files[1])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Bundle, c.report.Current = hex.EncodeToString(bundle[:]), hex.EncodeToString(current[:])
}

// read returns ca.crt, tls.crt and tls.key.
func (c *certificate) read() ([3][]byte, error) {
	var files [3][]byte
	for i, name := range []string{caFile, certFile, keyFile} {
		raw, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			return files, fmt.Errorf("read certificate: %w", err)
		}
		files[i] = raw
	}
	return files, nil
}

// usable says whether peers could connect to a MySQL with these files.
func usable(files [3][]byte, now time.Time) error {
	pair, err := tls.X509KeyPair(files[1], files[2])
	if err != nil {
		return err
	}
	chain := make([]*x509.Certificate, 0, len(pair.Certificate))
	for _, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, c)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(files[0]) {
		return errors.New(caFile + " holds no certificate")
	}
	err = verifyChain(chain, roots, now)
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired && invalid.Cert != nil {
		// The text leaves out the present time, which would make it another problem with every look.
		return fmt.Errorf("%s is valid from %s to %s", invalid.Cert.Subject, invalid.Cert.NotBefore.UTC().Format(time.RFC3339),
			invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}
