// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// What nobody vouches for is shown all the same: the doctor is to say why it is not believed.
func TestPeerChain(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	chain, err := peerChain(t.Context(), s.Listener.Addr().String())
	if err != nil || len(chain) != 1 || !chain[0].Equal(s.Certificate()) {
		t.Errorf("%v: %v", err, chain)
	}
	s.Close()
	if _, err := peerChain(t.Context(), s.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "shake hands") {
		t.Errorf("got %v", err)
	}
}
