// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/x509"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// renewEvery is how long to wait before an engine is asked again to read its certificate. The kubelet brings a changed Secret into a pod
// within a minute or two.
const renewEvery = 10 * time.Second

// show notes the certificate of a new connection.
func (c *Client) show(chain []*x509.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(chain) > 0 {
		c.shown = chain[0].Raw
	}
}

// Stale is true if the engine showed a certificate other than the one that it must show: it read its files before they changed.
func (c *Client) Stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.target.Certificate) > 0 && len(c.shown) > 0 && !bytes.Equal(c.shown, c.target.Certificate)
}

// Renew has a stale engine read its files again. The next connection, made after this one, shows the outcome. Connections of others
// stay, under the certificate that they began with. The engine refuses a certificate that cannot be used, and keeps the old one.
func (c *Client) Renew(ctx context.Context) error {
	if !c.Stale() || !c.renewIsDue() {
		return nil
	}
	var err error
	if c.target.Engine == v1alpha1.CacheDragonfly {
		// It reads its files whenever this is set, even to the present value (its pull request 2047).
		_, err = c.do(ctx, "CONFIG", "SET", "tls", "true")
	} else {
		err = c.touchFiles(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	return err
}

func (c *Client) renewIsDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.renewedAt) < renewEvery {
		return false
	}
	c.renewedAt = time.Now()
	return true
}

// touchFiles sets the certificate's files to their present names, all with one command, because key and certificate must fit: Valkey and
// Redis from 7.0.1 on read them then (Redis' pull request 10713).
func (c *Client) touchFiles(ctx context.Context) error {
	files := []any{"tls-cert-file", "tls-key-file", "tls-ca-cert-file"}
	answer, err := c.ask(ctx, append([]any{"CONFIG", "GET"}, files...)...)
	if err != nil {
		return err
	}
	set := []any{"CONFIG", "SET"}
	pairs, _ := answer.([]any)
	for i := 0; i+1 < len(pairs) && i < 2*len(files); i += 2 {
		if file := text(pairs[i+1]); file != "" {
			set = append(set, text(pairs[i]), file)
		}
	}
	if len(set) == 2 {
		return &Error{c.target.Addr, "it names no file of a certificate", nil}
	}
	_, err = c.do(ctx, set...)
	return err
}
