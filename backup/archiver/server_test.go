// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A mysqld that hangs keeps no round of the archiver for longer than this, neither by what it does not say nor by what it does not take.
func TestASilentServerIsNotWaitedFor(t *testing.T) {
	for name, use := range map[string]func(net.Conn) (int, error){
		"it says nothing":  func(c net.Conn) (int, error) { return c.Read(make([]byte, 1)) },
		"it takes nothing": func(c net.Conn) (int, error) { return c.Write(make([]byte, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer func() { _, _ = ours.Close(), theirs.Close() }()
				began := time.Now()
				if _, err := use(patient{ours}); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != silenceMax {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				// What it says later begins a time of its own.
				go func() {
					time.Sleep(silenceMax - time.Second)
					_, _ = theirs.Write(make([]byte, 1))
				}()
				if _, err := (patient{ours}).Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
