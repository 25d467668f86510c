// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func TestWhoseTurnItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		held    map[string]int
		waiting string
		want    int
	}{
		"nobody waits":                           {nil, "", -1},
		"first come":                             {nil, "a b", 0},
		"one namespace alone":                    {map[string]int{"a": 5}, "a", 0},
		"one namespace has its share":            {map[string]int{"a": 6}, "a", -1},
		"another one finds room":                 {map[string]int{"a": 6}, "a a b", 2},
		"what others have makes the share small": {map[string]int{"a": 6, "b": 1}, "b", -1},
		"one that has none":                      {map[string]int{"a": 6, "b": 1}, "a b c", 2},
		"all are taken":                          {map[string]int{"a": 6, "b": 1, "c": 1}, "d", -1},
		"the fewest first":                       {map[string]int{"a": 2, "b": 1}, "a b", 1},
		"as few: first come":                     {map[string]int{"a": 1, "b": 1}, "b a", 0},
	} {
		if got := (share{tc.held, strings.Fields(tc.waiting)}).next(); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// However clones begin and end: never too many, no namespace has them all, and nobody who could begin waits behind a namespace that has more.
func TestNoNamespaceTakesAllClones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := share{held: map[string]int{}}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			namespace := rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "d"}).Draw(t, "namespace")
			if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				s.held[namespace] = max(0, s.held[namespace]-1)
			} else {
				s.waiting = append(s.waiting, namespace)
			}
			for i := s.next(); i >= 0; i = s.next() {
				for _, other := range s.waiting {
					if s.held[other] < s.held[s.waiting[i]] && s.held[other] == 0 {
						t.Fatalf("%s waits, and %s gets one more: %v", other, s.waiting[i], s.held)
					}
				}
				s.held[s.waiting[i]]++
				s.waiting = slices.Delete(s.waiting, i, i+1)
			}
			all := 0
			for n := range maps.Values(s.held) {
				all += n
				if n >= maxClones {
					t.Fatalf("one namespace has them all: %v", s.held)
				}
			}
			if all > maxClones {
				t.Fatalf("too many: %v", s.held)
			}
			for _, waits := range s.waiting {
				if s.held[waits] == 0 && all < maxClones {
					t.Fatalf("%s waits though there is room: %v", waits, s.held)
				}
			}
		}
	})
}

// A namespace whose clones never end does not keep another one waiting, and who waits no more stands in nobody's way.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slots
		began := make(chan func(), 100)
		take := func(ctx context.Context, namespace string) {
			go func() {
				if leave, err := s.take(ctx, namespace); err == nil {
					began <- leave
				}
			}()
			synctest.Wait()
		}
		for range 2 * maxClones {
			take(t.Context(), "greedy")
		}
		if len(began) != mostOf(0) {
			t.Fatalf("%d clones of one namespace", len(began))
		}
		take(t.Context(), "shop")
		if len(began) != mostOf(0)+1 {
			t.Fatal("another namespace waits")
		}
		for range len(began) {
			(<-began)() // as each ends, the next of those who wait begins
			synctest.Wait()
		}
		if len(began) != mostOf(0) {
			t.Fatalf("%d clones of one namespace", len(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		take(ctx, "gone")
		take(ctx, "gone")
		take(ctx, "gone")
		before := len(s.share.waiting)
		cancel()
		synctest.Wait()
		if len(began) != mostOf(0)+1 || len(s.share.waiting) != before-2 {
			t.Errorf("%d clones, %v wait", len(began), s.share.waiting)
		}
		for len(began) > 0 {
			(<-began)()
			synctest.Wait()
		}
		if len(s.share.held)+len(s.share.waiting)+len(s.granted) > 0 {
			t.Errorf("left over: %+v", s.share)
		}
	})
}
