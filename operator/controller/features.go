// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventConfigKeysIgnored = events.Warning(v1alpha1.ReasonConfigKeysIgnored, "Ignore")
	eventFeaturesUnbuilt   = events.Warning(v1alpha1.ReasonFeaturesUnbuilt, "Ignore")
)

// features says what the specification asks for and does not get. Without some features a new group must not run at
// all: people would take an empty database for a restored one.
func (r *Reconciler) features(_ context.Context, s *scope.Scope) error {
	spec := &s.Group.Spec
	if unbuilt := r.Proven.Unbuilt(spec); len(unbuilt) > 0 {
		message := "this version does not stand for these yet, see CHANGELOG.md: " + strings.Join(unbuilt, ", ") +
			"; an archive is made all the same, and no group begins with a point in time"
		s.Condition(conditions.True(v1alpha1.ConditionUnbuiltFeatures, v1alpha1.ReasonNotBuilt, message))
		r.base.Say(s, "", eventFeaturesUnbuilt, message)
	}
	if !scope.Encrypted(s.Group) {
		r.ignoredKeys(s) // what is ignored depends on it
	}
	if missing := r.Proven.MustNotRun(spec); len(missing) > 0 && len(s.Deployments) == 0 {
		s.Progress(scope.Stuck(v1alpha1.ReasonNotBuilt, "no pods are created, because this version lacks "+strings.Join(missing, ", ")+
			"; remove it from the specification"), scope.WhenSettled)
		return scope.ErrStop
	}
	return nil
}

func (r *Reconciler) ignoredKeys(s *scope.Scope) {
	var keys []string
	for _, k := range render.IgnoredKeys(s.In) {
		keys = append(keys, k.Key+" ("+k.Why+")")
	}
	text := ""
	if len(keys) > 0 {
		text = "spec.mysqlConf has settings that are not passed on: " + strings.Join(keys, ", ") + "; remove them, see docs/reference/mysql-conf.md"
		s.Refuse(v1alpha1.ReasonSettingsRefused, text)
	}
	r.base.Say(s, "", eventConfigKeysIgnored, text)
}
