// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package engine

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// fill opens connections until the server takes no more: it ends the last one.
func (s *server) fill(t *testing.T, most int) (out []net.Conn) {
	t.Helper()
	for range most {
		conn, err := net.Dial("tcp", s.addr())
		check(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		check(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		_, err = conn.Read(make([]byte, 64))
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() { // it ended the connection, or said why
			return out
		}
		out = append(out, conn)
	}
	t.Fatalf("it took %d connections", most)
	return nil
}

// The real one is full: who is in stays in and sees it, who is not is refused and knows why, and once a client leaves, it is in again.
func TestARealValkeyThatIsFull(t *testing.T) {
	for name, tc := range map[string]struct {
		secure bool
		want   error
	}{"plain": {false, ErrFull}, "TLS": {true, ErrDropped}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, tc.secure, "--maxclients", "5")
			in := s.client(t)
			if now, err := in.Info(short(t)); err != nil || now.Full {
				t.Fatalf("before: %+v %v", now, err)
			}
			apps := s.fill(t, 20)
			if now, err := in.Info(short(t)); err != nil || !now.Full {
				t.Errorf("who is in: %+v %v", now, err)
			}
			out := New(Target{Engine: v1alpha1.CacheValkey, Addr: s.addr(), Passwords: []string{password}, TLS: s.tls})
			defer out.Close()
			for range 3 {
				if _, err := out.Info(short(t)); !errors.Is(err, tc.want) {
					t.Errorf("who is not: %v", err)
				}
			}
			check(t, apps[0].Close())
			eventually(t, "it takes another client", func() bool { _, err := out.Info(short(t)); return err == nil })
		})
	}
}

// Replicas have places, too: of three, the one that waited for the server to answer has one.
func TestARealValkeyThatIsFullOfReplicas(t *testing.T) {
	master, replica := start(t, false, "--maxclients", "3"), start(t, false)
	check(t, replica.client(t).Follow(short(t), "127.0.0.1", master.port))
	in := master.client(t)
	eventually(t, "the replica and the operator have all places", func() bool { now, err := in.Info(short(t)); return err == nil && now.Full && len(now.Replicas) == 1 })
}
