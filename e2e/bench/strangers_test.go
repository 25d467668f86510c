// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Strangers flood every listener that they are told of, until they are told to stop, and say what they did.
func TestStrangersFloodUntilTheyAreStopped(t *testing.T) {
	var asked, held atomic.Int64
	listener := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	listener.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			held.Add(1)
		}
	}
	listener.StartTLS()
	t.Cleanup(listener.Close)

	in, tell := io.Pipe()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- beStrangers(t.Context(), in, &out) }()
	if err := json.NewEncoder(tell).Encode([]floodTarget{{Name: "escrow", Address: listener.Listener.Addr().String(), Secure: true}}); err != nil {
		t.Fatal(err)
	}
	for asked.Load() < 20 || held.Load() < floodHeld {
		select {
		case err := <-ended:
			t.Fatalf("the flood ended before it was stopped: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = tell.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var did []flooded
	if err := json.Unmarshal(out.Bytes(), &did); err != nil {
		t.Fatal(err)
	}
	if len(did) != 1 || did[0].Name != "escrow" || did[0].Answered < 20 || did[0].Opened < floodHeld {
		t.Errorf("the flood did %+v, want at least 20 answers and %d connections", did, floodHeld)
	}
}
