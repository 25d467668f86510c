// SPDX-License-Identifier: Apache-2.0

package scope

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

// Base is what every part of the reconcile builds on: the API, and what this process has said and waits for.
type Base struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Recorder *events.Recorder
	// Waits knows how long this process has waited for something.
	Waits Waits
	// Silences knows how long mysqld has not started in the pods of sites.
	Silences Silences

	mu sync.Mutex
	// said holds the last text of each event that is emitted only on change.
	said map[types.NamespacedName]map[string]string
}

// Forget drops what is remembered of a group that is gone.
func (b *Base) Forget(key types.NamespacedName) {
	b.Waits.forget(key)
	b.Silences.forget(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.said, key)
}

// Say emits an event if its text differs from the last one about the same thing.
func (b *Base) Say(s *Scope, about string, e events.Event, text string) {
	if !b.Changed(s.Key, string(e.Reason)+"/"+about, text) || text == "" {
		return
	}
	b.Recorder.Emit(s.Group, b.Related(s, about), e, "%s", text)
}

// Related returns the pod of a site, for an event about it.
func (b *Base) Related(s *Scope, site string) runtime.Object {
	if pod := s.Pods[site]; pod != nil {
		return pod
	}
	return nil
}

// Changed notes a text, and returns true if it differs from the last one about the same thing.
func (b *Base) Changed(key types.NamespacedName, about, text string) bool {
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

// AnswerOrder answers a request if it still has the value that was acted on.
func (b *Base) AnswerOrder(ctx context.Context, s *Scope, kind v1alpha1.RequestKind, value string, a asks.Answer) error {
	q, stands := asks.Of(s.Group, kind)
	if !stands || q.Value != value {
		return nil
	}
	return b.Answers().Answer(ctx, s.Group, q, a)
}

// Answers returns the writer of answers to requests.
func (b *Base) Answers() asks.Writer {
	return asks.Writer{Client: b.Client, Owner: v1alpha1.ManagerController}
}

// Waits knows how long this process has waited for something, such as the outcome of a failover. A restart starts from
// zero, which makes waits longer and never shorter.
type Waits struct {
	mu    sync.Mutex
	began map[types.NamespacedName]map[string]time.Time
}

// SinceFirst returns how long something has been waited for; every look must call it.
func (w *Waits) SinceFirst(s *Scope, key string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began == nil {
		w.began = map[types.NamespacedName]map[string]time.Time{}
	}
	if w.began[s.Key] == nil {
		w.began[s.Key] = map[string]time.Time{}
	}
	if _, known := w.began[s.Key][key]; !known {
		w.began[s.Key][key] = s.Now
	}
	return s.Now.Sub(w.began[s.Key][key])
}

// Since returns how long something that follows from a failover has been waited for.
func (w *Waits) Since(s *Scope, what string, record *v1alpha1.FailoverRecord) time.Duration {
	return w.SinceFirst(s, fmt.Sprintf("%s/%d", what, record.Epoch))
}

// Over ends a wait: the next one for the same key starts from zero.
func (w *Waits) Over(s *Scope, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.began[s.Key], key)
}

// forget ends all waits of a group.
func (w *Waits) forget(group types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.began, group)
}
