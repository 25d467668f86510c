// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"crypto/ed25519"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Facts is a group as the loop last saw it, for the code that works beside it.
type Facts struct {
	ActiveSite string
	Epoch      int64
	// Open is true if the active site was seen writable and no transition is under way.
	Open  bool
	Sites []SiteFacts
	// Target is the site that is being promoted, or that a planned failover waits for to catch up; empty if there is none.
	Target string
	// InDoubt is true if the operator itself did not see the active site open for writes in this poll, or if the active site is about to
	// go and no site that could take its place has caught up.
	InDoubt bool
	// SignedBy is the public key that the sites' statements were signed with, and Vouch makes it vouch for the next key.
	SignedBy ed25519.PublicKey
	Vouch    func(next ed25519.PublicKey) wire.Chain
}

// SiteFacts is one site as the loop last saw it.
type SiteFacts struct {
	failover.Site
	View failover.View
	// AdminAddr is the address of the admin interface; empty without a pod.
	AdminAddr string
	// ReceiverSerial is the serial of the accounts Secret whose password the site's receiver got; 0 if unknown.
	ReceiverSerial int64
	// Verified is true if the site's receiver was seen to verify the active site, while TLS comes to the group.
	Verified bool
}

// Facts returns the newest facts of a group; false if there are none yet.
func (m *Monitor) Facts(namespace, group string) (Facts, bool) {
	l := m.loop(types.NamespacedName{Namespace: namespace, Name: group})
	if l == nil {
		return Facts{}, false
	}
	f := l.facts.Load()
	if f == nil {
		return Facts{}, false
	}
	return *f, true
}

func (l *loop) publishFacts(_ *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	f := &Facts{ActiveSite: s.Status.ActiveSite, Epoch: s.Status.Epoch}
	if key := l.signer.inUse; key.Private != nil {
		f.SignedBy, f.Vouch = key.Public(), key.Vouch
	}
	active, _ := s.Site(s.Status.ActiveSite)
	f.Open = s.Status.Transition == nil && active.Writable()
	f.InDoubt, f.Target = failover.InDoubt(s, d), failover.Target(s, d)
	for _, v := range d.Views {
		site, _ := s.Site(v.Name)
		facts := SiteFacts{Site: site, View: v, Verified: l.verifying.Verified(v.Name, site.Pod.UID, s.Status.ActiveSite)}
		if link := l.sites[v.Name]; link != nil && site.Pod.Exists {
			if _, podIP := link.current(); podIP != "" {
				facts.ReceiverSerial = link.has(s.Status.ActiveSite)
				facts.AdminAddr = net.JoinHostPort(podIP, strconv.Itoa(wire.PortMySQLAdmin))
			}
		}
		f.Sites = append(f.Sites, facts)
	}
	l.facts.Store(f)
}
