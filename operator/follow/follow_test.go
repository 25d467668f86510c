// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func TestDNSRecord(t *testing.T) {
	tests := map[string]struct {
		want  render.DNSRecord
		wrong string
	}{
		"192.0.2.7":           {want: render.DNSRecord{Type: "A", Target: "192.0.2.7"}},
		"2001:DB8::0:1":       {want: render.DNSRecord{Type: "AAAA", Target: "2001:db8::1"}},
		"Paris.Example.org":   {want: render.DNSRecord{Type: "CNAME", Target: "paris.example.org"}},
		"paris":               {want: render.DNSRecord{Type: "CNAME", Target: "paris"}},
		"":                    {wrong: "has no externalAddress"},
		"paris.example.org:1": {wrong: "without a port"},
		"192.0.2.7:3306":      {wrong: "without a port"},
		"192.0.2.300":         {wrong: "neither"},
		"::ffff:192.0.2.7":    {wrong: "neither"},
		"a..b":                {wrong: "neither"},
		"db.example.org":      {wrong: "the name itself"},
	}
	for address, tc := range tests {
		t.Run(address, func(t *testing.T) {
			got, err := dnsRecord("db.example.org", v1alpha1.Site{ExternalAddress: address})
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%+v, %v, want an error about %q", got, err, tc.wrong)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// Retries come ever more rarely, but at once when there is something new to follow.
func TestBackOff(t *testing.T) {
	m := newSteering()
	s := &scope.Scope{Key: scopetest.Key, Group: scopetest.Group(scopetest.Running)}
	var delays []time.Duration
	for range 8 {
		delays = append(delays, m.fail(s, "x", 0))
	}
	want := []time.Duration{2, 4, 8, 16, 32, 64, 120, 120}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	if got := m.wait(s, "x"); got <= time.Minute || got > longestRetry {
		t.Errorf("waits %s", got)
	}
	if got := m.wait(s, "y"); got != 0 {
		t.Errorf("another follower waits %s", got)
	}
	s.Group.Status.Epoch++
	if got := m.wait(s, "x"); got != 0 {
		t.Errorf("a new epoch waits %s", got)
	}
	if got := m.fail(s, "x", 0); got != firstRetry {
		t.Errorf("the first retry of a new epoch comes after %s", got)
	}
	s.Group.Generation++
	if got := m.wait(s, "x"); got != 0 {
		t.Errorf("a new specification waits %s", got)
	}
	m.succeed(s, "x")
	if got := m.at(scopetest.Key, "x"); got != "a" || m.wait(s, "x") != 0 {
		t.Errorf("after a success: at %q, waits %s", got, m.wait(s, "x"))
	}
	m.forget(scopetest.Key)
	if got := m.at(scopetest.Key, "x"); got != "" {
		t.Errorf("a group that is gone is at %q", got)
	}
}
