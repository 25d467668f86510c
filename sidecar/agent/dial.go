// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	lookupTimeout = 500 * time.Millisecond
	dialTimeout   = 800 * time.Millisecond
)

// Dialer dials by name and remembers the last good address of each name. The cluster's DNS often fails with the same fault
// that the exchanges have to bridge; the signature proves who answers at an old address.
type Dialer struct {
	// Lookup and Dial are the network; nil stands for the real one.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	good map[string]string
}

// DialContext connects to host:port.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if net.ParseIP(host) != nil {
		return d.dial(ctx, network, address)
	}
	ips, err := d.lookup(ctx, host)
	if err != nil {
		last := d.last(host)
		if last == "" {
			return nil, err
		}
		ips = []string{last}
	}
	var failures []error
	for _, ip := range ips {
		conn, err := d.dial(ctx, network, net.JoinHostPort(ip, port))
		if err == nil {
			d.remember(host, ip)
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func (d *Dialer) lookup(ctx context.Context, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	find := d.Lookup
	if find == nil {
		find = net.DefaultResolver.LookupHost
	}
	ips, err := find(ctx, host)
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("look up %s: no address", host)
	}
	return ips, err
}

func (d *Dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, network, address)
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 5 * time.Second}
	return dialer.DialContext(ctx, network, address)
}

func (d *Dialer) last(host string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.good[host]
}

func (d *Dialer) remember(host, ip string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.good == nil {
		d.good = map[string]string{}
	}
	d.good[host] = ip
}
