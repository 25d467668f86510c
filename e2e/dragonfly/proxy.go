// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
)

// maxClients bounds connections; the rest waits in the kernel's queue.
const maxClients = 1024

// lastWords is how long the answer to a take-over may take on its way before the process ends.
const lastWords = 50 * time.Millisecond

// proxy is one server.
type proxy struct {
	settings settings
	child    *child
	seats    chan struct{}
	replicas atomic.Int64

	// secure is the TLS configuration, as of the start or of the last CONFIG SET tls.
	secure atomic.Pointer[tls.Config]

	// taken is closed once a replica has taken over: from then on nobody is answered, and the process ends.
	taken     chan struct{}
	handover  sync.Mutex
	deadline  time.Time // until when a take-over that has begun may be finished
	takenOver bool
}

func (p *proxy) run(ctx context.Context) error {
	listener, err := p.listen(ctx)
	if err != nil {
		p.child.end(false)
		return err
	}
	go p.accept(listener)
	select {
	case <-ctx.Done():
		_ = listener.Close()
		// As Dragonfly does: with a file name it saves at its end.
		p.child.end(p.settings["dbfilename"] != "")
		return nil
	case <-p.taken:
		_ = listener.Close()
		time.Sleep(lastWords)
		p.child.end(false)
		fmt.Fprintln(os.Stderr, "Replica takeover successful, shutting down now.")
		return nil
	case <-p.child.ended:
		_ = listener.Close()
		return errors.Join(p.child.err, errors.New("the server ended"))
	}
}

func (p *proxy) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(p.settings["bind"], p.settings["port"]))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if !p.settings.on("tls") {
		return listener, nil
	}
	if err := p.readCertificates(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	current := func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.secure.Load(), nil }
	return tls.NewListener(listener, &tls.Config{GetConfigForClient: current, MinVersion: tls.VersionTLS12}), nil
}

// readCertificates reads them as Dragonfly does: at the start, and when tls is set, also to what it is. What cannot be used changes nothing.
func (p *proxy) readCertificates() error {
	config, pool, err := p.certificates()
	if err != nil {
		return err
	}
	if pool != nil {
		// tls_ca_cert_file is for the certificates of clients, and then they need one.
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	p.secure.Store(config)
	return nil
}

func (p *proxy) certificates() (*tls.Config, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(p.settings["tls_cert_file"], p.settings["tls_key_file"])
	if err != nil {
		return nil, nil, fmt.Errorf("load certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if p.settings["tls_ca_cert_file"] == "" {
		return config, nil, nil
	}
	raw, err := os.ReadFile(p.settings["tls_ca_cert_file"])
	if err != nil {
		return nil, nil, fmt.Errorf("load CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, nil, errors.New("load CA certificates: there are none in the file")
	}
	return config, pool, nil
}

func (p *proxy) accept(listener net.Listener) {
	for {
		p.seats <- struct{}{}
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-p.seats }()
			p.serve(conn)
		}()
	}
}

// session is one client with its own connection to the child. Commands go on at once; what comes back is matched with what was asked,
// in order.
type session struct {
	proxy  *proxy
	client net.Conn
	child  net.Conn
	reader *bufio.Reader // of the client
	// asked holds one entry for every command on its way.
	asked chan question
}

// question is what happens to a reply.
type question struct {
	// change makes the client's reply of the child's; nil: as it is.
	change func(raw []byte) []byte
	// swallow, if set, is closed: the client did not ask this.
	swallow chan struct{}
	// stream: from here on both sides are copied as they are; replica: for one that replicates.
	stream, replica bool
}

// maxPipeline bounds commands that wait for their replies.
const maxPipeline = 4096

func (p *proxy) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var d net.Dialer
	backend, err := d.DialContext(context.Background(), "unix", p.child.socket)
	if err != nil {
		return
	}
	s := &session{proxy: p, client: conn, child: backend, reader: bufio.NewReader(conn), asked: make(chan question, maxPipeline)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.answers()
		// The client hears at once when the child hung up on it.
		_ = conn.Close()
	}()
	_ = s.commands()
	_ = backend.Close()
	<-done
}

// commands takes what the client sends.
func (s *session) commands() error {
	for {
		args, err := resp.ReadCommand(s.reader)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			continue
		}
		select {
		case <-s.proxy.taken:
			return nil
		default:
		}
		send, q := s.plan(args)
		if q.replica {
			name := fmt.Sprintf("repl_ctrl_%d", s.proxy.replicas.Add(1))
			named := make(chan struct{})
			if err := s.ask([]string{"CLIENT", "SETNAME", name}, question{swallow: named}); err != nil {
				return err
			}
			// A replica is refused while replies to it are on their way.
			select {
			case <-named:
			case <-time.After(adminLimit):
				return errors.New("the server does not answer")
			}
		}
		if err := s.ask(send, q); err != nil {
			return err
		}
		if q.stream {
			_, err := io.Copy(s.child, s.reader)
			return err
		}
	}
}

func (s *session) ask(args []string, q question) error {
	s.asked <- q
	_, err := s.child.Write(resp.AppendCommand(nil, args...))
	return err
}

// answers passes on what the child sends.
func (s *session) answers() error {
	reader := bufio.NewReader(s.child)
	for {
		if _, err := reader.Peek(1); err != nil {
			return err
		}
		var q question
		select {
		case q = <-s.asked:
		default: // nobody asked: a push
		}
		if q.stream {
			_, err := io.Copy(s.client, reader)
			return err
		}
		var raw buffer
		if err := resp.CopyReply(&raw, reader); err != nil {
			return err
		}
		if q.swallow != nil {
			close(q.swallow)
			continue
		}
		if q.change != nil {
			raw = q.change(raw)
		}
		if _, err := s.client.Write(raw); err != nil {
			return err
		}
	}
}

// buffer gathers one reply.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
