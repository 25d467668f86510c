// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// fullVolume follows docs/alerts.md on a volume that is nearly full, in the group of docs/install.md. The lab's storage cannot grow:
// the operator says so, and the same command takes the slip back.
func fullVolume(t *testing.T, g *stage.Group) {
	t.Helper()
	ctx := t.Context()
	group, err := g.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	follow := func(name string, env ...string) {
		onLab(t, name, pageWord.ReplaceAllString(commandsOf(t, "alerts.md", name), ownNamespace), env...)
	}
	for _, site := range group.Spec.Sites {
		follow("purge binary logs", "SITE="+site.Name)
	}
	before := group.Spec.Sites[0].Storage.Size
	grown := before.DeepCopy()
	grown.Add(before)
	for _, step := range []struct {
		size   string
		refuse bool
	}{{grown.String(), true}, {before.String(), false}} {
		follow("enlarge a volume", "SIZE="+step.size)
		if err := stage.Poll(ctx, time.Minute, "the operator on a volume of "+step.size, func(context.Context) error {
			now, err := g.Get(ctx)
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionProgressing)
			if c == nil || now.Spec.Sites[0].Storage.Size.String() != step.size ||
				(c.Reason == string(v1alpha1.ReasonVolumeCannotGrow)) != step.refuse {
				return fmt.Errorf("size %s, condition %v", now.Spec.Sites[0].Storage.Size.String(), c)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}
