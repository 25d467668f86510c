// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// server is a mysqld as far as provisioning sees it.
type server struct {
	mu     sync.Mutex
	status mysql.Status
	last   mysql.CloneStatus
	down   bool
	// clone is what CLONE INSTANCE does here.
	clone func(s *server) error
	// rotate is what a rotation of the master keys does here.
	rotate func() error
	calls  []string
	opened int
	// cancelled is true once the clone that ran was cancelled.
	cancelled bool
	// stopped is what happens while its replication is stopped.
	stopped func()
	// hangs is true if its clones cannot be cancelled.
	hangs bool
}

// note notes a call.
func (s *server) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// with changes the server.
func (s *server) with(f func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// Status implements work.Server.
func (s *server) Status(context.Context) (mysql.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return mysql.Status{}, errors.New("connection refused")
	}
	return s.status, nil
}

// CloneStatus implements work.Server.
func (s *server) CloneStatus(context.Context) (mysql.CloneStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return mysql.CloneStatus{}, errors.New("connection refused")
	}
	return s.last, nil
}

// Clone notes where from, and does what the test wants.
func (s *server) Clone(_ context.Context, d mysql.Donor) error {
	s.note("clone from " + d.Host)
	return s.clone(s)
}

// CancelClone ends a clone as KILL QUERY does.
func (s *server) CancelClone(context.Context) error {
	s.note("cancel")
	if s.isHung() {
		time.Sleep(10 * time.Second)
		return mysql.ErrCloneHangs
	}
	s.with(func(s *server) {
		if s.last.State == "In Progress" {
			s.last = mysql.CloneStatus{State: "Failed", ErrorNo: 1317, Message: "interrupted"}
			s.cancelled = true
		}
	})
	return nil
}

// StopReplication implements work.Recipient.
func (s *server) StopReplication(context.Context) error {
	s.note("stop replication")
	if s.stopped != nil {
		s.stopped()
	}
	return nil
}

// DropReplication implements work.Recipient.
func (s *server) DropReplication(context.Context) error { s.note("drop replication"); return nil }

// BeginWindow implements work.Recipient.
func (s *server) BeginWindow(context.Context) error { s.note("begin window"); return nil }

// EndWindow implements work.Recipient.
func (s *server) EndWindow(context.Context) error { s.note("end window"); return nil }

// Close implements work.Server.
func (s *server) Close() error { s.with(func(s *server) { s.opened-- }); return nil }

// completes restarts the server with the donor's data after a while, as CLONE does.
func completes(data gtid.Set, after time.Duration, result error) func(*server) error {
	return func(s *server) error {
		s.with(func(s *server) { s.last, s.cancelled = mysql.CloneStatus{State: "In Progress"}, false })
		go func() {
			time.Sleep(after)
			if stopped := s.isCancelled(); stopped {
				return
			}
			s.with(func(s *server) { s.down = true })
			time.Sleep(3 * time.Second)
			s.with(func(s *server) {
				s.down, s.last = false, mysql.CloneStatus{State: "Completed"}
				s.status = mysql.Status{ReadOnly: true, SuperReadOnly: true, Executed: data}
			})
		}()
		return result
	}
}

func (s *server) isHung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hangs
}

func (s *server) isCancelled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled
}

// fakeAccess reaches every site at its address.
type fakeAccess struct{}

// Site implements work.Access.
func (fakeAccess) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, _, ip string) (mysql.Target, error) {
	return mysql.Target{Addr: net.JoinHostPort(ip, "33062"), User: "mfg_operator"}, nil
}

// Donor implements work.Access.
func (fakeAccess) Donor(_ context.Context, g *v1alpha1.MysqlFailoverGroup, site string) (mysql.Donor, error) {
	return mysql.Donor{Host: v1alpha1.SiteName(g.Name, site), Port: 3306, User: "mfg_clone"}, nil
}

// RotateMasterKeys rotates, unless a test says otherwise.
func (s *server) RotateMasterKeys(context.Context) error {
	s.note("rotate")
	if s.rotate != nil {
		return s.rotate()
	}
	return nil
}
