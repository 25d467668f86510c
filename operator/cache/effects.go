// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Action is one thing to do. The loop does them in order and stops at the first that fails; each can be repeated.
type Action interface {
	fmt.Stringer
	action()
}

// TrafficOff takes the pod of a site out of the Service of the applications.
type TrafficOff struct{ Site string }

// TrafficOn labels the pod of a site as the master and puts it into that Service.
type TrafficOn struct{ Site string }

// Route points the Service of the applications at the pod of a site, whatever labels it has, or at the labels again if Site is ByLabels.
// The endpoint then moves in one step: kube-proxy may put a second step off for a second.
type Route struct{ Site string }

// Arrive waits until new connections to the Service reach the pod of a site, for a moment at most. The old master takes writes meanwhile, on
// existing connections: after an earlier take-over, they would find no master for as long as kube-proxy takes.
type Arrive struct{ Site string }

// TakeOver has To become the master in place of From with every key, or leaves From the master.
type TakeOver struct {
	From, To string
	Budget   time.Duration
}

// Promote makes a cache a master, whatever its own master says.
type Promote struct{ Site string }

// Follow makes a cache a replica of another.
type Follow struct{ Site, Master string }

// CutClients ends the connections of applications to a cache that is no longer their master.
type CutClients struct{ Site string }

// Label says what a pod is; it does not touch the traffic.
type Label struct {
	Site string
	Role v1alpha1.CacheRole
}

func (TrafficOff) action() {}
func (TrafficOn) action()  {}
func (Route) action()      {}
func (Arrive) action()     {}
func (TakeOver) action()   {}
func (Promote) action()    {}
func (Follow) action()     {}
func (CutClients) action() {}
func (Label) action()      {}

func (a TrafficOff) String() string { return "traffic off " + a.Site }
func (a TrafficOn) String() string  { return "traffic on " + a.Site }
func (a Route) String() string {
	if a.Site == ByLabels {
		return "route by labels"
	}
	return "route to " + a.Site
}
func (a Arrive) String() string { return "await connections at " + a.Site }
func (a TakeOver) String() string {
	return fmt.Sprintf("take over %s -> %s within %s", a.From, a.To, a.Budget)
}
func (a Promote) String() string    { return "promote " + a.Site }
func (a Follow) String() string     { return a.Site + " follows " + a.Master }
func (a CutClients) String() string { return "cut clients of " + a.Site }
func (a Label) String() string      { return fmt.Sprintf("label %s %s", a.Site, a.Role) }
