// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// TestReceiversVerifyOnceEverySiteHasTheCertificate: in that phase and no other, and the facts tell.
func TestReceiversVerifyOnceEverySiteHasTheCertificate(t *testing.T) {
	for _, tc := range []struct {
		phase  v1alpha1.TLSPhase
		source string
		want   bool
	}{
		{"", "", false}, {v1alpha1.TLSPlain, "", false}, {v1alpha1.TLSCertificates, "", false}, {v1alpha1.TLSChannels, "", true},
		{v1alpha1.TLSClients, "", false}, {v1alpha1.TLSRequired, "", false},
	} {
		s := newStage(t)
		s.group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}
		if tc.phase != "" {
			s.group.Status.TLS = &v1alpha1.TLSStatus{Phase: tc.phase, Later: true}
		}
		s.access.source.TLS, s.access.source.CA = true, "/etc/mfg-tls/ca.crt"
		for i := range s.seen.Sites {
			s.seen.Sites[i].MySQL.ReplicaOf, s.seen.Sites[i].MySQL.IORunning, s.seen.Sites[i].Pod.UID = "east", true, s.seen.Sites[i].Name+"-1"
		}
		s.seen.Status.ActiveSite = "east"
		s.access.source.Host = "source"
		s.seen.Sites = append(s.seen.Sites[:1], s.seen.Sites[2:]...)
		d := failover.Decision{Status: failover.Durable{ActiveSite: "east"}, Views: []failover.View{{Name: "east"}, {Name: "west"}}}
		sources{s.loop, s.group}.verify(t.Context(), s.seen, d)
		var want []string
		if tc.want {
			want = []string{"STOP REPLICA IO_THREAD",
				"CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1, SOURCE_SSL_CA = '/etc/mfg-tls/ca.crt', SOURCE_SSL_VERIFY_SERVER_CERT = 1, GET_SOURCE_PUBLIC_KEY = 0",
				"START REPLICA IO_THREAD"}
		}
		s.servers["west"].was(t, string(tc.phase), want...)
		s.servers["east"].was(t, "the active site receives nothing")
		s.publishFacts(s.group, s.seen, d)
		for _, site := range s.facts.Load().Sites {
			if site.Verified != (tc.want && site.Name == "west") {
				t.Errorf("%s: the facts say of %s: %t", tc.phase, site.Name, site.Verified)
			}
		}
		sources{s.loop, s.group}.verify(t.Context(), s.seen, d)
		s.servers["west"].was(t, "known to verify, it is left alone")
	}
}

// TestAReceiverThatTookNoVerificationGetsBackWhatItHad: it must not stand still for half a step.
func TestAReceiverThatTookNoVerificationGetsBackWhatItHad(t *testing.T) {
	s := newStage(t)
	s.group.Spec.TLS, s.group.Status.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls"}, &v1alpha1.TLSStatus{Phase: v1alpha1.TLSChannels}
	s.access.source.TLS, s.access.source.CA = true, "/etc/mfg-tls/ca.crt"
	s.seen.Sites[2].MySQL.ReplicaOf, s.seen.Sites[2].MySQL.IORunning, s.seen.Sites[2].Pod.UID = "east", true, "west-1"
	s.servers["west"].refuse = "CHANGE REPLICATION"
	sources{s.loop, s.group}.verify(t.Context(), s.seen, failover.Decision{Status: failover.Durable{ActiveSite: "east"}})
	told := s.servers["west"].heard()
	if n := len(told); n < 4 || told[n-1] != "START REPLICA IO_THREAD" {
		t.Errorf("told %q", told)
	}
	if s.verifying.Verified("west", "west-1", "east") {
		t.Error("what it refused passes for done")
	}
}

// TestConnectionsAreMadeAnewToBeVerified: one that was made before would go on in plain text.
func TestConnectionsAreMadeAnewToBeVerified(t *testing.T) {
	s := newStage(t)
	link := s.sites["east"]
	connect := func() {
		t.Helper()
		if _, err := s.client.connection(t.Context(), s.group, link, "east"); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct{ verifies, kept bool }{{false, true}, {true, false}, {true, true}, {false, false}} {
		connect()
		link.verify(step.verifies)
		if db, _ := link.current(); (db != nil) != step.kept {
			t.Errorf("step %d: kept %t, want %t", i, db != nil, step.kept)
		}
	}
}
