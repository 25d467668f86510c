// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/explain"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Explanations keeps the last look at each group, so that it can explain the last decision when asked. The loop only stores
// three values; the explanation is made when it is asked for. The zero value works; it locks itself.
type Explanations struct{ last sync.Map }

// look is one decision with its input.
type look struct {
	snapshot failover.Snapshot
	memory   failover.Memory
	decision failover.Decision
}

// Keep keeps a look. The memory is the one that Decide got. None of it may change afterwards.
func (e *Explanations) Keep(key types.NamespacedName, s failover.Snapshot, m failover.Memory, d failover.Decision) {
	e.last.Store(key, look{snapshot: s, memory: m, decision: d})
}

// Drop forgets a group.
func (e *Explanations) Drop(key types.NamespacedName) { e.last.Delete(key) }

// Explain says why the last decision about a group was taken; false if there is none.
func (e *Explanations) Explain(namespace, group string) (wire.Explanation, bool) {
	kept, known := e.last.Load(types.NamespacedName{Namespace: namespace, Name: group})
	if !known {
		return wire.Explanation{}, false
	}
	seen, ok := kept.(look)
	if !ok {
		return wire.Explanation{}, false
	}
	out := explain.Explain(seen.snapshot, seen.memory, seen.decision)
	out.At = out.At.UTC()
	return out, true
}
