// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

func TestNumbersThatAreNews(t *testing.T) {
	status := func(behind, used int64) *v1alpha1.CacheStatus {
		return &v1alpha1.CacheStatus{Sites: []v1alpha1.CacheSiteStatus{{Name: "west", OffsetBehind: &behind, UsedMemory: resource.NewQuantity(used, resource.BinarySI)}}}
	}
	unknown := &v1alpha1.CacheStatus{Sites: []v1alpha1.CacheSiteStatus{{Name: "west"}}}
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		before, now *v1alpha1.CacheStatus
		want        bool
	}{
		"the same":                       {status(0, 4*mib), status(0, 4*mib), false},
		"a little more memory":           {status(0, 4*mib), status(0, 11*mib), false},
		"more memory":                    {status(0, 4*mib), status(0, 12*mib), true},
		"less memory":                    {status(0, 12*mib), status(0, 4*mib), true},
		"a little more of a large cache": {status(0, 800*mib), status(0, 900*mib), false},
		"more of a large cache":          {status(0, 800*mib), status(0, 920*mib), true},
		"it falls behind":                {status(0, mib), status(100, mib), true},
		"it has caught up":               {status(100, mib), status(0, mib), true},
		"a little further behind":        {status(1000, mib), status(1099, mib), false},
		"further behind, but not much":   {status(80000, mib), status(90000, mib), false},
		"much further behind":            {status(80000, mib), status(95000, mib), true},
		"known by now":                   {unknown, status(0, mib), true},
		"no longer known":                {status(0, mib), unknown, true},
		"another number of sites":        {status(0, mib), &v1alpha1.CacheStatus{}, true},
		"nothing was written":            {nil, unknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isNews(tc.before, tc.now); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestBehindIsRough(t *testing.T) {
	for _, tc := range []struct {
		master, replica cache.Pod
		want            int64
	}{
		{cache.Pod{Offset: 100000}, cache.Pod{Offset: 100000 - 65535}, 0},
		{cache.Pod{Offset: 100000}, cache.Pod{Offset: 100000 - 65536}, 65536},
		{cache.Pod{}, cache.Pod{Lag: 99}, 0},
		{cache.Pod{}, cache.Pod{Lag: 100}, 100},
	} {
		if got := behindOf(tc.master, tc.replica); got != tc.want {
			t.Errorf("%+v, %+v: %d, want %d", tc.master, tc.replica, got, tc.want)
		}
	}
}

// What changes with every look is not written again and again: a group at rest costs the API server nothing.
func TestAGroupAtRestWritesNoStatus(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(6)
	before := w.group().ResourceVersion
	for i := range 5 {
		w.engine("east").info.Offset += 5000
		w.engine("west").info.UsedMemory += int64(i) << 18
		w.l.said.written = time.Time{}
		w.passes(1)
	}
	if after := w.group().ResourceVersion; after != before {
		t.Errorf("status was written: version %s, then %s", before, after)
	}
}
