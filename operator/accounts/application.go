// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	mysqlapp "github.com/mysql-mfg/mfg/internal/mysql/application"
	"github.com/mysql-mfg/mfg/operator/application"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

var (
	eventApplicationMade    = events.Normal(v1alpha1.ReasonApplicationMade, "Create")
	eventApplicationRefused = events.Warning(v1alpha1.ReasonApplicationRefused, "Wait")
	eventApplicationFailed  = events.Warning(v1alpha1.ReasonApplicationFailed, "Retry")
	eventApplicationSecret  = events.Warning(v1alpha1.ReasonApplicationSecret, "Wait")
)

// errSecretGone keeps another Secret from being made: its password would fit no server.
var errSecretGone = errors.New("the Secret of the application is gone")

// ApplicationOptions is what an Application is made of.
type ApplicationOptions struct {
	Access work.Access
	// Server is asked as the application; nil means MySQL itself.
	Server ApplicationServer
	// Runner asks the servers beside the reconciles; Wake has a group looked at.
	Runner *work.Runner
	Wake   func(types.NamespacedName)
	Pauses Pauses
	// Secret returns a Secret with the labels and the owner of the group, made if there is none.
	Secret func(ctx context.Context, s *scope.Scope, name string, make func() (*corev1.Secret, error)) (*corev1.Secret, error)
}

// Application is the shell around operator/application: it has the database of an application made.
type Application struct {
	*scope.Base
	ApplicationOptions
	memory applicationWork
}

// NewApplication makes the shell.
func NewApplication(base *scope.Base, o ApplicationOptions) *Application {
	if o.Server == nil {
		o.Server = mysqlApplication{}
	}
	return &Application{Base: base, ApplicationOptions: o}
}

// Forget drops what is kept about a group that is gone.
func (r *Application) Forget(key types.NamespacedName) { r.memory.forget(key) }

// KeepSecret makes the Secret of the application, before any pod: the sites make the account with what is in it.
func (r *Application) KeepSecret(ctx context.Context, s *scope.Scope) error {
	spec := s.Group.Spec.Application
	if spec == nil {
		return nil
	}
	name := v1alpha1.ApplicationSecret(s.Key.Name)
	err := r.keep(ctx, s, spec, name)
	if !apply.NeedsAPerson(err) {
		return err
	}
	s.ApplicationTrouble = fmt.Sprintf("Secret %s cannot be used: %v", name, err)
	if s.Group.Status.Epoch > 0 {
		// MySQL needs no application: what is wrong with this Secret holds up no certificate, no update and no new site of a group that runs.
		return nil
	}
	// The sites of a new group make the account with their data directory, and never again.
	r.tell(s, application.Decide(r.state(s, spec)))
	s.Progress(scope.Stuck(v1alpha1.ReasonApplicationSecret, s.ApplicationTrouble), scope.WhenWaiting)
	return scope.ErrStop
}

// keep reads or makes the Secret, and adds what it lacks.
func (r *Application) keep(ctx context.Context, s *scope.Scope, spec *v1alpha1.ApplicationSpec, name string) error {
	secret, err := r.Secret(ctx, s, name, func() (*corev1.Secret, error) {
		if s.Application != nil {
			return nil, errSecretGone
		}
		out := render.RootSecret(s.In, "")
		out.Name, out.Data = name, secretOf(s.Key, spec, &corev1.Secret{})
		return out, nil
	})
	if errors.Is(err, errSecretGone) {
		return nil // told when the database is looked at
	}
	if err != nil {
		return err
	}
	s.ApplicationSecret = secret
	return r.complete(ctx, s, spec)
}

// complete adds the keys that a person's own Secret lacks. What a person wrote stays. A password that is lost is not made up once the account was
// seen with it: another one would fit no server.
func (r *Application) complete(ctx context.Context, s *scope.Scope, spec *v1alpha1.ApplicationSpec) error {
	if s.Application != nil && len(s.ApplicationSecret.Data[v1alpha1.ApplicationPassword]) == 0 {
		return nil
	}
	before := s.ApplicationSecret.DeepCopy()
	data := secretOf(s.Key, spec, before)
	if maps.EqualFunc(data, before.Data, bytes.Equal) {
		return nil
	}
	s.ApplicationSecret.Data = data
	err := r.Client.Patch(ctx, s.ApplicationSecret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.ManagerController))
	if apierrors.IsConflict(err) {
		s.ApplicationSecret, s.Again = before, min(s.Again, scope.WhenOvertaken) // somebody wrote it: look at what stands
		return nil
	}
	if err != nil {
		s.ApplicationSecret = before // what stands there
		return fmt.Errorf("write the Secret of the application: %w", err)
	}
	return nil
}

// MakeDatabase takes the next step towards the database.
func (r *Application) MakeDatabase(_ context.Context, s *scope.Scope) error {
	spec := s.Group.Spec.Application
	if spec == nil {
		return nil
	}
	d := application.Decide(r.state(s, spec))
	r.tell(s, d)
	switch e := d.Effect.(type) {
	case application.Look:
		r.ask(s, func(ctx context.Context, q applicationQuestion) applicationLook { return q.look(ctx) })
	case application.Make:
		r.ask(s, func(ctx context.Context, q applicationQuestion) applicationLook { return q.create(ctx, e.Site) })
	case application.Note:
		s.Application = &v1alpha1.ApplicationStatus{Database: spec.Database, User: spec.Account(), MadeAt: &metav1.Time{Time: s.Now.UTC().Truncate(time.Second)}}
		r.Recorder.Emit(s.Group, nil, eventApplicationMade, "The database %s and its account %s were made; Secret %s has the password", spec.Database, spec.Account(), v1alpha1.ApplicationSecret(s.Key.Name))
		s.Again = min(s.Again, scope.WhenOvertaken)
	}
	return nil
}

// state gathers what the decision rests on.
func (r *Application) state(s *scope.Scope, spec *v1alpha1.ApplicationSpec) application.State {
	out := application.State{
		Group: s.Key.Name, Namespace: s.Key.Namespace, User: spec.Account(), Database: spec.Database, Made: s.Application != nil,
		Secret: wrong(s, spec), Open: s.Open(),
	}
	if s.ApplicationSecret != nil {
		own := mysqlapp.Account{User: spec.Account(), Database: spec.Database, Password: string(s.ApplicationSecret.Data[v1alpha1.ApplicationPassword])}
		if err := own.Validate(); err != nil {
			out.Unmade = err.Error()
		}
	}
	job := r.memory.get(s.Key)
	out.Failed, out.NoRight = job.failed, job.noRight
	valid := job.look.epoch == s.Facts.Epoch && s.Now.Sub(job.look.at) < passwordLookAge && job.look.version == versionOf(s.ApplicationSecret)
	for _, site := range s.Group.Spec.Sites {
		one := application.Site{Name: site.Name, Active: site.Name == s.ActiveSite(), Provisioned: s.Provisioned[site.Name]}
		if seen, is := job.look.sites[site.Name]; is && valid {
			one.Looked, one.Trouble, one.Accepts, one.Database = seen.trouble == "", seen.trouble, seen.Accepts, seen.Database
		}
		out.Sites = append(out.Sites, one)
	}
	return out
}

// wrong says why the Secret is of no use; empty if it is.
func wrong(s *scope.Scope, spec *v1alpha1.ApplicationSpec) string {
	name := v1alpha1.ApplicationSecret(s.Key.Name)
	switch {
	case s.ApplicationTrouble != "":
		return s.ApplicationTrouble
	case s.ApplicationSecret == nil:
		return fmt.Sprintf("Secret %s is gone, and with it the password of %s: restore it from a backup, or make it again with the keys username and password, and give that "+
			"password to the account with ALTER USER", name, spec.Account())
	case len(s.ApplicationSecret.Data[v1alpha1.ApplicationPassword]) == 0:
		return fmt.Sprintf("the key password of Secret %s is empty: write the password of %s there, or another one that you give it with ALTER USER", name, spec.Account())
	case string(s.ApplicationSecret.Data[v1alpha1.ApplicationUsername]) != spec.Account():
		return fmt.Sprintf("the key username of Secret %s is not %s, as spec.application has it: correct the Secret", name, spec.Account())
	case string(s.ApplicationSecret.Data[v1alpha1.ApplicationDatabase]) != spec.Database:
		return fmt.Sprintf("the key database of Secret %s is not %s, as spec.application has it: correct the Secret", name, spec.Database)
	}
	return ""
}

func versionOf(secret *corev1.Secret) string {
	if secret == nil {
		return ""
	}
	return string(secret.UID) + "/" + secret.ResourceVersion
}

// tell says in the condition how far it is. A look is nothing to tell: what was said before stands until there is an answer.
func (r *Application) tell(s *scope.Scope, d application.Decision) {
	message := d.Message
	if d.Remedy.Text != "" {
		message += ": " + d.Remedy.Text + ": " + d.Remedy.Command
	}
	before := condition(s)
	switch {
	case d.Reason == v1alpha1.ReasonLooking && before != nil:
		s.Keep(before)
	case d.Ready:
		s.Condition(conditions.True(v1alpha1.ConditionApplicationReady, d.Reason, message))
	default:
		s.Condition(conditions.False(v1alpha1.ConditionApplicationReady, d.Reason, message))
	}
	for reason, event := range map[v1alpha1.Reason]events.Event{
		v1alpha1.ReasonApplicationRefused: eventApplicationRefused, v1alpha1.ReasonApplicationFailed: eventApplicationFailed,
		v1alpha1.ReasonApplicationSecret: eventApplicationSecret,
	} {
		switch d.Reason {
		case reason:
			r.Say(s, "application", event, message)
		case v1alpha1.ReasonLooking:
		default:
			r.Say(s, "application", event, "")
		}
	}
	if !d.Ready {
		// Nobody else wakes the group once the servers may be asked again, or a site was opened.
		s.Again = min(s.Again, scope.WhenWaiting)
	}
}

func condition(s *scope.Scope) *metav1.Condition {
	for i, c := range s.Group.Status.Conditions {
		if c.Type == v1alpha1.ConditionApplicationReady {
			return &s.Group.Status.Conditions[i]
		}
	}
	return nil
}

// ApplyApplication is what status says of the application.
func ApplyApplication(a *v1alpha1.ApplicationStatus) *applyv1alpha1.ApplicationStatusApplyConfiguration {
	out := applyv1alpha1.ApplicationStatus().WithDatabase(a.Database).WithUser(a.User)
	if a.MadeAt != nil {
		out.WithMadeAt(*a.MadeAt)
	}
	return out
}
