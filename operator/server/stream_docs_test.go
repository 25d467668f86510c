// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestStreamIsDocumented: what the page promises of GET /ws/status is what holds.
func TestStreamIsDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n### GET /ws/status\n")
	if !found {
		t.Fatal("no section about /ws/status")
	}
	section, _, _ = strings.Cut(section, "\n### ")
	flat := strings.Join(strings.Fields(section), " ")
	l := defaultLimits()
	for _, want := range []string{
		fmt.Sprintf("%q", wire.StreamVersion),
		"`" + string(wire.StreamSnapshot) + "`", "`" + string(wire.StreamDelta) + "`", "`" + string(wire.StreamPing) + "`",
		fmt.Sprintf("Sent every %.0f s", l.ping.Seconds()),
		fmt.Sprintf("answers none for %.0f s", l.pong.Seconds()),
		fmt.Sprintf("of more than %d KiB ends the connection", l.streamRead>>10),
		fmt.Sprintf("when %d changes of all groups", boardLog),
		fmt.Sprintf("one message takes longer than %.0f s", l.streamWrite.Seconds()),
		"close code 1013", "closes with 1001", "with 1011",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if want := fmt.Sprintf("%d WebSocket clients are connected", l.streams); !strings.Contains(string(raw), want) {
		t.Errorf("the page does not say %q", want)
	}
}
