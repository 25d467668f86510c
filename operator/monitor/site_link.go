// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// siteLink holds what is kept open to one site between polls. It locks itself: a fence may still be under way when the
// next poll begins.
type siteLink struct {
	mu            sync.Mutex
	podUID, podIP string
	// verifies is true if connections verify the server.
	verifies bool
	db       *mysql.DB
	// fencing is held while the operator fences this site by SQL, draining while it drains it.
	fencing, draining sync.Mutex
	// given is the password that the site's receiver has, tried counts the tries to give it one. Only the loop touches them.
	given given
	tried int
}

// verify makes connections verify the server, or not; it closes one that was made the other way.
func (k *siteLink) verify(verifies bool) {
	k.mu.Lock()
	changed := k.verifies != verifies
	k.verifies = verifies
	k.mu.Unlock()
	if changed {
		k.close()
	}
}

// become turns the link to a pod, and closes what was open to another.
func (k *siteLink) become(pod *corev1.Pod) {
	k.mu.Lock()
	var old *mysql.DB
	if k.podUID != string(pod.UID) || k.podIP != pod.Status.PodIP {
		old, k.db = k.db, nil
		k.podUID, k.podIP = string(pod.UID), pod.Status.PodIP
	}
	k.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
}

func (k *siteLink) current() (*mysql.DB, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.db, k.podIP
}

func (k *siteLink) pod() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.podUID
}

// keep stores a connection to a pod and returns the one to use. If another goroutine made one meanwhile, that one wins;
// if the pod changed, there is none.
func (k *siteLink) keep(db *mysql.DB, podIP string) *mysql.DB {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.podIP == podIP && k.db == nil {
		k.db = db
		return db
	}
	_ = db.Close()
	if k.podIP != podIP {
		return nil
	}
	return k.db
}

func (k *siteLink) close() {
	k.mu.Lock()
	db := k.db
	k.db = nil
	k.mu.Unlock()
	if db != nil {
		_ = db.Close()
	}
}
