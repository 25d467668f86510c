// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

func group(active string, epoch int64, records ...v1alpha1.FailoverRecord) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Status.ActiveSite, g.Status.Epoch, g.Status.Failovers = active, epoch, records
	return g
}

func TestTurns(t *testing.T) {
	old := v1alpha1.FailoverRecord{Epoch: 2, From: "west", To: "east"}
	there := v1alpha1.FailoverRecord{Epoch: 3, From: "east", To: "west"}
	back := v1alpha1.FailoverRecord{Epoch: 4, From: "west", To: "east"}
	for name, tt := range map[string]struct {
		reason string
		after  *v1alpha1.MysqlFailoverGroup
		want   []string
	}{
		"nothing happened": {"older records do not count", group("east", 2, old), []string{"east"}},
		"once":             {"", group("west", 3, there, old), []string{"east", "west"}},
		"there and back":   {"newest first in status, oldest first here", group("east", 4, back, there, old), []string{"east", "west", "east"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Turns(group("east", 2, old), tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestCheckWriters(t *testing.T) {
	change := []journal.Change{{From: "east", To: "west"}}
	for name, tt := range map[string]struct {
		v    Verdict
		fine bool
	}{
		"moved and seen":   {Verdict{From: "east", To: "west", Changes: change}, true},
		"stayed":           {Verdict{From: "east", To: "east"}, true},
		"moved but unseen": {Verdict{From: "east", To: "west"}, false},
		"overlap":          {Verdict{From: "east", To: "west", Changes: change, Overlaps: []journal.Overlap{{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.v.CheckWriters(); (err == nil) != tt.fine {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestChartValuesAreTheSpec(t *testing.T) {
	spec := DefaultSpec("orders")
	values, err := chartValues(spec)
	if err != nil {
		t.Fatal(err)
	}
	if values["image"] != MySQLImage || len(values["sites"].([]any)) != 3 {
		t.Errorf("values = %v", values)
	}
	if spec.Sites[2].Role != v1alpha1.DROnly {
		t.Errorf("the third site is %s", spec.Sites[2].Role)
	}
}

// One authority for groups and escrow endpoint: what a group's ca.crt holds must verify both.
func TestCertificatesVerify(t *testing.T) {
	data, err := makeAuthority()
	if err != nil {
		t.Fatal(err)
	}
	// As it comes back from the API server, for each of the two anew.
	secret := &corev1.Secret{Data: data}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data["ca.crt"])
	for _, name := range []string{"mysql-orders-east.shop.svc", "mfg-auxiliary.mfg-system.svc"} {
		ca, err := readAuthority(secret)
		if err != nil {
			t.Fatal(err)
		}
		issued, err := ca.issue([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(issued["ca.crt"], data["ca.crt"]) {
			t.Error("the certificate comes with another authority")
		}
		block, _ := pem.Decode(issued["tls.crt"])
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	g := &Group{Namespace: "shop", Name: "orders", ca: data["ca.crt"]}
	conf, err := g.tlsConfig("mysql-orders-east")
	if err != nil || conf.ServerName != "mysql-orders-east.shop.svc" {
		t.Errorf("config = %+v, %v", conf, err)
	}
}
