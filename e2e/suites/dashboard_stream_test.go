// SPDX-License-Identifier: Apache-2.0

//go:build lab && more

package suites

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// stalledClients leave some of the operator's 64 slots to others.
	stalledClients = 48
	// stalledFor is longer than the operator waits for a sign of life of a client: docs/reference/http.md.
	stalledFor = 35 * time.Second
	// stalledMessages is how many messages must have been meant for clients that read none.
	stalledMessages = 200
)

// Clients of the stream that never read do not keep the operator from deciding, and are let go. How old its decisions are
// meanwhile is told, beside how old they were before.
func TestDashboardClientsThatStall(t *testing.T) {
	g, _ := whole(t)
	witnesses(t, g) // so that every poll finds something new to tell
	address := operatorAddress(t)
	before := decisionAges(t, g, 8*time.Second)

	stalled := make([]net.Conn, 0, stalledClients)
	for range stalledClients {
		stalled = append(stalled, openStream(t, address))
	}
	during := decisionAges(t, g, stalledFor)

	// All at once: what the operator's kernel could not send it offers again at longer and longer intervals.
	var messages atomic.Int64
	var readers sync.WaitGroup
	for i, conn := range stalled {
		readers.Go(func() {
			n, err := messagesUntilTheEnd(conn)
			if err != nil {
				t.Errorf("client %d read nothing for %s and was not let go, after %d messages: %v", i, stalledFor, n, err)
			}
			messages.Add(int64(n))
		})
	}
	readers.Wait()
	if messages.Load() < stalledMessages {
		t.Errorf("%d messages were meant for clients that did not read, want at least %d: the test shows nothing", messages.Load(), stalledMessages)
	}
	// The poll interval is 2 s: half of what was to come is enough to see that nothing stands still.
	if least := int(stalledFor/(2*time.Second)) / 2; during.Decisions < least {
		t.Errorf("%d decisions in %s, want at least %d", during.Decisions, stalledFor, least)
	}
	// The slots are free again: somebody who reads gets the whole state at once.
	if first := firstMessage(t, openStream(t, address)); first.Type != wire.StreamSnapshot || first.Seq != 1 {
		t.Errorf("a new client got %+v", first)
	}
	t.Logf("age of decisions: p50 %d ms, p99 %d ms, most %d ms before; p50 %d ms, p99 %d ms, most %d ms while %d clients read none of %d messages (%d and %d decisions)",
		before.P50Millis, before.P99Millis, before.MaxMillis, during.P50Millis, during.P99Millis, during.MaxMillis, stalledClients, messages.Load(), before.Decisions, during.Decisions)
	report, err := json.MarshalIndent(map[string]any{"clients": stalledClients, "messages": messages.Load(), "before": before, "during": during}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "stalled-clients.json", append(report, '\n'))
}

// ages are how old the operator's decisions about a group were when it was asked.
type ages struct {
	Decisions int   `json:"decisions"`
	P50Millis int64 `json:"p50Millis"`
	P99Millis int64 `json:"p99Millis"`
	MaxMillis int64 `json:"maxMillis"`
}

// decisionAges asks out of step with the polls, by the operator's own clock.
func decisionAges(t *testing.T, g *stage.Group, length time.Duration) ages {
	t.Helper()
	var old []int64
	seen := map[time.Time]bool{}
	for end := time.Now().Add(length); time.Now().Before(end); sleep(t, 130*time.Millisecond) {
		list, err := lab.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Groups {
			if s.Namespace == g.Namespace && s.Group == g.Name {
				seen[s.ObservedAt] = true
				old = append(old, list.IssuedAt.Sub(s.ObservedAt).Milliseconds())
			}
		}
	}
	if len(old) == 0 {
		t.Fatal("the operator does not know the group")
	}
	slices.Sort(old)
	return ages{Decisions: len(seen), P50Millis: old[len(old)/2], P99Millis: old[len(old)*99/100], MaxMillis: old[len(old)-1]}
}

// operatorAddress is where the one operator listens, without anything between.
func operatorAddress(t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := lab.Kube.List(t.Context(), &pods, client.InNamespace(stage.OperatorNamespace),
		client.MatchingLabels{"app.kubernetes.io/name": "mfg"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return net.JoinHostPort(p.Status.PodIP, strconv.Itoa(wire.PortOperatorAuxiliary))
		}
	}
	t.Fatal("no operator runs")
	return ""
}

// openStream asks for the stream, with little room for what comes, and reads nothing.
func openStream(t *testing.T, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", wire.PathWSStatus, address); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Frames of a WebSocket that are told apart here: RFC 6455, section 5.2.
const (
	frameText  = 0x1
	frameClose = 0x8
)

// nextFrame reads one frame of a server, which masks none and sends whole ones.
func nextFrame(r *bufio.Reader) (kind byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := uint64(head[1] & 0x7f)
	switch length {
	case 126:
		var n uint16
		err = binary.Read(r, binary.BigEndian, &n)
		length = uint64(n)
	case 127:
		err = binary.Read(r, binary.BigEndian, &length)
	}
	if err != nil {
		return 0, nil, err
	}
	if length > wire.MaxStatusBytes {
		return 0, nil, fmt.Errorf("a frame of %d bytes", length)
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(r, payload)
	return head[0] & 0xf, payload, err
}

// accepted reads the answer to the handshake.
func accepted(r *bufio.Reader) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the operator answered %s", resp.Status)
	}
	return nil
}

// messagesUntilTheEnd counts what is still in the buffers between. It is an error if no end comes after it.
func messagesUntilTheEnd(conn net.Conn) (messages int, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return 0, err
	}
	r := bufio.NewReader(conn)
	if err := accepted(r); err != nil {
		return 0, err
	}
	for {
		kind, _, err := nextFrame(r)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return messages, err
		case err != nil, kind == frameClose:
			return messages, nil //nolint:nilerr // the end, in whatever way the operator let go
		case kind == frameText:
			messages++
		}
	}
}

// firstMessage is what a client that reads gets first.
func firstMessage(t *testing.T, conn net.Conn) wire.StreamMessage {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if err := accepted(r); err != nil {
		t.Fatal(err)
	}
	_, payload, err := nextFrame(r)
	var m wire.StreamMessage
	if err == nil {
		err = json.Unmarshal(payload, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}
