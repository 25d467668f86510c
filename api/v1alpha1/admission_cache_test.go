// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

// A person changes the storage of a cache by turning it off and on. Only a running cache keeps its storage.
func TestTheStorageOfACache(t *testing.T) {
	const (
		path   = "spec.cache.storage"
		none   = "spec/cache = {enabled: true}"
		off    = "spec/cache = {enabled: false}"
		one    = "spec/cache = {enabled: true, storage: {size: 1Gi}}"
		oneOff = "spec/cache = {enabled: false, storage: {size: 1Gi}}"
		same   = "spec/cache = {enabled: true, storage: {size: 1024Mi}}"
		two    = "spec/cache = {enabled: true, storage: {size: 2Gi}}"
		twoOff = "spec/cache = {enabled: false, storage: {size: 2Gi}}"
		fast   = "spec/cache = {enabled: true, storage: {size: 1Gi, storageClassName: fast}}"
		slow   = "spec/cache = {enabled: true, storage: {size: 1Gi, storageClassName: slow}}"
		empty  = `spec/cache = {enabled: true, storage: {size: 1Gi, storageClassName: ""}}`
	)
	s := newServer(t)
	for name, tc := range map[string]struct {
		steps   []edit
		refused bool // the last step is refused
	}{
		"another size while it runs":              {[]edit{one, two}, true},
		"a smaller size while it runs":            {[]edit{two, one}, true},
		"the same size in other words":            {[]edit{one, same, one}, false},
		"another class while it runs":             {[]edit{fast, slow}, true},
		"a class comes while it runs":             {[]edit{one, fast}, true},
		"a class goes while it runs":              {[]edit{fast, one}, true},
		"the empty class is another than none":    {[]edit{one, empty}, true},
		"storage comes while it runs":             {[]edit{none, one}, true},
		"storage goes while it runs":              {[]edit{one, none}, true},
		"nothing changes":                         {[]edit{fast, fast}, false},
		"off, and on with another size":           {[]edit{one, oneOff, two}, false},
		"another size while it is off":            {[]edit{one, oneOff, twoOff, two}, false},
		"another size as it is turned off":        {[]edit{one, twoOff, two}, false},
		"off, and on without storage":             {[]edit{one, oneOff, none}, false},
		"off, and on with storage":                {[]edit{none, off, one}, false},
		"off, and on with another class":          {[]edit{fast, oneOff, slow}, false},
		"on again, and it keeps what it then has": {[]edit{one, oneOff, two, one}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var was map[string]any
			for i, step := range tc.steps {
				now := parse(t, minimal)
				step.apply(t, now)
				if tc.refused && i == len(tc.steps)-1 {
					wantError(t, s, now, was, path)
				} else if errs := s.admit(now, was); len(errs) != 0 {
					t.Fatalf("step %d is refused: %v", i, errs)
				}
				was = now
			}
		})
	}
}

// The operator writes the names of processes into status. A long one would leave no room for what MySQL's failover writes there.
func TestTheNamesOfProcessesAreShort(t *testing.T) {
	long := strings.Repeat("x", 129)
	s := newServer(t)
	for name, tc := range map[string]struct {
		change string
		path   string
	}{
		"the master":    {"status/cache = {activeRun: " + long + "}", "status.cache.activeRun"},
		"its successor": {"status/cache = {transition: {kind: Home, to: a, toRun: " + long + ", startedAt: \"2026-01-01T00:00:00.000000Z\"}}", "status.cache.transition.toRun"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, minimal)
			edit(tc.change).apply(t, object)
			wantError(t, s, object, nil, tc.path)
		})
	}
}
