// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestI17PrunesOnlySupersededVersions(t *testing.T) {
	tests := map[string]struct {
		reason string
		phase  v1alpha1.KeyringPhase
		given  []change
		want   []string
	}{
		"few":         {"two are kept", sealed, nil, nil},
		"many":        {"the oldest go", sealed, []change{func(_ *Group, s *Site) { s.Versions = append(s.Versions, ver(4), ver(5)); seal5(s) }}, []string{ver(1).Name, ver(2).Name}},
		"rolled back": {"what is newer can be rolled forward to", sealed, []change{func(_ *Group, s *Site) { s.Versions = append(s.Versions, ver(4), ver(5)) }}, nil},
		"still in use": {"a pod refers to it", sealed, []change{func(_ *Group, s *Site) {
			s.Versions = append(s.Versions, ver(4), ver(5))
			seal5(s)
			s.InUse = append(s.InUse, ver(1).Name)
		}}, []string{ver(2).Name}},
		"not sealed":     {"nobody knows what it will need", unsealed, []change{unsealedFor(clone, digest("5")), func(_ *Group, s *Site) { s.Versions = append(s.Versions, ver(4), ver(5)) }}, nil},
		"unsealed, many": {"the same, and one of them may be what its data needs", unsealed, []change{unsealedFor(clone, digest("5")), func(_ *Group, s *Site) { s.Versions = append(s.Versions, ver(4), ver(5)); seal5(s) }}, nil},
		"damaged": {"nothing goes while one is damaged", sealed, []change{func(_ *Group, s *Site) {
			s.Versions = append(s.Versions, ver(4), ver(5))
			seal5(s)
			s.Versions[4].Digest = "other"
		}}, nil},
		"sealed one gone": {"nothing goes while one is missing", failed, []change{gone}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := at(tt.phase, tt.given...)
			if diff := cmp.Diff(tt.want, prunable(s, 2)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func seal5(s *Site) {
	s.Status.KeyringSecret, s.Status.KeyringVersion, s.Status.KeyringDigest = ver(5).Name, 5, ver(5).Digest
}

func TestI17NeverPrunesWhatIsNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Site
		for i := range rapid.Int64Range(1, 9).Draw(t, "versions") {
			s.Versions = append(s.Versions, ver(i+1))
		}
		current := rapid.SampledFrom(s.Versions).Draw(t, "current")
		s.Status = v1alpha1.SiteKeyringStatus{
			Phase: sealed, KeyringSecret: current.Name, KeyringVersion: current.Number, KeyringDigest: current.Digest,
		}
		for _, v := range s.Versions {
			if rapid.Bool().Draw(t, "used") {
				s.InUse = append(s.InUse, v.Name)
			}
		}
		retain := rapid.IntRange(2, 4).Draw(t, "retain")
		names := prunable(s, retain)
		left := 0
		for _, v := range s.Versions {
			pruned := slices.Contains(names, v.Name)
			if pruned && (v.Number >= current.Number || slices.Contains(s.InUse, v.Name)) {
				t.Fatalf("prunes %s, sealed with %s, in use %v", v.Name, current.Name, s.InUse)
			}
			if !pruned && v.Number < current.Number {
				left++
			}
		}
		if len(names) > 0 && left < retain {
			t.Fatalf("keeps %d superseded versions, want %d", left, retain)
		}
	})
}
