// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// errNoCertificate ends a handshake while the certificate cannot be read.
var errNoCertificate = errors.New("the certificate of the escrow listener cannot be read yet")

// EscrowRunnable serves Escrow on an address with the certificate of a directory, in the shape that controller-runtime's
// manager takes.
type EscrowRunnable struct {
	Escrow *Escrow
	Addr   string
	// Dir holds tls.crt and tls.key. They are read again when they change, and may come later than the listener:
	// a certificate that is missing must not keep the operator from failing over.
	Dir string
}

// Start serves until the context ends.
func (r EscrowRunnable) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", r.Addr)
	if err != nil {
		return fmt.Errorf("listen for keyrings: %w", err)
	}
	return r.Escrow.Serve(ctx, l, r.Dir)
}

// NeedLeaderElection is false: who does not lead says so with 503 instead of refusing connections.
func (r EscrowRunnable) NeedLeaderElection() bool { return false }

// Serve answers on a listener until the context ends, over TLS only, then closes every connection.
func (e *Escrow) Serve(ctx context.Context, l net.Listener, dir string) error {
	certificate := &keyPair{dir: dir, log: e.log, recheck: e.limits.recheck, retry: e.limits.retry}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); certificate.watch(watching) }()
	defer func() { stop(); <-watched }()

	srv := e.server(certificate)
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeTLS(newBounded(l, e.limits.connections), "", "") }()
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

func (e *Escrow) server(certificate *keyPair) *http.Server {
	var only http.Protocols
	only.SetHTTP1(true)
	srv := &http.Server{
		Handler:           e,
		ReadHeaderTimeout: e.limits.readHeader, ReadTimeout: e.limits.read, WriteTimeout: e.limits.write, IdleTimeout: e.limits.read,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(e.log.Handler(), slog.LevelWarn),
		TLSConfig:      &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get},
		Protocols:      &only,
	}
	// A site pushes a few times in its life: nobody needs to hold a connection.
	srv.SetKeepAlivesEnabled(false)
	return srv
}

// keyPair is the certificate of a directory, as it is now.
type keyPair struct {
	dir            string
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

// watch follows the files until the context ends. A watcher that gives up is replaced; what it knew last stays in use.
func (k *keyPair) watch(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		watcher, err := certwatcher.New(filepath.Join(k.dir, corev1.TLSCertKey), filepath.Join(k.dir, corev1.TLSPrivateKeyKey))
		if err == nil {
			said = ""
			k.now.Store(watcher)
			err = watcher.WithWatchInterval(k.recheck).Start(ctx)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			k.log.Error("read certificate of the escrow listener; no keyring can be taken into escrow without", "dir", k.dir, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(k.retry):
		}
	}
}

// bounded lets so many connections in at a time. The next one waits in the queue of the kernel; none holds its place for
// longer than the timeouts of the server.
type bounded struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, places int) *bounded {
	return &bounded{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-b.places })}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
