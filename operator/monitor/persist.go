// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// errOvertaken says that somebody else changed the durable part: the decision rests on an old view and is dropped.
var errOvertaken = errors.New("status was changed by somebody else")

// apiTimeout bounds one call to the API server on the poll loop.
const apiTimeout = 3 * time.Second

// load reads what is durable, through the API reader and not the cache, when this loop starts. From then on the loop is
// its only writer and remembers what it wrote; persist notices if that was wrong.
func (l *loop) load(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if !l.authority.hasKey() {
		key, err := l.privateKey(ctx, group)
		if err != nil {
			return err
		}
		l.authority.setKey(key)
	}
	if l.loaded {
		return nil
	}
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		return fmt.Errorf("read group: %w", err)
	}
	durable, err := fromStatus(live.Status)
	if err != nil {
		return err
	}
	l.durable, l.loaded = durable, true
	if l.memory.Diverged == nil {
		l.memory.Diverged = map[string]gtid.Set{}
	}
	for _, site := range live.Status.Sites {
		// A site found diverged stays so until it can be compared again, also across a restart of the operator.
		set, err := gtid.Parse(site.Errant)
		if _, known := l.memory.Diverged[site.Name]; !known && err == nil && site.State == v1alpha1.SiteDiverged {
			l.memory.Diverged[site.Name] = set
		}
	}
	return nil
}

func (l *loop) privateKey(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (ed25519.PrivateKey, error) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.AuthoritySecret(group.Name)}
	if err := l.m.Live.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("read authority secret: %w", err)
	}
	block, _ := pem.Decode(secret.Data[v1alpha1.AuthorityPrivateKey])
	if block == nil {
		return nil, fmt.Errorf("secret %s has no PEM in %s", name, v1alpha1.AuthorityPrivateKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse authority key: %w", err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("authority key is %T, not Ed25519", parsed)
	}
	return key, nil
}

// persist writes the durable part of a decision with optimistic locking, read through the API reader.
func (l *loop) persist(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, d failover.Decision) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	live := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, live); err != nil {
		l.loaded = false
		return fmt.Errorf("read group before persisting: %w", err)
	}
	if live.UID != group.UID || !l.isOurs(live.Status) {
		l.loaded = false
		return errOvertaken
	}
	status := l.statusOf(live, d.Status, d.Views)
	if err := l.apply(ctx, live, status); err != nil {
		// Unknown outcome: the next pass reads what really stands before it decides anything.
		l.loaded = false
		return fmt.Errorf("persist epoch %d: %w", d.Status.Epoch, err)
	}
	l.durable = d.Status
	return nil
}

// isOurs is true if what stands is what this loop wrote last.
func (l *loop) isOurs(s v1alpha1.MysqlFailoverGroupStatus) bool {
	sameStep := (s.Transition == nil) == (l.durable.Transition == nil)
	if sameStep && s.Transition != nil {
		sameStep = s.Transition.Step == l.durable.Transition.Step
	}
	return sameStep && s.Epoch == l.durable.Epoch && s.ActiveSite == l.durable.ActiveSite
}

// apply writes the loop's own part of the status by server-side apply. With the resource version in it, a write in
// between makes it fail.
func (l *loop) apply(ctx context.Context, live *v1alpha1.MysqlFailoverGroup, status v1alpha1.MysqlFailoverGroupStatus) error {
	body, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("decode status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
	u.SetNamespace(live.Namespace)
	u.SetName(live.Name)
	u.SetResourceVersion(live.ResourceVersion)
	return l.m.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(v1alpha1.ManagerMonitorStatus), client.ForceOwnership)
}

func fromStatus(s v1alpha1.MysqlFailoverGroupStatus) (failover.Durable, error) {
	d := failover.Durable{Epoch: s.Epoch, ActiveSite: s.ActiveSite, Records: s.Failovers}
	if s.ActiveSiteSince != nil {
		d.ActiveSince = s.ActiveSiteSince.Time
	}
	if s.CooldownUntil != nil {
		d.CooldownUntil = s.CooldownUntil.Time
	}
	if s.Transition == nil {
		return d, nil
	}
	from, err := gtid.Parse(s.Transition.FromExecuted)
	if err != nil {
		return d, fmt.Errorf("read status.transition.fromExecuted: %w", err)
	}
	to, err := gtid.Parse(s.Transition.ToExecuted)
	if err != nil {
		return d, fmt.Errorf("read status.transition.toExecuted: %w", err)
	}
	t := s.Transition
	d.Transition = &failover.Transition{Kind: t.Kind, Step: t.Step, From: t.From, To: t.To, Reason: t.Reason, FromUUID: t.FromServerUUID,
		StartedAt: t.StartedAt.Time, DetectedAt: t.DetectedAt.Time, FromExecuted: from, ToExecuted: to, Evidence: t.Evidence}
	if t.GatePassedAt != nil {
		d.Transition.GatePassedAt = t.GatePassedAt.Time
	}
	return d, nil
}

func toTransition(t *failover.Transition) *v1alpha1.Transition {
	if t == nil {
		return nil
	}
	out := &v1alpha1.Transition{Kind: t.Kind, Step: t.Step, From: t.From, To: t.To, Reason: t.Reason, FromServerUUID: t.FromUUID,
		StartedAt: metav1.NewMicroTime(t.StartedAt), DetectedAt: metav1.NewMicroTime(t.DetectedAt),
		FromExecuted: t.FromExecuted.String(), ToExecuted: t.ToExecuted.String(), Evidence: t.Evidence}
	if !t.GatePassedAt.IsZero() {
		at := metav1.NewMicroTime(t.GatePassedAt)
		out.GatePassedAt = &at
	}
	return out
}
