// SPDX-License-Identifier: Apache-2.0

// Package accounts is the shell around operator/passwords: it replaces the passwords of the operator's accounts on every site.
package accounts

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

var (
	eventPasswordsRotating  = events.Normal(v1alpha1.ReasonPasswordsRotating, "Rotate")
	eventPasswordsRotated   = events.Normal(v1alpha1.ReasonPasswordsRotated, "Rotate")
	eventPasswordsRefused   = events.Warning(v1alpha1.ReasonPasswordRotationRefused, "Refuse")
	eventPasswordsStuck     = events.Warning(v1alpha1.ReasonPasswordRotationStuck, "Retry")
	eventPasswordEdited     = events.Normal(v1alpha1.ReasonPasswordEdited, "Rotate")
	eventPasswordEditUndone = events.Warning(v1alpha1.ReasonPasswordEditUndone, "Revert")
)

const (
	// passwordLookAge is how old an answer of the servers may be that something is decided on.
	passwordLookAge = 10 * time.Second
	// SettledAfter is for how long a Secret has to stand until nobody goes by an older one that is only in memory.
	SettledAfter = 2 * access.SecretAge
)

// Options is what Passwords is made of.
type Options struct {
	Access work.Access
	// Server changes and tries passwords; nil means MySQL itself.
	Server Server
	// Runner asks the servers beside the reconciles; Wake has a group looked at.
	Runner *work.Runner
	Wake   func(types.NamespacedName)
	Pauses Pauses
}

// Passwords replaces the passwords of the operator's accounts.
type Passwords struct {
	*scope.Base
	Options
	memory passwordWork
}

// Pauses are for how long the servers are left alone.
type Pauses struct {
	// Look is the least time from one look at the servers to the next, Retry that from a change that did not succeed to the next try.
	Look, Retry time.Duration
}

// UsualPauses are those of an operator that is no test.
var UsualPauses = Pauses{Look: 2 * time.Second, Retry: 5 * time.Second}

// New makes the shell.
func New(base *scope.Base, o Options) *Passwords {
	if o.Server == nil {
		o.Server = mysqlPasswords{}
	}
	return &Passwords{Base: base, Options: o}
}

// Forget drops what is kept about a group that is gone.
func (r *Passwords) Forget(key types.NamespacedName) { r.memory.forget(key) }

// RotatePasswords takes the next step in replacing passwords.
func (r *Passwords) RotatePasswords(ctx context.Context, s *scope.Scope) error {
	state := r.passwordState(s)
	d := passwords.Decide(state)
	r.tellPasswords(s, d)
	err := r.performPasswords(ctx, s, d)
	if apierrors.IsConflict(err) {
		s.Again = min(s.Again, scope.WhenOvertaken) // somebody wrote the Secret, or the group: decide again with what stands
		return nil
	}
	return err
}

// passwordState gathers what the decision rests on.
func (r *Passwords) passwordState(s *scope.Scope) passwords.State {
	out := passwords.State{
		Entries: entriesOf(s.Accounts), Serial: serialOf(s.Accounts), Fresh: s.Group.Status.Epoch == 0, Open: s.Open(),
		Settled: r.Waits.SinceFirst(s, Settling(s.Accounts)) >= SettledAfter, MadeFor: orderOf(s.Accounts),
	}
	order, set := asks.Open(s.Group, v1alpha1.RequestRotatePasswords)
	// An order gets an ID before anything is done for it, so that nothing else is taken for what was done for it.
	out.Order, out.OrderID, out.HasOrder = order.Value, order.ID, set && order.ID != ""
	look := r.memory.get(s.Key).look
	valid := look.content == contentOf(s.Accounts) && look.epoch == s.Facts.Epoch && s.Now.Sub(look.at) < passwordLookAge
	for _, spec := range s.Group.Spec.Sites {
		if s.Refused[spec.Name] {
			continue // it has no MySQL, and is made with the passwords that there are by then
		}
		f := s.Facts.Sites[spec.Name]
		site := passwords.Site{
			Name: spec.Name, Active: spec.Name == s.ActiveSite(), Provisioned: s.Provisioned[spec.Name],
			Busy: s.Busy[spec.Name] != "" || f.Cloning, Serial: f.PasswordSerial,
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

// tellPasswords puts how far it is into status. Without anything under way only what came last stands there.
func (r *Passwords) tellPasswords(s *scope.Scope, d passwords.Decision) {
	job := r.memory.get(s.Key)
	wait := d.Wait
	if _, looks := d.Effect.(passwords.Look); !looks && d.Effect != nil && job.trouble != "" {
		wait = passwords.Wait{Reason: v1alpha1.ReasonChangeFailed, Message: "the active site did not take the change, and it is tried again: " + job.trouble}
	}
	refused := ""
	if wait.Reason == v1alpha1.ReasonPasswordRefused || wait.Reason == v1alpha1.ReasonChangeFailed {
		refused = wait.Message
	}
	r.Say(s, "passwords", eventPasswordsStuck, refused)
	before := s.Group.Status.Passwords
	if before == nil && d.Phase == "" && wait.Reason == "" {
		return
	}
	s.Passwords = &v1alpha1.PasswordsStatus{Phase: d.Phase, Accounts: d.Accounts, Reason: wait.Reason, Message: wait.Message}
	if before != nil {
		s.Passwords.FinishedAt = before.FinishedAt
	}
	if wait.Reason == v1alpha1.ReasonLooking && before != nil && before.Phase == d.Phase {
		s.Passwords.Reason, s.Passwords.Message = before.Reason, before.Message // a look is nothing to tell
	}
	if wait.Reason != "" || d.Effect != nil {
		// Also for a step that is to be taken: the servers may have been asked a moment ago, and nobody else wakes the group.
		s.Again = min(s.Again, scope.WhenMoving)
	}
}

func (r *Passwords) performPasswords(ctx context.Context, s *scope.Scope, d passwords.Decision) error {
	switch e := d.Effect.(type) {
	case passwords.Write:
		return r.writePasswords(ctx, s, e)
	case passwords.Generate:
		return r.generatePasswords(ctx, s, e)
	case passwords.Finish:
		return r.finishPasswords(ctx, s, e)
	case passwords.Refuse:
		value := s.Group.Annotations[v1alpha1.AnnotationRotatePasswords]
		if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRotatePasswords, value, asks.Refused(v1alpha1.AnswerUnknownAccount, e.Why)); err != nil {
			return err
		}
		r.Recorder.Emit(s.Group, nil, eventPasswordsRefused, "The replacement of passwords was refused: %s", e.Why)
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

func (r *Passwords) writePasswords(ctx context.Context, s *scope.Scope, e passwords.Write) error {
	if err := r.putPasswords(ctx, s, content{e.Entries, e.Serial, orderOf(s.Accounts)}); err != nil {
		return err
	}
	for _, n := range e.Notes {
		event := map[passwords.Event]events.Event{
			passwords.EventEdited: eventPasswordEdited, passwords.EventUndone: eventPasswordEditUndone, passwords.EventUnusable: eventPasswordEditUndone,
		}[n.Event]
		r.Recorder.Emit(s.Group, nil, event, "Password of the account %s in Secret %s: %s", n.Account, s.Accounts.Name, n.Text)
	}
	return nil
}

func (r *Passwords) generatePasswords(ctx context.Context, s *scope.Scope, e passwords.Generate) error {
	entries := entriesOf(s.Accounts)
	for _, name := range e.Accounts {
		entry := entries[name]
		entry.Next = v1alpha1.PasswordPrefix + rand.Text()
		entries[name] = entry
	}
	if err := r.putPasswords(ctx, s, content{entries, serialOf(s.Accounts), e.OrderID}); err != nil {
		return err
	}
	r.Recorder.Emit(s.Group, nil, eventPasswordsRotating, "New passwords are given to the accounts %s", strings.Join(e.Accounts, ", "))
	return nil
}

// finishPasswords answers before it forgets: after a crash in between the servers are asked once more, and nothing is answered twice.
func (r *Passwords) finishPasswords(ctx context.Context, s *scope.Scope, e passwords.Finish) error {
	accounts := strings.Join(e.Accounts, ", ")
	if e.Answered {
		value := s.Group.Annotations[v1alpha1.AnnotationRotatePasswords]
		if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRotatePasswords, value, asks.Done("the passwords of "+accounts+" were replaced")); err != nil {
			return err
		}
	}
	r.Waits.Over(s, Settling(s.Accounts))
	if err := r.putPasswords(ctx, s, content{entries: e.Entries, serial: serialOf(s.Accounts)}); err != nil {
		return err
	}
	s.Passwords = &v1alpha1.PasswordsStatus{FinishedAt: &metav1.Time{Time: s.Now.UTC().Truncate(time.Second)}}
	r.Recorder.Emit(s.Group, nil, eventPasswordsRotated, "The passwords of the accounts %s were replaced; the former ones are refused on every site", accounts)
	return nil
}

// Apply is what status says of the passwords.
func Apply(p *v1alpha1.PasswordsStatus) *applyv1alpha1.PasswordsStatusApplyConfiguration {
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
