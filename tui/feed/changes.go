// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Told is a group as the operator told it, with the operator's clock at that time.
type Told struct {
	Status wire.GroupStatus
	Clock  time.Time
}

// Name is namespace/name of the group.
func (t Told) Name() string { return NameOf(t.Status.Namespace, t.Status.Group) }

func (t Told) same(o Told) bool {
	return t.Status.Group == o.Status.Group && t.Status.Namespace == o.Status.Namespace
}

// Link is the state of the stream from the operator.
type Link struct {
	Up    bool
	Route string
	// Error says why it is not up. Denied is true if this user may not use it.
	Error  string
	Denied bool
}

// Changes is what the stream said: a message of the dashboard.
type Changes struct {
	// Whole: forget what you knew.
	Whole  bool
	Groups []Told
	// Gone names groups as namespace/name.
	Gone []string
	// At is this machine's clock at the newest message, Clock the operator's; both zero if there was no message.
	At, Clock time.Time
	// Ages is how long ago, at the time Clock, the operator had last looked at each group, as far as it said so.
	Ages map[string]time.Duration
	// Link is the newest state of the stream.
	Link *Link
}

// add appends later changes to earlier ones.
func (c *Changes) add(later Changes) {
	if later.Whole {
		c.Whole, c.Groups, c.Gone, c.Ages = true, later.Groups, later.Gone, nil
		later.Groups, later.Gone = nil, nil
	}
	for _, t := range later.Groups {
		delete(c.Ages, t.Name()) // the operator has looked since
		if i := slices.IndexFunc(c.Groups, t.same); i >= 0 {
			c.Groups[i] = t
		} else {
			c.Groups = append(c.Groups, t)
		}
		c.Gone = slices.DeleteFunc(c.Gone, func(gone string) bool { return gone == t.Name() })
	}
	for _, gone := range later.Gone {
		c.Groups = slices.DeleteFunc(c.Groups, func(o Told) bool { return o.Name() == gone })
		c.Gone = append(c.Gone, gone)
	}
	if c.Ages == nil {
		c.Ages = later.Ages
	} else {
		maps.Copy(c.Ages, later.Ages)
	}
	if !later.At.IsZero() {
		c.At, c.Clock = later.At, later.Clock
	}
	if later.Link != nil {
		c.Link = later.Link
	}
}

// Objects is what the watch of the custom resources said.
type Objects struct {
	// Whole: forget what you knew.
	Whole   bool
	Changed []*v1alpha1.MysqlFailoverGroup
	Gone    []string
	// Error says why they cannot be read now; empty if they can.
	Error string
	At    time.Time
}

// NameOf returns the name of a group in this package: namespace/name.
func NameOf(namespace, name string) string { return namespace + "/" + name }
