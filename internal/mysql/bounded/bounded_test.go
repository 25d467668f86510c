// SPDX-License-Identifier: Apache-2.0

package bounded_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/bounded"
)

// talk is a client's end of a connection, and a server that answers as many bytes as it is asked for.
func talk(t *testing.T) (conn *bounded.Conn, answers *bounded.Answers, send func(n int)) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	asked := make(chan int)
	t.Cleanup(func() { close(asked) })
	go func() { _, _ = io.Copy(io.Discard, server) }()
	go func() {
		for n := range asked {
			_, _ = io.CopyN(server, zeros{}, int64(n))
		}
	}()
	answers = &bounded.Answers{}
	return answers.Conn(client), answers, func(n int) { asked <- n }
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// read reads n bytes, and returns the first error.
func read(conn net.Conn, n int) error {
	_, err := io.CopyN(io.Discard, conn, int64(n))
	return err
}

func write(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	if _, err := conn.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

func TestEachStatementMayHaveALongAnswer(t *testing.T) {
	conn, answers, send := talk(t)
	for range 3 {
		write(t, conn, 100)
		send(bounded.Most)
		if err := read(conn, bounded.Most); err != nil {
			t.Fatal(err)
		}
	}
	if err := answers.Explain(io.EOF); err != io.EOF { //nolint:errorlint // it must be the very same
		t.Errorf("nothing was cut: %v", err)
	}
}

// TestAnAnswerThatIsTooLongEndsTheConnection: however short the messages are that a server has TLS send meanwhile.
func TestAnAnswerThatIsTooLongEndsTheConnection(t *testing.T) {
	conn, answers, send := talk(t)
	write(t, conn, 100)
	const part = bounded.Most / 4
	for range 4 {
		send(part)
		if err := read(conn, part); err != nil {
			t.Fatal(err)
		}
		write(t, conn, 27) // as TLS answers a KeyUpdate
	}
	send(1)
	if err := read(conn, 1); !errors.Is(err, bounded.ErrTooLong) {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := conn.Write(make([]byte, 100)); err == nil {
		t.Error("the connection is open")
	}
	if err := answers.Explain(nil); err != nil {
		t.Errorf("what went well has an error: %v", err)
	}
	if err := answers.Explain(io.EOF); !errors.Is(err, bounded.ErrTooLong) || !errors.Is(err, io.EOF) {
		t.Errorf("it does not say why: %v", err)
	}
	if err := answers.Explain(io.EOF); errors.Is(err, bounded.ErrTooLong) {
		t.Errorf("the next error is another one: %v", err)
	}
}

func TestAReaderWithLimitsOfItsOwn(t *testing.T) {
	conn, _, send := talk(t)
	conn.Lift()
	send(bounded.Most + 1)
	if err := read(conn, bounded.Most+1); err != nil {
		t.Error(err)
	}
}

// TestTheDriverSeesTheSocket: it looks there whether the server has closed an idle connection.
func TestTheDriverSeesTheSocket(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	conn, err := new(bounded.Answers).Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	socket, is := conn.(syscall.Conn)
	if !is {
		t.Fatal("the socket is hidden")
	}
	if _, err := socket.SyscallConn(); err != nil {
		t.Error(err)
	}
	if _, err := new(bounded.Answers).Conn(nil).SyscallConn(); err == nil {
		t.Error("a connection without a socket has one")
	}
}
