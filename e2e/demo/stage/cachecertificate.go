// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// CacheShowsRenewed is nil if a new connection to the cache of a site gets the certificate that is in the group's Secret now.
func (g *Group) CacheShowsRenewed(ctx context.Context, site string) error {
	pod, err := g.CachePod(ctx, site)
	if err != nil {
		return err
	}
	conf, err := g.cacheTLS(ctx)
	if err != nil {
		return err
	}
	if conf == nil {
		return errors.New("the group has no TLS")
	}
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(v1alpha1.CachePort)))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	secure, is := conn.(*tls.Conn)
	if !is || !bytes.Equal(secure.ConnectionState().PeerCertificates[0].Raw, conf.Certificates[0].Certificate[0]) {
		return errors.New("it shows the former certificate")
	}
	return nil
}
