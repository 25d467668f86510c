// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report"
)

// emptyRequests are the annotations that ask for something of a site and name none, or order one to take over that never can, and what
// is answered. Nobody knows what was meant, so nothing is done; an order that stayed would be forgotten until the site is made one that
// can.
func emptyRequests(group *v1alpha1.MysqlFailoverGroup) (keys []string, outcome string) {
	var names, able []string
	for _, site := range group.Spec.Sites {
		names = append(names, site.Name)
		if site.Role != v1alpha1.DROnly {
			able = append(able, site.Name)
		}
	}
	for _, key := range []string{v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationForceFailover} {
		if value, asked := group.Annotations[key]; asked && value == "" {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		return keys, fmt.Sprintf("%s=: refused, it names no site; the sites are %s", strings.Join(keys, ", "), strings.Join(names, ", "))
	}
	order := group.Annotations[v1alpha1.AnnotationForceFailover]
	switch why := "is no site of the group"; {
	case order == "" || slices.Contains(able, order):
		return nil, ""
	default:
		if slices.Contains(names, order) {
			why = "is dr-only (make it a primary-candidate first, if that is what is wanted)"
		}
		return []string{v1alpha1.AnnotationForceFailover}, fmt.Sprintf("%s=%s: refused, %s %s; those that may take over are %s",
			v1alpha1.AnnotationForceFailover, order, order, why, strings.Join(able, ", "))
	}
}

// answerEmpty takes such annotations off the group, and says why.
func (l *loop) answerEmpty(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	keys, outcome := emptyRequests(group)
	if len(keys) == 0 {
		return
	}
	if err := l.clear(ctx, group, outcome, keys...); err != nil {
		l.log.Error("answer request", "error", err)
		return
	}
	l.m.Events.Emit(group, nil, report.PlannedRefused, "%s", outcome)
}
