// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/resp"
)

const (
	// cacheIdle is how long a client may say nothing.
	cacheIdle = 2 * time.Minute
	// bytesPerSecond is how fast a cache's master writes: every look finds another offset.
	bytesPerSecond = 1000
)

// caches are the caches of all sites behind one listener. Their pods have the addresses of the sites' MySQL, on another port.
type caches struct {
	world *world
	tls   *tls.Config // nil: none
	began time.Time

	asks        atomic.Int64
	connections atomic.Int64
}

// cacheState is one cache.
type cacheState struct {
	mu       sync.Mutex
	password string
	// follows is the site that it follows; empty: it is a master, as every engine is at its start.
	follows string
}

func (c *caches) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			c.connections.Add(1)
			defer c.connections.Add(-1)
			defer func() { _ = conn.Close() }()
			c.session(conn)
		}()
	}
}

func (c *caches) session(conn net.Conn) {
	s := c.world.siteOf(conn.LocalAddr())
	if s == nil {
		return
	}
	if c.tls != nil {
		conn = tls.Server(conn, c.tls)
	}
	r := bufio.NewReaderSize(conn, 4<<10)
	known := false
	for {
		if err := conn.SetDeadline(time.Now().Add(cacheIdle)); err != nil {
			return
		}
		args, err := resp.ReadCommand(r)
		if err != nil {
			return
		}
		if len(args) == 0 {
			continue
		}
		if _, err := conn.Write(c.answer(s, args, &known)); err != nil {
			return
		}
	}
}

// answer does what the operator says to a cache, and no more.
func (c *caches) answer(s *site, args []string, known *bool) []byte {
	name := strings.ToUpper(args[0])
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if name == "AUTH" {
		*known = s.cache.password != "" && args[len(args)-1] == s.cache.password
		if !*known {
			return []byte("-WRONGPASS invalid username-password pair or user is disabled.\r\n")
		}
		return []byte("+OK\r\n")
	}
	if !*known {
		return []byte("-NOAUTH Authentication required.\r\n")
	}
	switch name {
	case "INFO":
		c.asks.Add(1)
		return resp.AppendBulk(nil, s.cacheInfo(time.Since(c.began)))
	case "PING":
		return []byte("+PONG\r\n")
	case "REPLICAOF":
		if len(args) != 3 {
			return []byte("-ERR wrong number of arguments\r\n")
		}
		s.cache.follows = s.cacheSite(args[1])
	case "FAILOVER":
		return []byte("-ERR No failover in progress.\r\n")
	case "CLIENT", "CONFIG":
	default:
		return []byte("-ERR unknown command\r\n")
	}
	return []byte("+OK\r\n")
}

// cacheSite is the site that a host belongs to: by the name of its Service, or by its address. "NO" is nobody.
func (s *site) cacheSite(host string) string {
	first, _, _ := strings.Cut(host, ".")
	if site, ok := strings.CutPrefix(first, v1alpha1.CacheSiteName(s.group, "")); ok {
		return site
	}
	for _, other := range s.peers {
		if other.addr.String() == host {
			return other.name
		}
	}
	return ""
}

// cacheInfo is what a cache says of itself; its lock is held. What the others follow is read without theirs: it is theirs to tell, a
// moment later.
func (s *site) cacheInfo(since time.Duration) string {
	offset := int64(since.Seconds() * bytesPerSecond)
	var b strings.Builder
	fmt.Fprintf(&b, "# Server\r\nvalkey_version:9.1.2\r\nrun_id:%s\r\n\r\n# Memory\r\nused_memory:4194304\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\n", s.uuid)
	if s.cache.follows != "" {
		fmt.Fprintf(&b, "role:slave\r\nmaster_host:%s\r\nmaster_port:%d\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:%d\r\n",
			v1alpha1.CacheSiteName(s.group, s.cache.follows), v1alpha1.CachePort, offset)
	} else {
		fmt.Fprintf(&b, "role:master\r\nconnected_slaves:%d\r\n", len(s.peers)-1)
		n := 0
		for _, other := range s.peers {
			if other != s {
				fmt.Fprintf(&b, "slave%d:ip=%s,port=%d,state=online,offset=%d,lag=0\r\n", n, other.addr, v1alpha1.CachePort, offset)
				n++
			}
		}
		fmt.Fprintf(&b, "master_failover_state:no-failover\r\nmaster_repl_offset:%d\r\n", offset)
	}
	b.WriteString("\r\n# Keyspace\r\ndb0:keys=1000,expires=1000\r\n")
	return b.String()
}

// runCache gives the StatefulSet of a site's cache its pod.
func (k *kubelet) runCache(ctx context.Context, d *appsv1.StatefulSet) error {
	s := k.cacheSites[d.Name]
	if s == nil {
		return nil
	}
	secret, err := k.core.CoreV1().Secrets(d.Namespace).Get(ctx, v1alpha1.CacheAuthSecret(s.group), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the cache's password of %s: %w", s.group, err)
	}
	s.cache.mu.Lock()
	s.cache.password = string(secret.Data[v1alpha1.CachePassword])
	s.cache.mu.Unlock()
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = d.Name+"-0", d.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.NodeName = nodeName(s.name)
	pods := k.core.CoreV1().Pods(d.Namespace)
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	made.Status = runningAt(made, s)
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("run pod %s: %w", pod.Name, err)
	}
	now := d.DeepCopy()
	now.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, CurrentReplicas: 1, AvailableReplicas: 1,
	}
	// Nobody waits for what a StatefulSet says of itself, and the operator may have changed it meanwhile.
	if _, err := k.core.AppsV1().StatefulSets(d.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("finish StatefulSet %s: %w", d.Name, err)
	}
	return nil
}
