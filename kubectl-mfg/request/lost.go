// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// lostFor is how long the group is read again after the API server's answer to a request was lost.
const lostFor = 15 * time.Second

// isLost is true for an error after which the request may stand nevertheless: the connection broke, or whatever stands between had no answer. A refused
// connection carried nothing.
func isLost(err error) bool {
	if utilnet.IsConnectionRefused(err) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// find looks for a request whose answer was lost: nil if it stands, or has its answer already. The group could take it only in the version that was
// read, so that in a later one without it, it did not arrive, and never will. cause is why the answer was lost.
func (r *Request) find(ctx context.Context, env cli.Environment, c Cluster, before *v1alpha1.MysqlFailoverGroup, change map[string]string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lostFor) // also after Ctrl-C: what was ordered must be told
	defer cancel()
	fmt.Fprintf(env.ErrOut, "There was no good answer to the request (%s); looking whether it arrived, for %s at most.\n", cli.FirstLine(cause), lostFor)
	// The API server that answers is done with the request; only one that says 504 may still be at it.
	var status apierrors.APIStatus
	isDone := errors.As(cause, &status) && status.Status().Code != http.StatusGatewayTimeout
	for end := env.Now().Add(lostFor); ; {
		now, err := c.Group(ctx, r.Namespace, r.Group)
		switch {
		case err == nil && now.UID != before.UID, apierrors.IsNotFound(err):
			return cause
		case err == nil && tooLate(before, now, change):
			return &cli.Error{Code: cli.ExitRefused, Reason: v1alpha1.ReasonTooLate,
				Err: fmt.Errorf("it was too late: the operator has answered the request that was to be withdrawn\n  see what came of it: kubectl mfg history %s -n %s", r.Group, r.Namespace)}
		case err == nil && r.arrived(now, change):
			return nil
		case err == nil && (isDone || now.ResourceVersion != before.ResourceVersion):
			return cause
		}
		if !env.Wait(ctx, followEvery) || env.Now().After(end) {
			return &cli.Error{Code: cli.ExitTimeout, Ended: "the answer of the API server was lost",
				Err: fmt.Errorf("the answer of the API server was lost, and the request may stand: %w\n  see whether it does before you send it again: kubectl mfg status %s -n %s", cause, r.Group, r.Namespace)}
		}
	}
}

// tooLate is true for a withdrawal of what the operator has answered: then it took the request off the group, and not the withdrawal.
func tooLate(before, now *v1alpha1.MysqlFailoverGroup, change map[string]string) bool {
	for key, value := range change {
		kind := v1alpha1.RequestOf(key)
		if kind == "" || value != "" {
			continue
		}
		id, last := before.Annotations[kind.IDAnnotation()], now.Status.LastRequest(kind)
		if id != "" && last != nil && last.ID == id {
			return true
		}
	}
	return false
}

// arrived is true if the group has the change, or the operator's answer to it.
func (r *Request) arrived(g *v1alpha1.MysqlFailoverGroup, change map[string]string) bool {
	for key, value := range change {
		if kind := v1alpha1.RequestOf(key); kind != "" && value != "" && r.Answer(g, kind) != nil {
			return true
		}
	}
	for key, value := range change {
		if now, is := g.Annotations[key]; now != value || is != (value != "") {
			return false
		}
	}
	return true
}
