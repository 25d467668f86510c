// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/chain"
	"github.com/mysql-mfg/mfg/operator/certs"
)

// The Secrets of the escrow listener, in the operator's namespace.
const (
	EscrowAuthority   = "mfg-escrow-ca"
	EscrowCertificate = "mfg-escrow-certificate"
)

const (
	// escrowEvery is how often look reads them, escrowRetry how soon after an error.
	escrowEvery = time.Minute
	escrowRetry = 5 * time.Second
	// escrowTimeout bounds one look.
	escrowTimeout = 20 * time.Second
)

// errNotYet ends a handshake while there is no certificate.
var errNotYet = errors.New("the certificate of the escrow listener is not made yet")

// EscrowOptions is what NewEscrow makes an Escrow from.
type EscrowOptions struct {
	Client client.Client
	Live   client.Reader
	Log    *slog.Logger
	// Namespace is the operator's. Service is the one in it by which sidecars reach the listener.
	Namespace, Service string
	// Leading is closed once this process leads: only the leader writes.
	Leading <-chan struct{}
}

// Escrow keeps the certificate of the escrow listener, in Secrets and in memory.
type Escrow struct {
	EscrowOptions
	now atomic.Pointer[served]
}

// served is what the listener shows, and the authorities that make it trusted.
type served struct {
	certificate *tls.Certificate
	bundle      []byte
}

// NewEscrow makes one that has nothing yet.
func NewEscrow(o EscrowOptions) *Escrow { return &Escrow{EscrowOptions: o} }

// GetCertificate is for a tls.Config.
func (e *Escrow) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := e.now.Load(); now != nil {
		return now.certificate, nil
	}
	return nil, errNotYet
}

// Bundle returns the authorities by which a sidecar trusts the listener, PEM; nil while there are none.
func (e *Escrow) Bundle() []byte {
	if now := e.now.Load(); now != nil {
		return slices.Clone(now.bundle)
	}
	return nil
}

// NeedLeaderElection is false: a process that does not lead shows the certificate too.
func (e *Escrow) NeedLeaderElection() bool { return false }

// Start keeps it until the context ends.
func (e *Escrow) Start(ctx context.Context) error {
	said := ""
	for {
		again := escrowEvery
		err := e.look(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() != nil:
		default:
			again = escrowRetry
			if text := err.Error(); text != said {
				said = text
				e.Log.Error("keep the certificate of the escrow listener; no keyring can be taken into escrow without", "error", err)
			}
		}
		leading := e.Leading
		if e.leads() {
			leading = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-leading:
		case <-time.After(again):
		}
	}
}

func (e *Escrow) leads() bool {
	select {
	case <-e.Leading:
		return true
	default:
		return false
	}
}

// look takes the steps that are due, if this process leads, and then loads the result into memory.
func (e *Escrow) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, escrowTimeout)
	defer cancel()
	p := &pair{
		client: e.Client, live: e.Live, namespace: e.Namespace, authority: EscrowAuthority, server: EscrowCertificate,
		labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelName: nameEscrow},
	}
	if err := e.keep(ctx, p); err != nil {
		return err
	}
	if p.serverHeld == nil {
		return errNotYet
	}
	certificate, err := chain.Pair(p.serverHeld.Data[certs.KeyServer], p.serverHeld.Data[certs.KeyServerKey])
	if err != nil {
		return errors.New("secret " + EscrowCertificate + " holds no certificate with its key; delete it, and another is made")
	}
	if before := e.now.Load(); before == nil || !bytes.Equal(before.certificate.Certificate[0], certificate.Certificate[0]) {
		e.Log.Info("the escrow listener shows a certificate", "ends", certificate.Leaf.NotAfter)
	}
	metricEscrowExpiry.WithLabelValues().Set(float64(certificate.Leaf.NotAfter.Unix()))
	metricEscrowRenewal.WithLabelValues().Set(float64(certs.Renews(certificate.Leaf).Unix()))
	e.now.Store(&served{&certificate, p.serverHeld.Data[certs.KeyBundle]})
	return nil
}

// nameEscrow is the label that tells the Secrets from those of others.
const nameEscrow = "mfg-escrow"

func (e *Escrow) keep(ctx context.Context, p *pair) error {
	if !e.leads() {
		if err := p.read(ctx); err != nil || p.foreign() == "" {
			return err
		}
		return errors.New("secret " + p.foreign() + " " + errForeign.Error())
	}
	host := e.Service + "." + e.Namespace
	state := certs.State{Now: time.Now(), Title: nameEscrow, Names: []string{host + ".svc", host + ".svc.cluster.local", host, e.Service}}
	d, err := p.keep(ctx, state, func(d certs.Decision) {
		e.Log.Info("kept the certificate of the escrow listener", "step", d.Step, "why", d.Why)
	})
	switch {
	case err != nil:
		return err
	case d.Broken != "":
		// The listener continues to show the existing certificate.
		e.Log.Error("the authority of the escrow listener is damaged; delete its Secret, and another is made", "secret", EscrowAuthority, "problem", d.Broken)
	}
	return nil
}
