// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// passwordTimeout bounds one look at the servers, or one change.
const passwordTimeout = 20 * time.Second

// Server changes and tries passwords; nil in Options means MySQL itself.
type Server interface {
	Accepts(ctx context.Context, target mysql.Target) (bool, error)
	Introduce(ctx context.Context, target mysql.Target, next string) error
	Retire(ctx context.Context, target mysql.Target) error
}

type mysqlPasswords struct{}

// Accepts is mysql.Accepts.
func (mysqlPasswords) Accepts(ctx context.Context, t mysql.Target) (bool, error) {
	return mysql.Accepts(ctx, t)
}

// Introduce is mysql.IntroducePassword.
func (mysqlPasswords) Introduce(ctx context.Context, t mysql.Target, next string) error {
	return mysql.IntroducePassword(ctx, t, next)
}

// Retire is mysql.RetirePasswords.
func (mysqlPasswords) Retire(ctx context.Context, t mysql.Target) error {
	return mysql.RetirePasswords(ctx, t)
}

// passwordWork is what the servers said of passwords, and what is being asked of them now. It is only memory: what is under way
// stands in the Secret.
type passwordWork struct {
	mu     sync.Mutex
	groups map[types.NamespacedName]*passwordJob
}

type passwordJob struct {
	running bool
	// notBefore is when the servers may be asked again.
	notBefore time.Time
	// trouble is why the last change did not succeed.
	trouble string
	look    passwordLook
}

// passwordLook is what the servers take of one content of the Secret, under one epoch.
type passwordLook struct {
	content string
	epoch   int64
	at      time.Time
	sites   map[string]siteLook
}

type siteLook struct {
	taken   map[string]passwords.Taken
	trouble string
}

func (w *passwordWork) get(key types.NamespacedName) passwordJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.groups[key]; j != nil {
		return *j
	}
	return passwordJob{}
}

func (w *passwordWork) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, key)
}

// begin is false if something is asked already, or was a moment ago.
func (w *passwordWork) begin(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = map[types.NamespacedName]*passwordJob{}
	}
	j := w.groups[key]
	if j == nil {
		j = &passwordJob{}
		w.groups[key] = j
	}
	if j.running || time.Now().Before(j.notBefore) {
		return false
	}
	j.running = true
	return true
}

// end takes what came of it. After a change nothing is known of the servers any more.
func (w *passwordWork) end(key types.NamespacedName, look passwordLook, err error, pause Pauses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.groups[key]
	if j == nil {
		return
	}
	j.running, j.look, j.notBefore = false, look, time.Time{}
	if look.content != "" {
		j.notBefore = time.Now().Add(pause.Look)
		return // a look leaves standing why a change did not succeed
	}
	j.trouble = ""
	if err != nil {
		j.trouble, j.notBefore = err.Error(), time.Now().Add(pause.Retry)
	}
}

// question is what is asked of the servers beside the reconciles: a server that hangs must hold up nobody's objects.
type question struct {
	r       *Passwords
	group   *v1alpha1.MysqlFailoverGroup
	entries map[string]passwords.Entry
	content string
	facts   scope.GroupFacts
}

func (r *Passwords) askServers(s *scope.Scope, do func(context.Context, question) (passwordLook, error)) {
	if r.Access == nil || !s.Known {
		return
	}
	q := question{r: r, group: s.Group.DeepCopy(), entries: entriesOf(s.Accounts), content: contentOf(s.Accounts), facts: s.Facts}
	key := s.Key
	r.Runner.Begin(func(context.CancelFunc) bool { return r.memory.begin(key) }, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, passwordTimeout)
		defer cancel()
		look, err := do(ctx, q)
		r.memory.end(key, look, err, r.Pauses)
		r.Wake(key)
	})
}

// look tries every password at every site.
func (q question) look(ctx context.Context, accounts []string) passwordLook {
	out := passwordLook{content: q.content, epoch: q.facts.Epoch, at: time.Now(), sites: map[string]siteLook{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, site := range q.group.Spec.Sites {
		all.Go(func() {
			taken, err := q.try(ctx, site.Name, accounts)
			seen := siteLook{taken: taken}
			if err != nil {
				seen = siteLook{trouble: err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			out.sites[site.Name] = seen
		})
	}
	all.Wait()
	return out
}

func (q question) try(ctx context.Context, site string, accounts []string) (map[string]passwords.Taken, error) {
	base, err := q.target(ctx, site)
	if err != nil {
		return nil, err
	}
	out := map[string]passwords.Taken{}
	for _, name := range accounts {
		e := q.entries[name]
		var all passwords.Taken
		for i, l := range loginsOf(name) {
			one, err := q.taken(ctx, base, l, e)
			if err != nil {
				return nil, err
			}
			switch {
			case i == 0:
				all = one
			case one != (passwords.Taken{}): // an account that takes none of them is not there yet, and is made with the right one
				all = passwords.Taken{Current: all.Current && one.Current, Next: all.Next && one.Next, Previous: all.Previous || one.Previous}
			}
		}
		out[name] = all
	}
	return out, nil
}

func (q question) taken(ctx context.Context, base mysql.Target, l login, e passwords.Entry) (passwords.Taken, error) {
	var out passwords.Taken
	for _, one := range []struct {
		password string
		into     *bool
	}{{e.Current, &out.Current}, {e.Next, &out.Next}, {e.Previous, &out.Previous}} {
		if one.password == "" {
			continue
		}
		ok, err := q.r.Server.Accepts(ctx, l.at(base, one.password))
		if err != nil {
			return passwords.Taken{}, err
		}
		*one.into = ok
	}
	return out, nil
}

// introduce gives the active site second passwords.
func (q question) introduce(ctx context.Context, e passwords.Introduce) error {
	base, err := q.target(ctx, e.Site)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		pair := e.Secrets[name]
		err := q.forLogins(ctx, base, name, pair.Stays, func(l login) error {
			return q.r.Server.Introduce(ctx, l.at(base, pair.Stays), l.password(pair.Comes))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retire takes the former passwords from the active site.
func (q question) retire(ctx context.Context, e passwords.Retire) error {
	base, err := q.target(ctx, e.Site)
	if err != nil {
		return err
	}
	for _, name := range e.Accounts {
		current := q.entries[name].Current
		err := q.forLogins(ctx, base, name, current, func(l login) error { return q.r.Server.Retire(ctx, l.at(base, current)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// forLogins does something with the account, and with those that follow from it where they take the password.
func (q question) forLogins(ctx context.Context, base mysql.Target, name, password string, do func(login) error) error {
	for i, l := range loginsOf(name) {
		if i > 0 {
			there, err := q.r.Server.Accepts(ctx, l.at(base, password))
			if err != nil {
				return err
			}
			if !there {
				continue
			}
		}
		if err := do(l); err != nil {
			return err
		}
	}
	return nil
}

// target is how to reach a site, without an account.
func (q question) target(ctx context.Context, site string) (mysql.Target, error) {
	host, _, err := net.SplitHostPort(q.facts.Sites[site].AdminAddr)
	if err != nil {
		return mysql.Target{}, fmt.Errorf("%s has no pod that runs", site)
	}
	return q.r.Access.Site(ctx, q.group, site, host)
}

// login is an account of MySQL that belongs to an account of the Secret.
type login struct {
	user string
	port int
	// password is that of the account, made from the one in the Secret.
	password func(string) string
}

// at is the account at a server.
func (l login) at(base mysql.Target, password string) mysql.Target {
	host, _, err := net.SplitHostPort(base.Addr)
	if err == nil {
		base.Addr = net.JoinHostPort(host, strconv.Itoa(l.port))
	}
	base.User, base.Password, base.Passwords = l.user, l.password(password), nil
	return base
}

func loginsOf(name string) []login {
	same := func(password string) string { return password }
	switch name {
	case v1alpha1.AccountOperator:
		return []login{{mysql.AccountOperator, wire.PortMySQLAdmin, same}}
	case v1alpha1.AccountSidecar:
		return []login{{mysql.AccountSidecar, wire.PortMySQLAdmin, same}, {mysql.AccountProbe, wire.PortMySQL, mysql.ProbePassword}}
	case v1alpha1.AccountReplication:
		return []login{{mysql.AccountReplication, wire.PortMySQL, same}}
	default:
		return []login{{mysql.AccountClone, wire.PortMySQL, same}, {mysql.AccountBackup, wire.PortMySQL, mysql.BackupPassword}}
	}
}
