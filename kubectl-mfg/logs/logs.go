// SPDX-License-Identifier: Apache-2.0

// Package logs shows the logs of all pods of a group as one, in the order of their times.
package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Cluster is where the pods are.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	Kube() kubernetes.Interface
}

// Op is `kubectl mfg logs`.
type Op struct {
	Namespace string
	Group     string
	// Site and Container are empty for all of them.
	Site      string
	Container string
	Follow    bool
	// Since is how far back to go; 0 goes to the beginning.
	Since time.Duration
	// Level is the least important level to show.
	Level string
	Color string

	// What tests have no time for; 0 is the default.
	patience, silence, rescan time.Duration
}

const (
	// patience is how long the streams that speak wait for one that does not, so that lines stay in order.
	followPatience = 500 * time.Millisecond
	// silence is how long without a line a log may be before it is given up, unless it is followed.
	silence = 30 * time.Second
	// rescan is how often to look for new pods and containers.
	rescan = 5 * time.Second
	// maxStreams bounds how many logs are read at a time.
	maxStreams = 64
)

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.Since < 0:
		return errors.New("--since must not be negative; 0 shows everything")
	case !slices.Contains(cli.Colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	_, err := ParseLevel(op.Level)
	return err
}

// Run shows the logs. If one log cannot be read, the others still show.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	if _, known := request.RoleOf(g, op.Site); op.Site != "" && !known {
		return cli.ExitError, fmt.Errorf("%s has no site %q; its sites are %s", op.Group, op.Site, request.SiteNames(g))
	}
	ctx, cancel := context.WithCancel(ctx)
	r := op.reader(env, c)
	defer r.wait.Wait()
	defer cancel()
	return r.run(ctx)
}

func (op *Op) reader(env cli.Environment, c Cluster) *reader {
	level, _ := ParseLevel(op.Level) // Validate has refused any other
	orDefault := func(d, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return d
	}
	r := &reader{op: op, env: env, kube: c.Kube(), level: level, colour: cli.Colored(op.Color, env), events: make(chan event), known: map[string]*stream{}, byID: map[int]*stream{}}
	r.silence, r.rescan = orDefault(op.silence, silence), orDefault(op.rescan, rescan)
	r.order = order{patience: orDefault(op.patience, followPatience), streams: map[int]*head{}}
	if !op.Follow {
		r.order.patience = r.silence
	}
	return r
}

// colours of the levels that matter.
var colours = map[Level]string{Warning: "\x1b[33m", Error: "\x1b[31m"}

const reset = "\x1b[0m"
