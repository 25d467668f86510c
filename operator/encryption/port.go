// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

// Escrow is the store of keyrings. It never returns their content.
type Escrow interface {
	// Versions returns the escrow Secrets of a site, with the digest of their present content.
	Versions(ctx context.Context, namespace, group, site string) ([]keyring.Version, error)
	// Digest returns the digest of a Secret's content; empty if there is none.
	Digest(ctx context.Context, namespace, name string) (string, error)
	Prune(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, name string) error
	RenewToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, round int64) error
	DropToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error
}

// Port is what the keyrings need from the rest of the reconcile.
type Port interface {
	// NewScope begins a look at a group, and Observe reads its Deployments, pods and facts.
	NewScope(group *v1alpha1.MysqlFailoverGroup) *scope.Scope
	Observe(ctx context.Context, s *scope.Scope) error
	// Ensure makes sure that the poll loop of a group runs.
	Ensure(key types.NamespacedName)
	// TellIgnoredKeys says which settings of the specification are not passed on.
	TellIgnoredKeys(s *scope.Scope)
	// CloneWish says whether the data of a site is about to be replaced.
	CloneWish(s *scope.Scope, site string) keyring.Clone
}

// Options holds what an Encryption is made of.
type Options struct {
	Port Port
	Work *work.Register
	// Runner runs rotations, on the servers that Reach connects to; Wake queues a group.
	Runner *work.Runner
	Reach  work.Reach
	Wake   func(types.NamespacedName)
	// Escrow keeps the keyrings; nil if the installation has no escrow listener. Sidecars push to EscrowURL.
	Escrow    Escrow
	EscrowURL string
	// ReachEscrow checks that a client which trusts these authorities alone can reach the escrow endpoint; nil skips the check.
	ReachEscrow func(ctx context.Context, authorities []byte) error
	// OwnAuthorities returns the authorities (PEM) of the endpoint's certificate if the operator makes it, nil before it has. It is nil if the
	// operator does not make it; then the ca.crt of the group's spec.tls must cover the endpoint too.
	OwnAuthorities func() []byte
	// KeepTrust keeps those authorities in the token Secret of a site; nil if the operator does not make the certificate.
	KeepTrust func(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error
	// GroupOf finds the group of a watched object.
	GroupOf func(ctx context.Context, obj client.Object) []reconcile.Request
}

// Encryption is the shell around the phases of keyrings.
type Encryption struct {
	*scope.Base
	Options
	rotator rotator
	escrows escrows
}

// New makes an Encryption.
func New(base *scope.Base, o Options) *Encryption {
	return &Encryption{Base: base, Options: o,
		rotator: rotator{reach: o.Reach, work: o.Work, runner: o.Runner, recorder: base.Recorder, done: o.Wake}}
}

// Forget drops what is remembered of a group that is gone.
func (r *Encryption) Forget(key types.NamespacedName) { r.escrows.forgetGroup(key) }
