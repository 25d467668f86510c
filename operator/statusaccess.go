// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	protocol "github.com/mysql-mfg/mfg/api/wire"
)

const (
	// statusQPS and statusBurst bound the reviews that the status endpoints cause at the API server.
	statusQPS   = 10
	statusBurst = 20
	// mayFor is how long an answer of the API server counts, knownMost how many are remembered.
	mayFor    = 15 * time.Second
	knownMost = 1024
)

// statusAccess asks the API server who may read the state of groups: anyone who may get the groups themselves.
type statusAccess struct {
	api client.Client

	mu    sync.Mutex
	known map[[sha256.Size]byte]verdict
}

// verdict is what the API server said of a token and a namespace.
type verdict struct {
	err   error
	until time.Time
}

// newStatusAccess makes one with a client of its own: strangers can make it ask, and failover must not wait behind them.
func newStatusAccess(mgr ctrl.Manager) (*statusAccess, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = statusQPS, statusBurst
	direct, err := client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make client of the status endpoints: %w", err)
	}
	return &statusAccess{api: direct}, nil
}

// may returns nil if the bearer of a token may read the groups of a namespace, or of all namespaces if it is empty.
func (a *statusAccess) may(ctx context.Context, token, namespace string) error {
	key := sha256.Sum256([]byte(namespace + "\x00" + token))
	a.mu.Lock()
	v, is := a.known[key]
	a.mu.Unlock()
	if is && time.Now().Before(v.until) {
		return v.err
	}
	err := a.review(ctx, token, namespace)
	if err != nil && !errors.Is(err, protocol.ErrUnauthorized) && !errors.Is(err, protocol.ErrForbidden) {
		return err // the API server did not answer, which says nothing about the next time
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= knownMost {
		a.known = map[[sha256.Size]byte]verdict{}
	}
	a.known[key] = verdict{err, time.Now().Add(mayFor)}
	return err
}

func (a *statusAccess) review(ctx context.Context, token, namespace string) error {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := a.api.Create(ctx, who); err != nil {
		return fmt.Errorf("review token: %w", err)
	}
	if !who.Status.Authenticated {
		return protocol.ErrUnauthorized
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	can := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "mysqlfailovergroups",
		},
	}}
	if err := a.api.Create(ctx, can); err != nil {
		return fmt.Errorf("review access: %w", err)
	}
	if !can.Status.Allowed || can.Status.Denied {
		return protocol.ErrForbidden
	}
	return nil
}
