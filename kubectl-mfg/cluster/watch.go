// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/transport"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/tui/feed"
)

const (
	// watchSeconds is how long the API server keeps a watch open; then another begins.
	watchSeconds = 300
	// relistAfter is how long a broken watch waits for its next list.
	relistAfter = 3 * time.Second
)

// Routes are the ways to the operator's stream: the API server's proxy to the Service, which needs no more than the
// user's own login, then a forwarded port.
func (a *API) Routes(operatorNamespace, namespace string) []feed.Route {
	query := url.Values{}
	if namespace != "" {
		query.Set(wire.ParamNamespace, namespace)
	}
	through := func(context.Context) (feed.Address, error) { return a.proxyAddress(operatorNamespace, query) }
	forwards := func(ctx context.Context) ([]feed.Way, error) { return a.forwardedWays(ctx, operatorNamespace, query) }
	return []feed.Route{feed.Direct("service proxy", through), {Name: "port-forward", Ways: forwards}}
}

// forwardedWays are ports to all pods of the operator: one that stands by refuses the stream.
func (a *API) forwardedWays(ctx context.Context, operatorNamespace string, query url.Values) ([]feed.Way, error) {
	pods, err := a.operators(ctx, operatorNamespace)
	if err != nil {
		return nil, deniedOr(err)
	}
	ways := make([]feed.Way, 0, len(pods))
	for _, pod := range pods {
		ways = append(ways, func(ctx context.Context) (feed.Address, error) {
			port, end, err := a.forwardTo(ctx, pod, wire.PortOperatorAuxiliary)
			if err != nil {
				return feed.Address{}, deniedOr(err)
			}
			at := url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(port), Path: wire.PathWSStatus, RawQuery: query.Encode()}
			return feed.Address{URL: at.String(), Close: end}, nil
		})
	}
	return ways, nil
}

// deniedOr marks the API server's refusal for the stream, which does not know it.
func deniedOr(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", feed.ErrDenied, err)
	}
	return err
}

// proxyAddress returns where the API server's proxy offers the stream, with all that a kubeconfig says on how to log in.
func (a *API) proxyAddress(operatorNamespace string, query url.Values) (feed.Address, error) {
	config, err := a.config.TransportConfig()
	if err != nil {
		return feed.Address{}, fmt.Errorf("prepare request: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(config)
	if err != nil {
		return feed.Address{}, fmt.Errorf("prepare request: %w", err)
	}
	proxy := a.config.Proxy
	if proxy == nil {
		proxy = utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	}
	at := a.service(operatorNamespace).Suffix(wire.PathWSStatus).URL()
	at.RawQuery = query.Encode()
	return feed.Address{
		URL: at.String(), TLS: tlsConfig, Proxy: proxy,
		Wrap: func(rt http.RoundTripper) (http.RoundTripper, error) {
			return transport.HTTPWrappersForConfig(config, rt)
		},
	}, nil
}

// Watch lists, then follows what changes. A user who may list but not watch gets a list every few seconds.
func (a *API) Watch(ctx context.Context, namespace string, deliver func(feed.Objects)) {
	for ctx.Err() == nil {
		groups, version, err := a.list(ctx, namespace)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			deliver(feed.Objects{Error: err.Error(), At: time.Now()})
			wait(ctx, relistAfter)
			continue
		}
		o := feed.Objects{Whole: true, At: time.Now()}
		for i := range groups {
			o.Changed = append(o.Changed, &groups[i])
		}
		deliver(o)
		if a.watchFrom(ctx, namespace, version, deliver) != nil {
			wait(ctx, relistAfter)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// watchFrom follows changes until the API server ends the watch; nil if it ended normally.
func (a *API) watchFrom(ctx context.Context, namespace, version string, deliver func(feed.Objects)) error {
	w, err := a.groups.Get().NamespaceIfScoped(namespace, namespace != "").Resource(cli.Resource).
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(watchSeconds)).Watch(ctx)
	if err != nil {
		return fmt.Errorf("watch groups: %w", err)
	}
	defer w.Stop()
	began := time.Now()
	for e := range w.ResultChan() {
		o, err := objectsOf(e)
		if err != nil {
			return err
		}
		if len(o.Changed)+len(o.Gone) > 0 {
			deliver(o)
		}
	}
	if time.Since(began) < relistAfter {
		return errors.New("the watch ended at once")
	}
	return nil
}

func objectsOf(e watch.Event) (feed.Objects, error) {
	o := feed.Objects{At: time.Now()}
	if e.Type == watch.Error {
		return o, fmt.Errorf("watch groups: %w", apierrors.FromObject(e.Object))
	}
	g, ok := e.Object.(*v1alpha1.MysqlFailoverGroup)
	if !ok {
		return o, nil
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		o.Changed = append(o.Changed, g)
	case watch.Deleted:
		o.Gone = append(o.Gone, g.Namespace+"/"+g.Name)
	case watch.Bookmark, watch.Error:
	}
	return o, nil
}
