// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"time"
)

// Decision is what one look leads to.
type Decision struct {
	// Status must be durable before the first action, if Persist is set.
	Status  Durable
	Persist bool
	Memory  Memory
	Actions []Action
	// Ready is true if all is as it should be; Reason and Message say what is so.
	Ready   bool
	Reason  Reason
	Message string
	// Keep is true while something passes that people need not hear of: the condition stays as it is.
	Keep   bool
	Events []Event
	// Answer answers the open request; nil while it stays open or there is none.
	Answer *Answer
	// Synced says of each site whether a planned failover of MySQL to it would keep the sessions.
	Synced []Synced
	// Next is when to look again at the latest; zero means at the next turn.
	Next time.Duration

	// begun counts the moves that this look began.
	begun int
}

// Event is something that happened.
type Event struct {
	Reason  Reason
	Site    string
	Message string
}

// Answer is the outcome of a request.
type Answer struct {
	Request Request
	Done    bool
	// Failed is true if it was begun and reverted.
	Failed  bool
	Reason  Reason
	Message string
}

// Synced is whether the cache of a site has caught up.
type Synced struct {
	Site string
	Yes  bool
	// Why says to people why not; empty if it has.
	Why string
}

// Errors of Check.
var (
	ErrTwoMasters = errors.New("a decision gives traffic to two caches")
	ErrNotDurable = errors.New("a decision changes the master without a durable transition to it")
	ErrNotAway    = errors.New("a decision gives traffic to one cache and leaves it with another")
)

// Check verifies a decision before it is performed; one that breaks a rule is a defect, and the loop performs none of it.
func (d Decision) Check(s Snapshot) error {
	traffic := map[string]bool{}
	for _, p := range s.Pods {
		if p.Traffic {
			traffic[p.Site] = true
		}
	}
	for _, a := range d.Actions {
		switch a := a.(type) {
		case TrafficOff:
			delete(traffic, a.Site)
		case TrafficOn:
			for site := range traffic {
				if site != a.Site {
					return fmt.Errorf("%w: %s and %s", ErrNotAway, site, a.Site)
				}
			}
			traffic[a.Site] = true
		}
		if to := raised(a); to != "" && to != d.Status.aim() {
			return fmt.Errorf("%w: %s", ErrNotDurable, a)
		}
	}
	if len(traffic) > 1 && len(d.Actions) > 0 {
		return ErrTwoMasters
	}
	return nil
}

// raised is the site that an action makes the master or gives the traffic; empty for every other action.
func raised(action Action) string {
	switch a := action.(type) {
	case TrafficOn:
		return a.Site
	case Promote:
		return a.Site
	case TakeOver:
		return a.To
	case Route:
		return a.Site // empty for one that follows the labels
	case TrafficOff, Arrive, Follow, CutClients, Label:
	}
	return ""
}

// aim is the one site that may be made the master and take the traffic.
func (d Durable) aim() string {
	if d.Transition != nil {
		return d.Transition.To
	}
	return d.ActiveSite
}

func (d Decision) do(actions ...Action) Decision {
	d.Actions = append(d.Actions, actions...)
	return d
}

// within lets the next look come no later than that.
func (d Decision) within(next time.Duration) Decision {
	if d.Next == 0 || next < d.Next {
		d.Next = next
	}
	return d
}

func (d Decision) say(ready bool, why Reason, format string, args ...any) Decision {
	d.Ready, d.Reason, d.Message = ready, why, fmt.Sprintf(format, args...)
	return d
}

func (d Decision) tell(why Reason, site, format string, args ...any) Decision {
	d.Events = append(d.Events, Event{why, site, fmt.Sprintf(format, args...)})
	return d
}

func (d Decision) answer(s Snapshot, done, failed bool, why Reason, message string) Decision {
	if s.Request != nil {
		d.Answer = &Answer{Request: *s.Request, Done: done, Failed: failed, Reason: why, Message: message}
	}
	return d
}
