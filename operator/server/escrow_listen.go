// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// errNoCertificate ends a handshake while the certificate cannot be read.
var errNoCertificate = errors.New("the certificate of the escrow listener cannot be read yet")

// EscrowRunnable serves Escrow on an address with the certificate of a directory, as a Runnable of controller-runtime's
// manager.
type EscrowRunnable struct {
	Escrow *Escrow
	Addr   string
	// Dir holds tls.crt and tls.key. The listener reads them again when they change, and they may come later than it: a
	// missing certificate must not keep the operator from failing over.
	Dir string
	// Own gives the certificate instead of Dir, if it is not nil; if it fails, the handshake ends.
	Own func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Taken gets the certificate of Dir each time that it was read.
	Taken func(*x509.Certificate)
}

// Start serves until the context ends.
func (r EscrowRunnable) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", r.Addr)
	if err != nil {
		return fmt.Errorf("listen for keyrings: %w", err)
	}
	if r.Own != nil {
		return r.Escrow.serve(ctx, l, r.Own)
	}
	return r.Escrow.Serve(ctx, l, r.Dir, r.Taken)
}

// NeedLeaderElection is false: a process that does not lead answers 503 instead of refusing connections.
func (r EscrowRunnable) NeedLeaderElection() bool { return false }

// Serve answers on a listener until the context ends, over TLS only, then closes every connection. It passes the certificate of the
// directory to taken each time that it was read.
func (e *Escrow) Serve(ctx context.Context, l net.Listener, dir string, taken func(*x509.Certificate)) error {
	certificate := &keyPair{dir: dir, taken: taken, log: e.log, recheck: e.limits.recheck, retry: e.limits.retry}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); certificate.watch(watching) }()
	defer func() { stop(); <-watched }()
	return e.serve(ctx, l, certificate.get)
}

func (e *Escrow) serve(ctx context.Context, l net.Listener, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	srv := e.server(certificate)
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeTLS(e.door.Listen(l), "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.limits.shutdown)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = srv.Close()
	}
	if serveErr := <-ended; !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	return err
}

func (e *Escrow) server(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *http.Server {
	var only http.Protocols
	only.SetHTTP1(true)
	srv := &http.Server{
		Handler:           e,
		ReadHeaderTimeout: e.limits.readHeader, ReadTimeout: e.limits.read, WriteTimeout: e.limits.write, IdleTimeout: e.limits.read,
		MaxHeaderBytes: maxHeaderBytes,
		// A failed handshake costs a stranger nothing: it must not fill the log.
		ErrorLog:  slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		Protocols: &only,
	}
	// A site pushes a few times in its life: it need not hold a connection.
	srv.SetKeepAlivesEnabled(false)
	return srv
}

// keyPair is the present certificate of a directory.
type keyPair struct {
	dir            string
	taken          func(*x509.Certificate)
	log            *slog.Logger
	recheck, retry time.Duration
	now            atomic.Pointer[certwatcher.CertWatcher]
}

func (k *keyPair) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	watcher := k.now.Load()
	if watcher == nil {
		return nil, errNoCertificate
	}
	return watcher.GetCertificate(hello)
}

// watch follows the files until the context ends. A watcher that gives up is replaced; its last certificate stays in use.
func (k *keyPair) watch(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		watcher, err := certwatcher.New(filepath.Join(k.dir, corev1.TLSCertKey), filepath.Join(k.dir, corev1.TLSPrivateKeyKey))
		if err == nil {
			said = ""
			watcher.RegisterCallback(func(c tls.Certificate) { k.taken(c.Leaf) })
			k.now.Store(watcher)
			err = watcher.WithWatchInterval(k.recheck).Start(ctx)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			k.log.Error("read certificate of the escrow listener; no keyring can be taken into escrow without", "dir", k.dir, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(k.retry):
		}
	}
}
