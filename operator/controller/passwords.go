// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/report"
)

const (
	// passwordLookAge is how old an answer of the servers may be that something is decided on.
	passwordLookAge = 10 * time.Second
	// passwordPause is the least time from one look at the servers to the next.
	passwordPause = 2 * time.Second
	// passwordTimeout bounds one look, or one change.
	passwordTimeout = 20 * time.Second
	// passwordSettled is for how long a Secret has to stand until nobody goes by an older one that is only in memory.
	passwordSettled = 2 * access.SecretAge
	// passwordPrefix satisfies a server that checks passwords for kinds of letters.
	passwordPrefix = "mP1-"
)

// PasswordServer changes and tries passwords; nil in Options means MySQL itself.
type PasswordServer interface {
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
func (w *passwordWork) end(key types.NamespacedName, look passwordLook, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.groups[key]
	if j == nil {
		return
	}
	j.running, j.look, j.notBefore = false, look, time.Time{}
	if look.content != "" {
		j.notBefore = time.Now().Add(passwordPause)
		return // a look leaves standing why a change did not succeed
	}
	j.trouble = ""
	if err != nil {
		j.trouble, j.notBefore = err.Error(), time.Now().Add(retryFirst)
	}
}

// rotatePasswords takes the next step in replacing passwords.
func (r *Reconciler) rotatePasswords(ctx context.Context, s *scope) error {
	state := r.passwordState(s)
	d := passwords.Decide(state)
	r.tellPasswords(s, d)
	err := r.performPasswords(ctx, s, d)
	if apierrors.IsConflict(err) {
		s.again = min(s.again, whenOvertaken) // somebody wrote the Secret, or the group: decide anew with what stands
		return nil
	}
	return err
}

// passwordState gathers what the decision rests on.
func (r *Reconciler) passwordState(s *scope) passwords.State {
	out := passwords.State{
		Entries: entriesOf(s.accounts), Serial: serialOf(s.accounts), Fresh: s.group.Status.Epoch == 0, Open: s.open(),
		Settled: r.waits.sinceFirst(s, "passwords/"+contentOf(s.accounts)) >= passwordSettled,
	}
	out.Order, out.HasOrder = s.group.Annotations[v1alpha1.AnnotationRotatePasswords]
	look := r.passwords.get(s.key).look
	valid := look.content == contentOf(s.accounts) && look.epoch == s.facts.Epoch && s.now.Sub(look.at) < passwordLookAge
	for _, spec := range s.group.Spec.Sites {
		f := s.facts.Sites[spec.Name]
		site := passwords.Site{
			Name: spec.Name, Active: spec.Name == s.activeSite(), Provisioned: s.provisioned[spec.Name],
			Busy: s.busy[spec.Name] != "" || f.Cloning, Serial: f.PasswordSerial,
		}
		if f.Following {
			site.Receives = f.ReceiverSerial
		}
		if seen, is := look.sites[spec.Name]; is && valid {
			site.Taken, site.Trouble = seen.taken, seen.trouble
			site.Looked = seen.trouble == ""
		}
		out.Sites = append(out.Sites, site)
	}
	return out
}

// entriesOf reads the accounts Secret.
func entriesOf(secret *corev1.Secret) map[string]passwords.Entry {
	out := map[string]passwords.Entry{}
	for _, name := range passwords.Accounts {
		get := func(suffix string) string { return string(secret.Data[name+suffix]) }
		out[name] = passwords.Entry{
			Current: get(""), Known: get(v1alpha1.PasswordKnown), Next: get(v1alpha1.PasswordNext), Previous: get(v1alpha1.PasswordPrevious),
		}
	}
	return out
}

func serialOf(secret *corev1.Secret) int64 {
	n, err := strconv.ParseInt(string(secret.Data[v1alpha1.PasswordSerial]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// contentOf names a content of the Secret, in memory only.
func contentOf(secret *corev1.Secret) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		fmt.Fprintf(sum, "%s %d ", key, len(secret.Data[key]))
		_, _ = sum.Write(secret.Data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// tellPasswords puts how far it is into status. Without anything under way only what came last stands there.
func (r *Reconciler) tellPasswords(s *scope, d passwords.Decision) {
	job := r.passwords.get(s.key)
	wait := d.Wait
	if _, looks := d.Effect.(passwords.Look); !looks && d.Effect != nil && job.trouble != "" {
		wait = passwords.Wait{Reason: v1alpha1.ReasonChangeFailed, Message: "the active site did not take the change, and it is tried again: " + job.trouble}
	}
	refused := ""
	if wait.Reason == v1alpha1.ReasonPasswordRefused || wait.Reason == v1alpha1.ReasonChangeFailed {
		refused = wait.Message
	}
	r.say(s, "passwords", report.PasswordsStuck, refused)
	before := s.group.Status.Passwords
	if before == nil && d.Phase == "" && wait.Reason == "" {
		return
	}
	s.passwords = &v1alpha1.PasswordsStatus{Phase: d.Phase, Accounts: d.Accounts, Reason: wait.Reason, Message: wait.Message}
	if before != nil {
		s.passwords.FinishedAt = before.FinishedAt
	}
	if wait.Reason == v1alpha1.ReasonLooking && before != nil && before.Phase == d.Phase {
		s.passwords.Reason, s.passwords.Message = before.Reason, before.Message // a look is nothing to tell
	}
	if wait.Reason != "" || d.Effect != nil {
		// Also for a step that is to be taken: the servers may have been asked a moment ago, and nobody else wakes the group.
		s.again = min(s.again, whenMoving)
	}
}

func (r *Reconciler) performPasswords(ctx context.Context, s *scope, d passwords.Decision) error {
	switch e := d.Effect.(type) {
	case passwords.Write:
		return r.writePasswords(ctx, s, e)
	case passwords.Generate:
		return r.generatePasswords(ctx, s, e)
	case passwords.Finish:
		return r.finishPasswords(ctx, s, e)
	case passwords.Refuse:
		value := s.group.Annotations[v1alpha1.AnnotationRotatePasswords]
		if err := r.answerOrder(ctx, s, asked{v1alpha1.AnnotationRotatePasswords, value, "refused, " + e.Why}); err != nil {
			return err
		}
		r.Recorder.Emit(s.group, nil, report.PasswordsRefused, "The replacement of passwords was refused: %s", e.Why)
	case passwords.Look:
		r.askServers(s, func(ctx context.Context, q question) (passwordLook, error) { return q.look(ctx, e.Accounts), nil })
	case passwords.Introduce:
		r.askServers(s, func(ctx context.Context, q question) (passwordLook, error) {
			return passwordLook{}, q.introduce(ctx, e)
		})
	case passwords.Retire:
		r.askServers(s, func(ctx context.Context, q question) (passwordLook, error) { return passwordLook{}, q.retire(ctx, e) })
	}
	return nil
}

func (r *Reconciler) writePasswords(ctx context.Context, s *scope, e passwords.Write) error {
	if err := r.putPasswords(ctx, s, e.Entries, e.Serial); err != nil {
		return err
	}
	for _, n := range e.Notes {
		event := map[passwords.Event]report.Event{
			passwords.EventEdited: report.PasswordEdited, passwords.EventUndone: report.PasswordEditUndone, passwords.EventUnusable: report.PasswordEditUndone,
		}[n.Event]
		r.Recorder.Emit(s.group, nil, event, "Password of the account %s in Secret %s: %s", n.Account, s.accounts.Name, n.Text)
	}
	return nil
}

func (r *Reconciler) generatePasswords(ctx context.Context, s *scope, e passwords.Generate) error {
	entries := entriesOf(s.accounts)
	for _, name := range e.Accounts {
		entry := entries[name]
		entry.Next = passwordPrefix + rand.Text()
		entries[name] = entry
	}
	if err := r.putPasswords(ctx, s, entries, serialOf(s.accounts)); err != nil {
		return err
	}
	r.Recorder.Emit(s.group, nil, report.PasswordsRotating, "New passwords are given to the accounts %s", strings.Join(e.Accounts, ", "))
	return nil
}

// finishPasswords answers before it forgets: after a crash in between the servers are asked once more, and nothing is answered twice.
func (r *Reconciler) finishPasswords(ctx context.Context, s *scope, e passwords.Finish) error {
	accounts := strings.Join(e.Accounts, ", ")
	if e.Answered {
		value := s.group.Annotations[v1alpha1.AnnotationRotatePasswords]
		if err := r.answerOrder(ctx, s, asked{v1alpha1.AnnotationRotatePasswords, value, "done, the passwords of " + accounts + " were replaced"}); err != nil {
			return err
		}
	}
	r.waits.over(s, "passwords/"+contentOf(s.accounts))
	if err := r.putPasswords(ctx, s, e.Entries, serialOf(s.accounts)); err != nil {
		return err
	}
	s.passwords = &v1alpha1.PasswordsStatus{FinishedAt: &metav1.Time{Time: s.now.UTC().Truncate(time.Second)}}
	r.Recorder.Emit(s.group, nil, report.PasswordsRotated, "The passwords of the accounts %s were replaced; the former ones are refused on every site", accounts)
	return nil
}

// putPasswords writes the Secret, if it is still what was read.
func (r *Reconciler) putPasswords(ctx context.Context, s *scope, entries map[string]passwords.Entry, serial int64) error {
	before := s.accounts.DeepCopy()
	secret := s.accounts
	put := func(key, value string) {
		if value == "" {
			delete(secret.Data, key)
			return
		}
		secret.Data[key] = []byte(value)
	}
	for name, e := range entries {
		put(name, e.Current)
		put(name+v1alpha1.PasswordKnown, e.Known)
		put(name+v1alpha1.PasswordNext, e.Next)
		put(name+v1alpha1.PasswordPrevious, e.Previous)
	}
	// A Secret of an earlier version has no serial, and nothing can be told of who logs in with it.
	put(v1alpha1.PasswordSerial, strconv.FormatInt(max(serial, 1), 10))
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, secret, patch, client.FieldOwner(v1alpha1.ManagerController)); err != nil {
		s.accounts = before
		return fmt.Errorf("write passwords: %w", err)
	}
	s.again = min(s.again, whenOvertaken)
	r.nudgePods(ctx, s)
	return nil
}

// nudgePods has the kubelets look at the Secret at once: a pod that changes has its volumes looked at, otherwise it takes a minute. What
// does not succeed only takes longer.
func (r *Reconciler) nudgePods(ctx context.Context, s *scope) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.AnnotationPasswordSerial: fmt.Sprintf("%d/%s", serialOf(s.accounts), s.accounts.ResourceVersion),
	}}})
	if err != nil {
		return
	}
	for _, pod := range s.pods {
		target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		_ = r.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagerController))
	}
}

// question is what is asked of the servers beside the reconciles: a server that hangs must hold up nobody's objects.
type question struct {
	r       *Reconciler
	group   *v1alpha1.MysqlFailoverGroup
	entries map[string]passwords.Entry
	content string
	facts   GroupFacts
}

func (r *Reconciler) askServers(s *scope, do func(context.Context, question) (passwordLook, error)) {
	if r.Access == nil || !s.known {
		return
	}
	p := r.provisioner
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base == nil || p.base.Err() != nil || !r.passwords.begin(s.key) {
		return
	}
	q := question{r: r, group: s.group.DeepCopy(), entries: entriesOf(s.accounts), content: contentOf(s.accounts), facts: s.facts}
	key := s.key
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(p.base, passwordTimeout)
		defer cancel()
		look, err := do(ctx, q)
		r.passwords.end(key, look, err)
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
		ok, err := q.r.PasswordServer.Accepts(ctx, l.at(base, one.password))
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
			return q.r.PasswordServer.Introduce(ctx, l.at(base, pair.Stays), l.password(pair.Comes))
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
		err := q.forLogins(ctx, base, name, current, func(l login) error { return q.r.PasswordServer.Retire(ctx, l.at(base, current)) })
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
			there, err := q.r.PasswordServer.Accepts(ctx, l.at(base, password))
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
		return []login{{mysql.AccountClone, wire.PortMySQL, same}}
	}
}

func passwordsApply(p *v1alpha1.PasswordsStatus) *applyv1alpha1.PasswordsStatusApplyConfiguration {
	out := applyv1alpha1.PasswordsStatus()
	if p.Phase != "" {
		out.WithPhase(p.Phase)
	}
	if len(p.Accounts) > 0 {
		out.WithAccounts(p.Accounts...)
	}
	if p.Reason != "" {
		out.WithReason(p.Reason)
	}
	if p.Message != "" {
		out.WithMessage(p.Message)
	}
	if p.FinishedAt != nil {
		out.WithFinishedAt(*p.FinishedAt)
	}
	return out
}
