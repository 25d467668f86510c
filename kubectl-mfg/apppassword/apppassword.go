// SPDX-License-Identifier: Apache-2.0

// Package apppassword replaces the password of a group's application: every site lets the account in with two passwords until a person says that all
// applications have the new one. The operator has no right to do that; the person has it, by the password of root.
package apppassword

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Op is what both commands share.
type Op struct {
	request.Request
	// random makes a password; a test may replace it.
	random func() string
}

// Rotate is `kubectl mfg app-password rotate`.
type Rotate struct {
	Op
	// Without are sites that the command does not wait for.
	Without []string
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	if op.DryRun == request.DryRunServer {
		return errors.New("--dry-run=server is not possible: most of it happens in MySQL; use --dry-run=client")
	}
	return op.Request.Validate()
}

const (
	// lookEvery is how often the command asks the sites that it waits for.
	lookEvery = time.Second
	// stepsMost bounds the steps without a wait; a replacement has three, and begins again if another writer was faster.
	stepsMost   = 12
	passwordMax = 256
)

// world is what each step reads again: the role may move, and others write the Secret.
type world struct {
	op           *Op
	c            mysqlclient.Cluster
	group        *v1alpha1.MysqlFailoverGroup
	secret       *corev1.Secret
	rootPassword string
	active       server
}

func (op *Op) read(ctx context.Context, c mysqlclient.Cluster) (*world, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return nil, err
	}
	switch {
	case g.Spec.Application == nil:
		return nil, cli.Refused("refused: %s has no application (spec.application), so it has no such password\n  for an account of your own: ALTER USER ... IDENTIFIED BY ... RETAIN CURRENT PASSWORD in kubectl mfg mysql %s -n %s", op.Group, op.Group, op.Namespace)
	case g.Status.Application == nil:
		return nil, cli.Refused("refused: the account of %s is still being made; its password may be replaced after that\n  see how far it is: kubectl -n %s wait mfg/%s --for=condition=ApplicationReady", op.Group, op.Namespace, op.Group)
	}
	w := &world{op: op, c: c, group: g}
	if w.secret, err = op.secretOf(ctx, c, v1alpha1.ApplicationSecret(op.Group)); err != nil {
		return nil, err
	}
	if got, want := string(w.secret.Data[v1alpha1.ApplicationUsername]), g.Spec.Application.Account(); got != want {
		return nil, cli.Refused("refused: the key username of Secret %s is not %s, as spec.application has it\n  correct the Secret", w.secret.Name, want)
	}
	rootSecret, err := op.secretOf(ctx, c, v1alpha1.RootSecret(op.Group))
	if err != nil {
		return nil, err
	}
	w.rootPassword = string(rootSecret.Data[v1alpha1.ApplicationPassword])
	for key, text := range map[string]string{"password": w.password(), "next-password": w.next(), "password of root": w.rootPassword} {
		if !fits(text) {
			return nil, cli.Refused("refused: the %s in the Secrets of %s is longer than %d characters, or holds something else than printable ASCII\n  correct the Secret", key, op.Group, passwordMax)
		}
	}
	w.active, err = w.server(ctx, "")
	return w, err
}

func (op *Op) secretOf(ctx context.Context, c mysqlclient.Cluster, name string) (*corev1.Secret, error) {
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, cli.RightsHint(err, "get", "secrets/"+name, op.Namespace)
	}
	return secret, nil
}

// fits is true for a password that MySQL accepts, and that fits on one line.
func fits(password string) bool {
	return len(password) <= passwordMax && !strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' })
}

func (w *world) user() string     { return w.group.Spec.Application.Account() }
func (w *world) password() string { return string(w.secret.Data[v1alpha1.ApplicationPassword]) }
func (w *world) next() string     { return string(w.secret.Data[v1alpha1.ApplicationNextPassword]) }

// server finds the pod of a site; of the active one if site is empty.
func (w *world) server(ctx context.Context, site string) (server, error) {
	at, err := mysqlclient.ServerOf(ctx, w.c, w.op.Namespace, w.op.Group, site)
	return server{at}, err
}

// see asks the servers. The other sites are asked only once the active one has the next password.
func (w *world) see(ctx context.Context, without []string) (seen, account, error) {
	a, err := w.active.look(ctx, w.rootPassword, w.user())
	if err != nil {
		return seen{}, a, fmt.Errorf("ask the active site as root: %w", err)
	}
	s := seen{HasNext: w.next() != "", Exists: a.exists, Retained: a.retained, Open: a.open}
	if !a.exists {
		return s, a, nil
	}
	if w.password() != "" {
		if s.Current, err = w.active.Accepts(ctx, w.user(), w.password()); err != nil {
			return seen{}, a, err
		}
	}
	if s.HasNext {
		if s.Next, err = w.active.Accepts(ctx, w.user(), w.next()); err != nil {
			return seen{}, a, err
		}
	}
	if s.Next {
		s.Behind = w.behind(ctx, without)
	}
	return s, a, nil
}

// behind says why sites do not let the account in with the next password.
func (w *world) behind(ctx context.Context, without []string) []string {
	var out []string
	for _, site := range w.group.Spec.Sites {
		if site.Name == w.group.Status.ActiveSite || slices.Contains(without, site.Name) {
			continue
		}
		at, err := w.server(ctx, site.Name)
		if err != nil {
			out = append(out, site.Name+" has no pod that runs")
			continue
		}
		switch yes, err := at.Accepts(ctx, w.user(), w.next()); {
		case err != nil:
			out = append(out, fmt.Sprintf("%s cannot be asked (%s)", site.Name, cli.FirstLine(err)))
		case !yes:
			out = append(out, site.Name+" has not replicated it yet")
		}
	}
	return out
}

// write changes the Secret if it has not changed since it was read. It returns false if another writer was faster.
func (w *world) write(ctx context.Context, change func(data map[string][]byte)) (bool, error) {
	if w.secret.Data == nil {
		w.secret.Data = map[string][]byte{}
	}
	change(w.secret.Data)
	_, err := w.c.Kube().CoreV1().Secrets(w.op.Namespace).Update(ctx, w.secret, metav1.UpdateOptions{FieldManager: cli.FieldManager})
	switch {
	case apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, cli.RightsHint(err, "update", "secrets/"+w.secret.Name, w.op.Namespace)
	}
	return true, nil
}

// publish makes the next password the one that applications read. Lines that a person wrote stay, if the old password is not in them.
func (w *world) publish(data map[string][]byte) {
	text := func(key string) string { return string(data[key]) }
	uri, jdbc := v1alpha1.ApplicationURIs(w.user(), w.next(), text(v1alpha1.ApplicationHost), text(v1alpha1.ApplicationPort), text(v1alpha1.ApplicationDatabase))
	oldURI, oldJDBC := v1alpha1.ApplicationURIs(w.user(), w.password(), text(v1alpha1.ApplicationHost), text(v1alpha1.ApplicationPort), text(v1alpha1.ApplicationDatabase))
	for key, of := range map[string][2]string{v1alpha1.ApplicationURI: {oldURI, uri}, v1alpha1.ApplicationJDBC: {oldJDBC, jdbc}} {
		if text(key) == of[0] {
			data[key] = []byte(of[1])
		}
	}
	data[v1alpha1.ApplicationPassword] = []byte(w.next())
	delete(data, v1alpha1.ApplicationNextPassword)
}

// ownLines returns keys whose text a person wrote, and which therefore still have the old password.
func ownLines(secret *corev1.Secret, old string) []string {
	var out []string
	for _, key := range []string{v1alpha1.ApplicationURI, v1alpha1.ApplicationJDBC} {
		if old != "" && strings.Contains(string(secret.Data[key]), old) {
			out = append(out, key)
		}
	}
	return out
}

func (op *Op) command(verb string) string {
	return fmt.Sprintf("kubectl mfg app-password %s %s -n %s", verb, op.Group, op.Namespace)
}

// Run replaces the password.
func (op *Rotate) Run(ctx context.Context, env cli.Environment, c mysqlclient.Cluster) (int, error) {
	w, err := op.read(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	for _, name := range op.Without {
		if _, known := request.RoleOf(w.group, name); !known || name == w.group.Status.ActiveSite {
			return cli.ExitError, cli.Refused("refused: --without %s: it must be a site of %s that is not active (%s)", name, op.Group, request.SiteNames(w.group))
		}
	}
	s, _, err := w.see(ctx, op.Without)
	if err != nil {
		return cli.ExitError, err
	}
	if next, reason := rotation(s); next == refuse {
		return cli.ExitError, cli.Refused("refused: %s", reason.of(op.Group, op.Namespace))
	}
	plan := op.plan(w, s)
	op.ShowPlan(env, fmt.Sprintf("Replace the password of the application of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Replace it?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("app-password rotate", plan, nil)
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	own, err := op.replace(ctx, env, c)
	if err != nil {
		return cli.ExitError, err
	}
	rep.Outcome = cli.OutcomeDone
	rep.Message = fmt.Sprintf("done: Secret %s has the new password, and %s lets the account in with it and with the old one\n  have every application take it (most read it when they start), then end the old one: %s",
		v1alpha1.ApplicationSecret(op.Group), op.asked(), op.command("retire"))
	if len(op.Without) > 0 {
		rep.Message += fmt.Sprintf("\n  not asked, as --without says: %s; where the password has not been replicated yet, only the old one is let in", strings.Join(op.Without, ", "))
	}
	if len(own) > 0 {
		rep.Message += fmt.Sprintf("\n  the keys %s of the Secret hold text of your own, with the old password: correct them", strings.Join(own, " and "))
	}
	return op.Finish(env, rep)
}

// asked are the sites of which the command knows something.
func (op *Rotate) asked() string {
	if len(op.Without) > 0 {
		return "every site but " + strings.Join(op.Without, ", ")
	}
	return "every site"
}

func (op *Rotate) plan(w *world, s seen) []screen.Line {
	first := screen.Line{Label: "First", Text: fmt.Sprintf("%s gets another password beside the one that it has; %s lets it in with both", w.user(), op.asked())}
	if s.HasNext {
		first.Text = fmt.Sprintf("the password under the key %s of the Secret is used: a replacement that was begun, or one that you chose", v1alpha1.ApplicationNextPassword)
	}
	return []screen.Line{
		first,
		{Label: "Then", Text: fmt.Sprintf("once %s has it, it stands in Secret %s", op.asked(), w.secret.Name)},
		{Label: "After", Text: "you have every application take it, then end the old one: " + op.command("retire")},
		{Label: "Meanwhile", Text: "sessions stay, roles and pods are not touched, a failover may happen at any moment"},
	}
}

// replace takes steps until the Secret has the new password. It returns the keys of the Secret that it left to the person.
func (op *Rotate) replace(ctx context.Context, env cli.Environment, c mysqlclient.Cluster) (own []string, err error) {
	began, said := env.Now(), ""
	say := func(words string) {
		if words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
	}
	for steps := 0; steps < stepsMost; {
		w, err := op.read(ctx, c)
		if err != nil {
			return nil, op.left(err)
		}
		s, _, err := w.see(ctx, op.Without)
		if err != nil {
			return nil, op.left(err)
		}
		next, reason := rotation(s)
		if next == refuse {
			return nil, cli.Refused("refused: %s", reason.of(op.Group, op.Namespace))
		}
		if next == await {
			say("waits: " + strings.Join(s.Behind, "; "))
			if env.Now().Sub(began) > op.Timeout || !env.Wait(ctx, lookEvery) {
				return nil, cli.WaitedOut("not every site has the new password: %s\n  both are valid until then, and applications go on with the old one\n  go on with it: %s\n  a site that stays away need not be waited for: --without SITE",
					strings.Join(s.Behind, "; "), op.command("rotate"))
			}
			continue
		}
		steps++
		old := w.password()
		ok, err := op.take(ctx, w, next, say)
		if err != nil {
			return nil, op.left(err)
		}
		if ok && next == publish {
			return ownLines(w.secret, old), nil
		}
	}
	return nil, errors.New("others change this Secret or this account all the time: nothing was ended; try it again")
}

// take takes one step. It returns false if another writer was faster: the next look sees what to do.
func (op *Rotate) take(ctx context.Context, w *world, next step, say func(string)) (bool, error) {
	if next == publish {
		return w.write(ctx, w.publish)
	}
	if next == prepare {
		say("the new password is put into the Secret, where no application reads it")
		return w.write(ctx, func(data map[string][]byte) { data[v1alpha1.ApplicationNextPassword] = []byte(op.make()) })
	}
	say("the active site gives it to the account, beside the old one")
	_, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, introduceStatements(w.user(), w.next())...)
	if mysqlclient.Number(err) == numberNotFree {
		return false, nil
	}
	return err == nil, err
}

func (op *Op) make() string {
	if op.random != nil {
		return op.random()
	}
	return v1alpha1.PasswordPrefix + rand.Text()
}

// left says of an error in the middle that it lost nothing.
func (op *Op) left(err error) error {
	var failure *cli.Error
	if errors.As(err, &failure) {
		return err
	}
	return fmt.Errorf("%w\n  applications can go on with the password that they have; try it again: %s", err, op.command("rotate"))
}
