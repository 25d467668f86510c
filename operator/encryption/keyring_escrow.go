// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// escrowCheck is how often the escrow Secrets of sealed sites are read without an event. A watch reports changes sooner.
const escrowCheck = 5 * time.Minute

// look holds what was read live about the keyring of one site.
type look struct {
	at       time.Time
	hash     string
	pod      types.UID
	versions []keyring.Version
	rendered keyring.Rendered
	inUse    []string
	projects string
	// tokenRound is the round that the token Secret was made for; 0 if there is none.
	tokenRound int64
}

// escrows remembers looks at what rarely changes, and how long live keyrings have been unchanged. What it forgets is
// read again, or waited for longer.
type escrows struct {
	mu     sync.Mutex
	looks  map[scope.SiteKey]look
	calmed map[scope.SiteKey]calmed
	// turns counts how often the looks at a site were forgotten: a look that began before that is outdated when it ends.
	turns map[scope.SiteKey]int64
	// out says why a group could not reach the endpoint.
	out map[types.NamespacedName]unreached
}

func (e *escrows) unreached(group types.NamespacedName) unreached {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out[group]
}

func (e *escrows) reached(group types.NamespacedName, u unreached) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out == nil {
		e.out = map[types.NamespacedName]unreached{}
	}
	e.out[group] = u
}

type calmed struct {
	key   string
	since time.Time
}

// calm is how long a key had been the same when a report was made; 0 for a report that is older than the last change. Seeing the
// same report again does not make it longer.
func (e *escrows) calm(site scope.SiteKey, key string, now, reported time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calmed == nil {
		e.calmed = map[scope.SiteKey]calmed{}
	}
	if e.calmed[site].key != key || e.calmed[site].since.IsZero() {
		e.calmed[site] = calmed{key, now}
	}
	return max(0, reported.Sub(e.calmed[site].since))
}

// turn must be called before anything is read.
func (e *escrows) turn(site scope.SiteKey) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.turns[site]
}

// keep remembers a look that began in a turn, unless something has happened since: part of it was read before that.
func (e *escrows) keep(site scope.SiteKey, turn int64, l look) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turns[site] != turn {
		return
	}
	if e.looks == nil {
		e.looks = map[scope.SiteKey]look{}
	}
	e.looks[site] = l
}

func (e *escrows) last(site scope.SiteKey) (look, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, ok := e.looks[site]
	return l, ok
}

func (e *escrows) forget(site scope.SiteKey) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.looks, site)
	if e.turns == nil {
		e.turns = map[scope.SiteKey]int64{}
	}
	e.turns[site]++
}

// Age makes the remembered looks, and the calm of keyrings, older by the given durations. Tests use it to let time pass.
func (r *Encryption) Age(looks, calm time.Duration) {
	r.escrows.mu.Lock()
	defer r.escrows.mu.Unlock()
	for key, l := range r.escrows.looks {
		l.at = l.at.Add(-looks)
		r.escrows.looks[key] = l
	}
	for key, c := range r.escrows.calmed {
		c.since = c.since.Add(-calm)
		r.escrows.calmed[key] = c
	}
}

// GroupOfKeyring queues the group of an escrow Secret, and forgets what was read of the site before.
func (r *Encryption) GroupOfKeyring(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.GroupOf(ctx, obj)
	for _, q := range requests {
		r.escrows.forget(scope.SiteKey{Group: q.NamespacedName, Site: obj.GetLabels()[v1alpha1.LabelSite]})
	}
	return requests
}

func (e *escrows) forgetGroup(group types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.out, group)
	for key := range e.looks {
		if key.Group == group {
			delete(e.looks, key)
		}
	}
	for key := range e.turns {
		if key.Group == group {
			delete(e.turns, key)
		}
	}
	for key := range e.calmed {
		if key.Group == group {
			delete(e.calmed, key)
		}
	}
}

// escrowLook reads the facts about the keyring of a site. It uses a look at a sealed site again if nothing has happened there.
func (r *Encryption) escrowLook(ctx context.Context, s *scope.Scope, site keyring.Site) (look, error) {
	l := look{at: s.Now}
	if d := s.Deployments[site.Name]; d != nil {
		l.hash = scope.SpecHash(d)
	}
	if pod := s.Pods[site.Name]; pod != nil {
		l.pod = pod.UID
	}
	last, known := r.escrows.last(s.SiteKey(site.Name))
	fresh := known && last.hash == l.hash && last.pod == l.pod && s.Now.Sub(last.at) < escrowCheck
	if fresh && site.Status.Phase == v1alpha1.KeyringSealed && last.rendered.Secret == site.Status.KeyringSecret {
		return last, nil
	}
	turn := r.escrows.turn(s.SiteKey(site.Name))
	var err error
	if l.versions, err = r.versions(ctx, s, site); err != nil {
		return look{}, err
	}
	if err := r.readPods(ctx, s, site.Name, &l); err != nil {
		return look{}, err
	}
	if l.tokenRound, err = r.tokenRound(ctx, s, site.Name); err != nil {
		return look{}, err
	}
	if err := r.ownKeyrings(ctx, s, site); err != nil {
		return look{}, err
	}
	r.escrows.keep(s.SiteKey(site.Name), turn, l)
	return l, nil
}

// versions reads the escrow Secrets of a site. It asks for the one that status names by its name too: the person who
// restored it may not have labelled it yet, and its content says enough.
func (r *Encryption) versions(ctx context.Context, s *scope.Scope, site keyring.Site) ([]keyring.Version, error) {
	all, err := r.Escrow.Versions(ctx, s.Key.Namespace, s.Key.Name, site.Name)
	if err != nil {
		return nil, err
	}
	st := site.Status
	for _, v := range all {
		if v.Name == st.KeyringSecret {
			return all, nil
		}
	}
	if st.KeyringSecret == "" {
		return all, nil
	}
	digest, err := r.Escrow.Digest(ctx, s.Key.Namespace, st.KeyringSecret)
	if err != nil {
		return nil, err
	}
	if digest != "" {
		all = append(all, keyring.Version{Name: st.KeyringSecret, Number: st.KeyringVersion, Digest: digest})
	}
	return all, nil
}

// readPods reads the Deployment and the pod live: the cache has no volumes.
func (r *Encryption) readPods(ctx context.Context, s *scope.Scope, name string, l *look) error {
	if s.Deployments[name] != nil {
		d := &appsv1.Deployment{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: v1alpha1.SiteName(s.Key.Name, name)}, d)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read deployment: %w", err)
		}
		if err == nil {
			l.rendered = RenderedAs(s.Key.Name, name, d.Spec.Template.Spec)
			l.inUse = append(l.inUse, escrowNamed(s.Key.Name, name, d.Spec.Template.Spec)...)
		}
	}
	if p := s.Pods[name]; p != nil {
		pod := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(p), pod)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read pod: %w", err)
		}
		if err == nil && pod.UID == p.UID {
			l.projects = projected(pod.Spec, s.Group.Spec.EncryptionAtRest.Keyring.DataFileDir)
			l.inUse = append(l.inUse, escrowNamed(s.Key.Name, name, pod.Spec)...)
		}
	}
	return nil
}

// envKeyringFile is in the environment of every pod that has a keyring.
const envKeyringFile = "MFG_KEYRING_FILE"

// RenderedAs says how a site was rendered, judged by its pod template.
func RenderedAs(group, site string, spec corev1.PodSpec) keyring.Rendered {
	out := keyring.Rendered{Exists: true}
	for _, c := range spec.InitContainers {
		for _, e := range c.Env {
			out.Keyring = out.Keyring || e.Name == envKeyringFile
			if e.Name == envKeyringSealed && e.Value == "true" {
				out.Sealed = true
			}
		}
	}
	if names := escrowNamed(group, site, spec); out.Sealed && len(names) > 0 {
		out.Secret = names[0]
	}
	return out
}

const envKeyringSealed = "MFG_KEYRING_SEALED"

// tokenRound reads for which round the token of a site was made, without reading the token.
func (r *Encryption) tokenRound(ctx context.Context, s *scope.Scope, site string) (int64, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: v1alpha1.KeyringTokenSecret(s.Key.Name, site)}, meta)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read token: %w", err)
	}
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || owner.UID != s.Group.UID {
		return roundUnknown, nil // the rounds of another group say nothing
	}
	return roundOf(meta.Annotations[v1alpha1.AnnotationKeyringRound]), nil
}

// roundUnknown is the round of a token that was made for an unknown round.
const roundUnknown = -1

func roundOf(text string) int64 {
	round, err := strconv.ParseInt(text, 10, 64)
	if err != nil || round <= 0 {
		return roundUnknown
	}
	return round
}
