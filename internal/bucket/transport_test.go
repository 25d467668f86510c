// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// piece is a piece of an upload. Written to a pipe, it leaves only as fast as the other end reads.
const piece = 1 << 20

// slowly reads n bytes, some at a time, with a pause before each.
func slowly(r io.Reader, n, atOnce int, pause time.Duration) error {
	for ; n > 0; n -= atOnce {
		time.Sleep(pause)
		if _, err := io.CopyN(io.Discard, r, int64(min(n, atOnce))); err != nil {
			return err
		}
	}
	return nil
}

// A piece that takes much longer than ioTimeout is uploaded, and its answer read: the read that waits for it beside the upload lives as long
// as bytes leave.
func TestASlowUploadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		transport := &http.Transport{
			DialContext:           func(context.Context, string, string) (net.Conn, error) { return &boundedConn{Conn: ours}, nil },
			ResponseHeaderTimeout: ioTimeout,
		}
		defer transport.CloseIdleConnections()
		served := make(chan error, 1)
		go func() {
			defer func() { _ = theirs.Close() }()
			in := bufio.NewReaderSize(theirs, 16)
			r, err := http.ReadRequest(in)
			if err == nil {
				err = slowly(r.Body, piece, 4<<10, ioTimeout/20)
			}
			if err == nil {
				_, err = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}
			served <- err
		}()
		began := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://storage.example/piece", bytes.NewReader(make([]byte, piece)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("given up after %s: %v", time.Since(began), err)
		}
		_ = answer.Body.Close()
		if err := <-served; err != nil || answer.StatusCode != http.StatusOK || time.Since(began) < 5*ioTimeout {
			t.Errorf("after %s: %d, %v", time.Since(began), answer.StatusCode, err)
		}
	})
}

// One write that takes much longer than ioTimeout goes on, and is written once. A read that waits since before it waits on.
func TestASlowWriteGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes, atOnce int
		pause         time.Duration
	}{
		"a long one":      {piece, 4 << 10, ioTimeout / 20},
		"a very slow one": {30000, 1000, ioTimeout / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				conn := &boundedConn{Conn: ours}
				content := bytes.Repeat([]byte("0123456789"), tt.bytes/10)
				came := make(chan []byte, 1)
				go func() {
					var all bytes.Buffer
					for all.Len() < len(content) {
						time.Sleep(tt.pause)
						if _, err := io.CopyN(&all, theirs, int64(min(tt.atOnce, len(content)-all.Len()))); err != nil {
							break
						}
					}
					came <- all.Bytes()
					_, _ = io.WriteString(theirs, "!")
				}()
				read := make(chan error, 1)
				go func() {
					_, err := conn.Read(make([]byte, 1))
					read <- err
				}()
				time.Sleep(time.Second)
				if n, err := conn.Write(content); n != len(content) || err != nil {
					t.Errorf("wrote %d: %v", n, err)
				}
				if !bytes.Equal(<-came, content) {
					t.Error("something else came")
				}
				if err := <-read; err != nil {
					t.Errorf("the read that waited: %v", err)
				}
				_, _ = ours.Close(), theirs.Close()
			})
		})
	}
}

// A connection on which nothing moves ends: while it waits for an answer, and in the middle of an upload, where both directions wait.
func TestAConnectionThatStopsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		conn := &boundedConn{Conn: ours}
		began := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != ioTimeout {
			t.Errorf("a silent server: %v after %s", err, time.Since(began))
		}
		go func() { _ = slowly(theirs, piece/2, 4<<10, time.Second) }() // then it reads no more
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = conn.Read(make([]byte, 1))
		}()
		n, err := conn.Write(make([]byte, piece))
		stopped := began.Add(ioTimeout + piece/2/(4<<10)*time.Second)
		if wrote := time.Since(stopped); !errors.Is(err, os.ErrDeadlineExceeded) || n != piece/2 || wrote > 2*ioTimeout {
			t.Errorf("wrote %d, given up %s after it stopped: %v", n, wrote, err)
		}
		<-read // it ends too, now that nothing is being written
		_, _ = ours.Close(), theirs.Close()
	})
}
