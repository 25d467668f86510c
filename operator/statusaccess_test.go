// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	protocol "github.com/mysql-mfg/mfg/api/wire"
)

// reviewer is an API server that knows two accounts.
type reviewer struct {
	client.Client
	reviews int
	away    error
}

func (r *reviewer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	r.reviews++
	if r.away != nil {
		return r.away
	}
	switch o := obj.(type) {
	case *authenticationv1.TokenReview:
		o.Status.Authenticated = o.Spec.Token == "anna" || o.Spec.Token == "otto"
		o.Status.User = authenticationv1.UserInfo{Username: o.Spec.Token, Groups: []string{"team"}}
	case *authorizationv1.SubjectAccessReview:
		a := o.Spec.ResourceAttributes
		o.Status.Allowed = o.Spec.User == "anna" && len(o.Spec.Groups) == 1 && a.Verb == "get" && a.Group == "mysql-mfg.io" &&
			a.Resource == "mysqlfailovergroups" && a.Namespace == "shop"
	default:
		return fmt.Errorf("a %T", obj)
	}
	return nil
}

// TestTheAPIServerSaysWhoMayReadTheStatus: for a while; what it could not say is asked again, and nothing grows.
func TestTheAPIServerSaysWhoMayReadTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &reviewer{}
		a := &statusAccess{api: api}
		check := func(token, namespace string, want error, reviews int) {
			t.Helper()
			before := api.reviews
			if err := a.may(t.Context(), token, namespace); !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("%s in %q: %v", token, namespace, err)
			}
			if got := api.reviews - before; got != reviews {
				t.Errorf("%s in %q: %d reviews, want %d", token, namespace, got, reviews)
			}
		}
		check("anna", "shop", nil, 2)
		check("anna", "shop", nil, 0)
		check("anna", "", protocol.ErrForbidden, 2)
		check("otto", "shop", protocol.ErrForbidden, 2)
		check("otto", "shop", protocol.ErrForbidden, 0)
		check("eve", "shop", protocol.ErrUnauthorized, 1)
		time.Sleep(mayFor)
		check("anna", "shop", nil, 2)
		time.Sleep(mayFor)
		api.away = errors.New("away")
		check("anna", "shop", api.away, 1)
		check("anna", "shop", api.away, 1)
		api.away = nil
		for i := range 3 * knownMost {
			_ = a.may(t.Context(), fmt.Sprint("eve", i), "shop")
		}
		if len(a.known) > knownMost {
			t.Errorf("%d answers are remembered", len(a.known))
		}
	})
}
