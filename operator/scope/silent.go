// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// LostAfter is how long a mysqld that ends at every start may be silent, before its keyring may count as lost.
const LostAfter = 3 * time.Minute

// NeverOpens is true if mysqld ended at every start for long, in a pod that is made sealed: what keeps it from starting may be a
// keyring that does not open the data, and no other one comes there by itself. In a pod that is not sealed it proves nothing, and the
// only copy of a keyring may be there.
func NeverOpens(s *Scope, name string) bool {
	st := KeyringStatus(s.Group, name)
	sealed := st.Phase == v1alpha1.KeyringSealed || st.Stage == v1alpha1.KeyringSealing
	return Encrypted(s.Group) && sealed && Silent(s, name) && s.Pods[name].Annotations[v1alpha1.AnnotationKeyringRound] == ""
}

// IsCurrent is true if the pod of a site is the one that its Deployment wants.
func IsCurrent(s *Scope, name string) bool {
	pod, d := s.Pods[name], s.Deployments[name]
	return pod != nil && d != nil && pod.DeletionTimestamp == nil && pod.Annotations[v1alpha1.AnnotationSpecHash] == SpecHash(d)
}

// Silent is true if the pod of a site is the wished one, and its mysqld has ended at every start for long. The age of the pod is this
// clock less that of the API server, and the two may differ: it says nothing by itself, so this process has watched for as long too (I14).
func Silent(s *Scope, name string) bool {
	if !IsCurrent(s, name) || !s.Known || !isSilent(s, name) {
		return false
	}
	return s.Now.Sub(s.Pods[name].CreationTimestamp.Time) >= LostAfter && s.SilentFor[name] >= LostAfter
}

// isSilent is true if mysqld does not start in the pod of a site, and nobody has reached it otherwise.
func isSilent(s *Scope, name string) bool {
	pod := s.Pods[name]
	return pod != nil && !PodReady(pod) && !s.Facts.Sites[name].MysqlUp && endsAtOnce(pod)
}

// Silences tells for how long this process has seen that mysqld does not start in the pod of a site. A restart begins anew, which makes
// it wait longer and never shorter (I9).
type Silences struct {
	mu    sync.Mutex
	began map[SiteKey]silence
}

type silence struct {
	pod   types.UID
	since time.Time
}

// Look notes what is silent at a look, and is for how long each of those sites has been. Another pod begins anew.
func (c *Silences) Look(s *Scope) map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]time.Duration{}
	for name, pod := range s.Pods {
		key := s.SiteKey(name)
		if !isSilent(s, name) {
			delete(c.began, key)
			continue
		}
		if c.began == nil {
			c.began = map[SiteKey]silence{}
		}
		if began, known := c.began[key]; !known || began.pod != pod.UID {
			c.began[key] = silence{pod.UID, s.Now}
		}
		out[name] = s.Now.Sub(c.began[key].since)
	}
	return out
}

// forget drops what was seen of a group.
func (c *Silences) forget(group types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.began {
		if key.Group == group {
			delete(c.began, key)
		}
	}
}

// endsAtOnce is true if mysqld does not start: its container ended in failure, which it does after several ends of mysqld in a
// row, each at once after its start. A slow start, or a pod that is not there yet, is none of that.
func endsAtOnce(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != render.ContainerMySQL {
			continue
		}
		for _, state := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if state != nil && state.ExitCode == SupervisorGaveUp {
				return true
			}
		}
	}
	return false
}

// SupervisorGaveUp is how the MySQL container ends if mysqld does not start (docs/decisions/0006); one that was killed ends
// otherwise.
const SupervisorGaveUp = 1
