// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	mysqlapp "github.com/mysql-mfg/mfg/internal/mysql/application"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// ApplicationServer asks a server as the application, and has it make the database.
type ApplicationServer interface {
	See(ctx context.Context, target mysql.Target, database string) (mysqlapp.Look, error)
	Make(ctx context.Context, target mysql.Target, database string) error
}

type mysqlApplication struct{}

// See is application.See.
func (mysqlApplication) See(ctx context.Context, t mysql.Target, database string) (mysqlapp.Look, error) {
	return mysqlapp.See(ctx, t, database)
}

// Make is application.Make.
func (mysqlApplication) Make(ctx context.Context, t mysql.Target, database string) error {
	return mysqlapp.Make(ctx, t, database)
}

// applicationWork is what the servers said to applications, and what is being asked of them now. It is only memory: what is there is seen
// on the servers, and that it was made stands in status.
type applicationWork struct {
	mu     sync.Mutex
	groups map[types.NamespacedName]*applicationJob
}

type applicationJob struct {
	running bool
	// notBefore is when the servers may be asked again.
	notBefore time.Time
	// failed is why the last try to make the database did not succeed.
	failed  string
	noRight bool
	look    applicationLook
}

// applicationLook is what the servers said under one epoch and one content of the Secret. Of a try to make the database it has nothing but
// what became of that.
type applicationLook struct {
	at      time.Time
	epoch   int64
	version string
	sites   map[string]applicationSeen
	made    error
	tried   bool
}

type applicationSeen struct {
	mysqlapp.Look
	trouble string
}

func (w *applicationWork) get(key types.NamespacedName) applicationJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.groups[key]; j != nil {
		return *j
	}
	return applicationJob{}
}

func (w *applicationWork) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, key)
}

// begin is false if something is asked already, or was a moment ago.
func (w *applicationWork) begin(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = map[types.NamespacedName]*applicationJob{}
	}
	j := w.groups[key]
	if j == nil {
		j = &applicationJob{}
		w.groups[key] = j
	}
	if j.running || time.Now().Before(j.notBefore) {
		return false
	}
	j.running = true
	return true
}

// end takes what came of it. After a try to make the database nothing is known of the servers any more.
func (w *applicationWork) end(key types.NamespacedName, look applicationLook, pause Pauses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.groups[key]
	if j == nil {
		return
	}
	j.running, j.look, j.notBefore = false, look, time.Now().Add(pause.Look)
	if !look.tried {
		return // a look leaves standing why a try did not succeed
	}
	j.failed, j.noRight, j.look, j.notBefore = "", errors.Is(look.made, mysqlapp.ErrNoRight), applicationLook{}, time.Time{}
	if look.made != nil {
		j.failed, j.notBefore = look.made.Error(), time.Now().Add(pause.Retry)
	}
}

// applicationQuestion is what is asked of the servers beside the reconciles: a server that hangs must hold up nobody's objects.
type applicationQuestion struct {
	r        *Application
	group    *v1alpha1.MysqlFailoverGroup
	password string
	version  string
	facts    scope.GroupFacts
}

func (r *Application) ask(s *scope.Scope, do func(context.Context, applicationQuestion) applicationLook) {
	if r.Access == nil || !s.Known {
		return
	}
	q := applicationQuestion{
		r: r, group: s.Group.DeepCopy(), password: string(s.ApplicationSecret.Data[v1alpha1.ApplicationPassword]), version: versionOf(s.ApplicationSecret), facts: s.Facts,
	}
	key := s.Key
	r.Runner.Begin(func(context.CancelFunc) bool { return r.memory.begin(key) }, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, passwordTimeout)
		defer cancel()
		r.memory.end(key, do(ctx, q), r.Pauses)
		r.Wake(key)
	})
}

// look tries the account at every site.
func (q applicationQuestion) look(ctx context.Context) applicationLook {
	out := applicationLook{at: time.Now(), epoch: q.facts.Epoch, version: q.version, sites: map[string]applicationSeen{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, site := range q.group.Spec.Sites {
		all.Go(func() {
			var seen applicationSeen
			target, err := q.target(ctx, site.Name)
			if err == nil {
				seen.Look, err = q.r.Server.See(ctx, target, q.group.Spec.Application.Database)
			}
			if err != nil {
				seen = applicationSeen{trouble: err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			out.sites[site.Name] = seen
		})
	}
	all.Wait()
	return out
}

// create has the account make its database.
func (q applicationQuestion) create(ctx context.Context, site string) applicationLook {
	target, err := q.target(ctx, site)
	if err == nil {
		err = q.r.Server.Make(ctx, target, q.group.Spec.Application.Database)
	}
	return applicationLook{tried: true, made: err}
}

// target is the account at a site, where clients log in: it has no right to another port.
func (q applicationQuestion) target(ctx context.Context, site string) (mysql.Target, error) {
	host, _, err := net.SplitHostPort(q.facts.Sites[site].AdminAddr)
	if err != nil {
		return mysql.Target{}, fmt.Errorf("%s has no pod that runs", site)
	}
	base, err := q.r.Access.Site(ctx, q.group, site, host)
	if err != nil {
		return mysql.Target{}, err
	}
	own := login{user: q.group.Spec.Application.Account(), port: wire.PortMySQL, password: func(password string) string { return password }}
	return own.at(base, q.password), nil
}
