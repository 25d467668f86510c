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

// Base is what every part of the reconcile stands on: the API, and what was said and is waited for in this process.
type Base struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Recorder *events.Recorder
	// Waits is for how long something has been waited for.
	Waits Waits
	// Silences is for how long mysqld has not started in the pods of sites.
	Silences Silences

	mu sync.Mutex
	// said holds the last text of each event that is emitted on change only.
	said map[types.NamespacedName]map[string]string
}

// Forget drops what is kept about a group that is gone.
func (b *Base) Forget(key types.NamespacedName) {
	b.Waits.forget(key)
	b.Silences.forget(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.said, key)
}

// Say emits an event when its text differs from the last one about the same thing.
func (b *Base) Say(s *Scope, about string, e events.Event, text string) {
	if !b.Changed(s.Key, string(e.Reason)+"/"+about, text) || text == "" {
		return
	}
	b.Recorder.Emit(s.Group, b.Related(s, about), e, "%s", text)
}

// Related is the pod of a site, for an event about it.
func (b *Base) Related(s *Scope, site string) runtime.Object {
	if pod := s.Pods[site]; pod != nil {
		return pod
	}
	return nil
}

// Changed notes a text, and is true if it differs from the last one about the same thing.
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

// AnswerOrder answers a request, if it is still the one with the value that was acted on.
func (b *Base) AnswerOrder(ctx context.Context, s *Scope, kind v1alpha1.RequestKind, value string, a asks.Answer) error {
	q, stands := asks.Of(s.Group, kind)
	if !stands || q.Value != value {
		return nil
	}
	return b.Answers().Answer(ctx, s.Group, q, a)
}

// Answers writes answers to requests.
func (b *Base) Answers() asks.Writer {
	return asks.Writer{Client: b.Client, Owner: v1alpha1.ManagerController}
}

// Waits tells for how long this process has waited for something to become of a failover. A restart begins anew, which
// makes it wait longer and never shorter.
type Waits struct {
	mu    sync.Mutex
	began map[types.NamespacedName]map[string]time.Time
}

// SinceFirst is for how long something has been waited for that is asked about at every look.
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

// Since is for how long something has been waited for that follows from a failover.
func (w *Waits) Since(s *Scope, what string, record *v1alpha1.FailoverRecord) time.Duration {
	return w.SinceFirst(s, fmt.Sprintf("%s/%d", what, record.Epoch))
}

// Over ends a wait: the next one for the same begins anew.
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
