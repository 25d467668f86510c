// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
)

// Base is what every part of the reconcile stands on: the API, and what was said and is waited for in this process.
type Base struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Recorder *events.Recorder
	// Waits is for how long something has been waited for.
	Waits waits

	mu sync.Mutex
	// said holds the last text of each event that is emitted on change only.
	said map[types.NamespacedName]map[string]string
}

// Forget drops what is kept about a group that is gone.
func (b *Base) Forget(key types.NamespacedName) {
	b.Waits.forget(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.said, key)
}

// say emits an event when its text differs from the last one about the same thing.
func (b *Base) say(s *scope, about string, e events.Event, text string) {
	if !b.changed(s.key, string(e.Reason)+"/"+about, text) || text == "" {
		return
	}
	b.Recorder.Emit(s.group, b.related(s, about), e, "%s", text)
}

// related is the pod of a site, for an event about it.
func (b *Base) related(s *scope, site string) runtime.Object {
	if pod := s.pods[site]; pod != nil {
		return pod
	}
	return nil
}

// changed notes a text, and is true if it differs from the last one about the same thing.
func (b *Base) changed(key types.NamespacedName, about, text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.said == nil {
		b.said = map[types.NamespacedName]map[string]string{}
	}
	if b.said[key] == nil {
		b.said[key] = map[string]string{}
	}
	before := b.said[key][about]
	b.said[key][about] = text
	return before != text
}

// answerOrder answers a request, if it is still the one with the value that was acted on.
func (b *Base) answerOrder(ctx context.Context, s *scope, kind v1alpha1.RequestKind, value string, a asks.Answer) error {
	q, stands := asks.Of(s.group, kind)
	if !stands || q.Value != value {
		return nil
	}
	return b.answers().Answer(ctx, s.group, q, a)
}

// answers writes answers to requests.
func (b *Base) answers() asks.Writer {
	return asks.Writer{Client: b.Client, Owner: v1alpha1.ManagerController}
}

// waits tells for how long this process has waited for something to become of a failover. A restart begins anew, which
// makes it wait longer and never shorter.
type waits struct {
	mu    sync.Mutex
	began map[types.NamespacedName]map[string]time.Time
}

// sinceFirst is for how long something has been waited for that is asked about at every look.
func (w *waits) sinceFirst(s *scope, key string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began == nil {
		w.began = map[types.NamespacedName]map[string]time.Time{}
	}
	if w.began[s.key] == nil {
		w.began[s.key] = map[string]time.Time{}
	}
	if _, known := w.began[s.key][key]; !known {
		w.began[s.key][key] = s.now
	}
	return s.now.Sub(w.began[s.key][key])
}

// since is for how long something has been waited for that follows from a failover.
func (w *waits) since(s *scope, what string, record *v1alpha1.FailoverRecord) time.Duration {
	return w.sinceFirst(s, fmt.Sprintf("%s/%d", what, record.Epoch))
}

// over ends a wait: the next one for the same begins anew.
func (w *waits) over(s *scope, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.began[s.key], key)
}

// forget ends all waits of a group.
func (w *waits) forget(group types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.began, group)
}
