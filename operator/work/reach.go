// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Access gives the operator's connection settings; *access.Access implements it.
type Access interface {
	Site(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, podIP string) (mysql.Target, error)
	Donor(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, source string) (mysql.Donor, error)
}

// Server is what provisioning needs from one MySQL; *mysql.DB implements it.
type Server interface {
	Status(ctx context.Context) (mysql.Status, error)
	CloneStatus(ctx context.Context) (mysql.CloneStatus, error)
	Close() error
}

// Recipient is a server that may be cloned into; *mysql.DB implements it.
type Recipient interface {
	Server
	StopReplication(ctx context.Context) error
	DropReplication(ctx context.Context) error
	Clone(ctx context.Context, donor mysql.Donor) error
	CancelClone(ctx context.Context) error
	BeginWindow(ctx context.Context) error
	EndWindow(ctx context.Context) error
}

// Rotator is a server whose master keys can be rotated; *mysql.DB implements it.
type Rotator interface {
	BeginWindow(ctx context.Context) error
	RotateMasterKeys(ctx context.Context) error
	RotateBinaryLogKey(ctx context.Context) error
	EndWindow(ctx context.Context) error
}

// Dial is mysql.Open for Options.
func Dial(t mysql.Target) (Recipient, error) { return mysql.Open(t) }

const (
	// LookTimeout bounds the queries of one look at a site.
	LookTimeout = 10 * time.Second
	// WindowMargin is added to the time that a sidecar needs to learn of a window.
	WindowMargin = 2 * time.Second
)

// ErrNotNow means that the facts do not let the work continue; the next reconcile looks again.
var ErrNotNow = errors.New("the facts do not allow it now")

// Reach is how long work connects to the servers of sites.
type Reach struct {
	Facts  scope.Facts
	Access Access
	Dial   func(mysql.Target) (Recipient, error)
}

// In returns the group as the poll loop last saw it; false if the loop has not seen it yet.
func (p Reach) In(group types.NamespacedName) (scope.GroupFacts, bool) {
	return p.Facts.Sites(group.Namespace, group.Name)
}

// Open connects to the MySQL of a site at an address.
func (p Reach) Open(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, addr string) (Recipient, error) {
	ip, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, ErrNotNow
	}
	target, err := p.Access.Site(ctx, group, site, ip)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", site, err)
	}
	// These timeouts are never longer than the loop's: no person waits here.
	target.DialTimeout, target.QueryTimeout = 3*time.Second, 5*time.Second
	return p.Dial(target)
}

// Pause waits for a duration, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
