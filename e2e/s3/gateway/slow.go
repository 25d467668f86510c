// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// slowed listens in the place of the server and passes on to it what clients send, as fast as is allowed. It returns the address that
// the server takes instead. What is passed on is not looked at: TLS goes through.
func slowed(ctx context.Context, o Options) (string, error) {
	var listen net.ListenConfig
	inner, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := inner.Addr().String()
	if err := inner.Close(); err != nil {
		return "", err
	}
	outer, err := listen.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = outer.Close() })
	l := &limit{}
	l.read(o.RateFile)
	go l.follow(ctx, o.RateFile)
	go func() {
		for {
			conn, err := outer.Accept()
			if err != nil {
				return
			}
			go l.pass(ctx, conn, address)
		}
	}()
	return address, nil
}

const (
	// chunk is how much is passed on at a time, and rereads how often the rate is read.
	chunk   = 32 << 10
	rereads = 500 * time.Millisecond
)

// limit is a rate that connections share.
type limit struct {
	mu   sync.Mutex
	rate int64 // bytes a second; 0: none
	next time.Time
}

func (l *limit) follow(ctx context.Context, file string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rereads):
			l.read(file)
		}
	}
}

// read takes the rate of the file. What cannot be read bounds nothing.
func (l *limit) read(file string) {
	raw, _ := os.ReadFile(file)
	rate, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = max(rate, 0)
}

// due is until when the next n bytes must wait.
func (l *limit) due(now time.Time, n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == 0 || l.next.Before(now) {
		l.next = now
	}
	if l.rate == 0 {
		return now
	}
	at := l.next
	l.next = at.Add(time.Duration(int64(n) * int64(time.Second) / l.rate))
	return at
}

// pass passes on one connection until either side ends it.
func (l *limit) pass(ctx context.Context, client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return // the server is not up yet: the client tries again
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	buffer := make([]byte, chunk)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			time.Sleep(time.Until(l.due(time.Now(), n)))
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
