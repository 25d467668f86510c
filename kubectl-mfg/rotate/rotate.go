// SPDX-License-Identifier: Apache-2.0

// Package rotate gives sites new master keys: it asks the operator for the rotation of one site, or of all, and shows how far that is.
package rotate

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Op is `kubectl mfg rotate`.
type Op struct {
	request.Request
	Site        string
	AllReplicas bool
	All         bool
	To          string
	Restart     bool
	Stop        bool

	// wanted are the sites that a refused run leaves; nil until the group was read.
	wanted []string
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	chosen := 0
	for _, is := range []bool{op.Site != "", op.AllReplicas, op.All, op.Stop} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("one of --site SITE, --all-replicas, --all and --stop is needed: which sites are to be rotated?")
	case op.To != "" && !op.All:
		return errors.New("--to goes with --all: nothing else moves the role")
	case op.Restart && !op.All && !op.AllReplicas:
		return errors.New("--restart goes with --all-replicas and --all: --site always rotates")
	}
	return op.Request.Validate()
}

// Run asks for the rotation, and follows it.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	r := &rotation{op: op, env: env, cluster: c}
	switch {
	case op.Stop:
		return r.stop(ctx, view)
	case op.Site != "":
		return r.site(ctx, view)
	}
	return r.all(ctx, view)
}

// rotation is the work of one run.
type rotation struct {
	op      *Op
	env     cli.Environment
	cluster request.Cluster
	rep     *Report
	// joined is true if the rotation was requested before: then no other one is, also if that one ends while a person reads the plan.
	joined bool
	// from is the keyring's version before that rotation.
	from int64
}

// order returns the order for several sites.
func (op *Op) order() v1alpha1.CampaignOrder {
	return v1alpha1.CampaignOrder{Replicas: op.AllReplicas, Restart: op.Restart, To: op.To}
}

// again returns the command that asks for the same.
func (op *Op) again() string {
	scope := "--all"
	switch {
	case op.Site != "":
		scope = "--site " + op.Site
	case op.AllReplicas:
		scope = "--all-replicas"
	case op.To != "":
		scope += " --to " + op.To
	}
	return fmt.Sprintf("kubectl mfg rotate %s -n %s %s", op.Group, op.Namespace, scope)
}

// stops returns the command that ends the rotation of all sites.
func (op *Op) stops() string {
	return fmt.Sprintf("kubectl mfg rotate %s -n %s --stop", op.Group, op.Namespace)
}
