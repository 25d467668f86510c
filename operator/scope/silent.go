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

// LostAfter is how long a mysqld that ends at every start must be silent before its keyring may count as lost.
const LostAfter = 3 * time.Minute

// NeverOpens is true if mysqld has ended at every start for long in a sealed pod: its keyring may not open the data, and the pod gets
// no other one without help. In an unsealed pod that proves nothing, and the pod may have the only copy of a keyring.
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

// Silent is true if a site has the wanted pod, and mysqld has ended at every start there for long. The age of the pod compares this clock
// with the API server's, and the two may differ: age alone proves nothing, so this process must have watched for as long too (I14).
func Silent(s *Scope, name string) bool {
	if !IsCurrent(s, name) || !s.Known || !isSilent(s, name) {
		return false
	}
	return s.Now.Sub(s.Pods[name].CreationTimestamp.Time) >= LostAfter && s.SilentFor[name] >= LostAfter
}

// isSilent is true if mysqld does not start in the pod of a site, and did not answer the poll loop either.
func isSilent(s *Scope, name string) bool {
	pod := s.Pods[name]
	return pod != nil && !PodReady(pod) && !s.Facts.Sites[name].MysqlUp && endsAtOnce(pod)
}

// Silences knows how long this process has seen that mysqld does not start in the pod of a site. A restart starts from zero, which
// makes waits longer and never shorter (I9).
type Silences struct {
	mu    sync.Mutex
	began map[SiteKey]silence
}

type silence struct {
	pod   types.UID
	since time.Time
}

// Look notes which sites are silent now, and returns how long each has been. Another pod starts from zero.
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

// endsAtOnce is true if mysqld does not start: its container ended in failure, which it does after mysqld ended several times
// in a row, each time right after its start. A slow start or a missing pod does not count.
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

// SupervisorGaveUp is the exit code of the MySQL container if mysqld does not start (docs/decisions/0006); a killed one has
// another.
const SupervisorGaveUp = 1
