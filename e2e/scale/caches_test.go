// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/resp"
)

func TestCachesAsTheOperatorSeesThem(t *testing.T) {
	w := newWorld(size{groups: 2, sites: 3})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &caches{world: w, began: time.Now()}
	go c.serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, s := range w.all {
		s.start("pod", "")
		s.cache.password = "pass-of-" + s.group
	}
	dial := func(s *site, password string) (*resp.Client, error) {
		return resp.Dialer{Password: password, DialTimeout: 2 * time.Second, Timeout: 2 * time.Second}.
			Dial(t.Context(), "tcp", net.JoinHostPort(s.addr.String(), port))
	}
	one := w.all[4] // the second site of the second group
	if _, err := dial(one, "pass-of-g0000"); err == nil {
		t.Error("the password of another group was taken")
	}
	client, err := dial(one, "pass-of-g0001")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	info := func() map[string]string {
		v, err := client.Do("INFO")
		if err != nil {
			t.Fatal(err)
		}
		return resp.Section(v.Text)
	}
	if f := info(); f["role"] != "master" || f["connected_slaves"] != "2" || f["slave0"] == "" || f["slave1"] == "" || f["run_id"] != one.uuid {
		t.Errorf("at its start: %v", f)
	}
	for _, host := range []string{v1alpha1.CacheSiteName(one.group, "sa") + "." + groupNamespace + ".svc", w.all[3].addr.String()} {
		if _, err := client.Do("REPLICAOF", "NO", "ONE"); err != nil {
			t.Fatal(err)
		}
		if f := info(); f["role"] != "master" {
			t.Errorf("promoted: %v", f)
		}
		if _, err := client.Do("REPLICAOF", host, "6379"); err != nil {
			t.Fatal(err)
		}
		if f := info(); f["role"] != "slave" || f["master_link_status"] != "up" || f["master_host"] != v1alpha1.CacheSiteName(one.group, "sa") {
			t.Errorf("following %s: %v", host, f)
		}
	}
	stranger, err := dial(one, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if _, err := stranger.Do("INFO"); err == nil {
		t.Error("a stranger was answered")
	}
}
