// SPDX-License-Identifier: Apache-2.0

// Package worktest is a fake, for tests, of what long work sees of a mysqld.
package worktest

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

// Server is a fake of what provisioning sees of a mysqld.
type Server struct {
	mu      sync.Mutex
	Answers mysql.Status
	Last    mysql.CloneStatus
	Down    bool
	// OnClone does what CLONE INSTANCE does.
	OnClone func(s *Server) error
	// OnRotate does what a rotation of the master keys does.
	OnRotate func() error
	Calls    []string
	Opened   int
	// Cancelled is true once a running clone was cancelled.
	Cancelled bool
	// Stopped runs while replication is being stopped.
	Stopped func()
	// Hangs is true if its clones cannot be cancelled, Deaf if it says that they were, and goes on.
	Hangs, Deaf bool
}

// note notes a call.
func (s *Server) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls = append(s.Calls, call)
}

// With changes the server.
func (s *Server) With(f func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// Status implements work.Server.
func (s *Server) Status(context.Context) (mysql.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Down {
		return mysql.Status{}, errors.New("connection refused")
	}
	return s.Answers, nil
}

// CloneStatus implements work.Server.
func (s *Server) CloneStatus(context.Context) (mysql.CloneStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Down {
		return mysql.CloneStatus{}, errors.New("connection refused")
	}
	return s.Last, nil
}

// Clone notes the donor, and does what the test wants.
func (s *Server) Clone(_ context.Context, d mysql.Donor) error {
	s.note("clone from " + d.Host)
	return s.OnClone(s)
}

// CancelClone ends a clone as KILL QUERY does.
func (s *Server) CancelClone(context.Context) error {
	s.note("cancel")
	if s.isHung() {
		time.Sleep(10 * time.Second)
		return mysql.ErrCloneHangs
	}
	s.With(func(s *Server) {
		if s.Last.State == "In Progress" && !s.Deaf {
			s.Last = mysql.CloneStatus{State: "Failed", ErrorNo: 1317, Message: "interrupted"}
			s.Cancelled = true
		}
	})
	return nil
}

// StopReplication implements work.Recipient.
func (s *Server) StopReplication(context.Context) error {
	s.note("stop replication")
	if s.Stopped != nil {
		s.Stopped()
	}
	return nil
}

// DropReplication implements work.Recipient.
func (s *Server) DropReplication(context.Context) error { s.note("drop replication"); return nil }

// BeginWindow implements work.Recipient.
func (s *Server) BeginWindow(context.Context) error { s.note("begin window"); return nil }

// EndWindow implements work.Recipient.
func (s *Server) EndWindow(context.Context) error { s.note("end window"); return nil }

// Close implements work.Server.
func (s *Server) Close() error { s.With(func(s *Server) { s.Opened-- }); return nil }

// Completes restarts the server with the donor's data after a while, as CLONE does.
func Completes(data gtid.Set, after time.Duration, result error) func(*Server) error {
	return func(s *Server) error {
		s.With(func(s *Server) { s.Last, s.Cancelled = mysql.CloneStatus{State: "In Progress"}, false })
		go func() {
			time.Sleep(after)
			if stopped := s.isCancelled(); stopped {
				return
			}
			s.With(func(s *Server) { s.Down = true })
			time.Sleep(3 * time.Second)
			s.With(func(s *Server) {
				s.Down, s.Last = false, mysql.CloneStatus{State: "Completed"}
				s.Answers = mysql.Status{ReadOnly: true, SuperReadOnly: true, Executed: data}
			})
		}()
		return result
	}
}

func (s *Server) isHung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Hangs
}

func (s *Server) isCancelled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Cancelled
}

// Access reaches every site at its address.
type Access struct{}

// Site implements work.Access.
func (Access) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, _, ip string) (mysql.Target, error) {
	return mysql.Target{Addr: net.JoinHostPort(ip, "33062"), User: "mfg_operator"}, nil
}

// Donor implements work.Access.
func (Access) Donor(_ context.Context, g *v1alpha1.MysqlFailoverGroup, site string) (mysql.Donor, error) {
	return mysql.Donor{Host: v1alpha1.SiteName(g.Name, site), Port: 3306, User: "mfg_clone"}, nil
}

// RotateMasterKeys rotates, unless a test says otherwise.
func (s *Server) RotateMasterKeys(context.Context) error {
	s.note("rotate")
	if s.OnRotate != nil {
		return s.OnRotate()
	}
	return nil
}

// RotateBinaryLogKey rotates, unless a test says otherwise.
func (s *Server) RotateBinaryLogKey(context.Context) error {
	s.note("rotate the rest")
	if s.OnRotate != nil {
		return s.OnRotate()
	}
	return nil
}
