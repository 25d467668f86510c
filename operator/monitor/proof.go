// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

var (
	// errOtherPod says that another pod answered than the one that was asked.
	errOtherPod = errors.New("the report is that of another pod")
	// errUnsigned and errForged say that a report is not authenticated: its sidecar has no key, or another one, or a stranger answers at
	// the address of the pod.
	errUnsigned = errors.New("the report is not authenticated")
	errForged   = errors.New("the report is not authenticated with the key of the site")
)

// asking is which pod to ask for a report, and the statement for its sidecar.
type asking struct {
	pod    *corev1.Pod
	site   string
	signed wire.Signed
}

// askReport pushes a statement and returns the report of the site. A report is proof of a fence, and an acknowledgement. So it counts only
// from the pod that was asked (another pod may have its address by now) and, if that pod has a key, authenticated with it as the answer to
// this very push (I12). Kubernetes says whether the pod has one, never the answer.
func (c *siteClient) askReport(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q asking) (wire.Report, error) {
	push := wire.ActiveSite{Statement: q.signed}
	authenticates := v1alpha1.Authenticates(q.pod)
	if authenticates {
		push.Challenge = rand.Text()
	}
	answer, err := c.m.Push.PushActiveSite(ctx, sidecarAddr(q.pod), push)
	if err != nil {
		return wire.Report{}, err
	}
	r := answer.Report
	if authenticates {
		if r, err = c.openReport(ctx, group, q.site, opening{push.Challenge, answer.Signed}); err != nil {
			return wire.Report{}, err
		}
	}
	if r.Site != q.site || r.PodUID != string(q.pod.UID) {
		return wire.Report{}, errOtherPod
	}
	return r, nil
}

// opening is an authenticated report and the challenge that it has to answer.
type opening struct {
	challenge string
	signed    wire.SignedReport
}

// openReport returns an authenticated report. It keeps the key once it was read: with a thousand groups, reading it for each report would be
// most of the load on the API server. If a key does not fit, it reads it again, because its Secret may have been replaced.
func (c *siteClient) openReport(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, o opening) (wire.Report, error) {
	if o.signed == "" {
		return wire.Report{}, errUnsigned
	}
	kept, _ := c.reportKeys.Load(site)
	known, _ := kept.([]byte) // no key opens nothing
	if r, err := wire.OpenReport(known, o.challenge, o.signed); err == nil {
		return r, nil
	}
	key, err := c.m.Access.ReportKey(ctx, group, site)
	if err != nil {
		return wire.Report{}, fmt.Errorf("%w: %w", errForged, err)
	}
	r, err := wire.OpenReport(key, o.challenge, o.signed)
	if err != nil {
		return wire.Report{}, fmt.Errorf("%w: %w", errForged, err)
	}
	c.reportKeys.Store(site, key)
	return r, nil
}
