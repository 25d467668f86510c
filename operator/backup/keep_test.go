// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// days are backups named by their age in days; v marks a verified one, f one whose verification failed, u one in use, o one
// that is being verified.
func days(text string) (all []Artifact) {
	for word := range strings.FieldsSeq(text) {
		var age int
		_, _ = fmt.Sscanf(word, "%d", &age)
		all = append(all, Artifact{
			Name: word, FinishedAt: now.Add(-time.Duration(age) * 24 * time.Hour), Verified: strings.HasSuffix(word, "v"),
			Tried: strings.HasSuffix(word, "v") || strings.HasSuffix(word, "f"), InUse: strings.HasSuffix(word, "u"),
			Verifying: strings.HasSuffix(word, "o"),
		})
	}
	return all
}

// The archive goes on from the newest backup that it has come to: newer ones hold more than it does.
func TestTheBackupThatTheArchiveBuildsUpon(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		latest time.Duration
		want   string
	}{"it is up to date": {0, "1"}, "it is behind": {5 * day / 2, "3"}, "just at one": {3 * day, "3"}, "it is behind all": {9 * day, ""}} {
		if got := Base(days("2 4 1 3"), now.Add(-tc.latest)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := Base(days("1f 2f 3 4v"), now); got != "3" {
		t.Errorf("it builds upon %q, and from bad backups nothing can be restored", got)
	}
	if got := Base(days("1f 2f"), now); got != "" {
		t.Errorf("it builds upon %q, which is bad", got)
	}
}

func TestExpired(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]struct {
		all  string
		r    Retention
		want string
	}{
		"no rule keeps all":                   {"1 2 300", Retention{MinCount: 1}, ""},
		"count":                               {"1 2 3 4", Retention{Count: 2}, "4 3"},
		"in any order":                        {"3 1 4 2", Retention{Count: 2}, "4 3"},
		"age":                                 {"1 2 3 4", Retention{MaxAge: 2*day + 1}, "4 3"},
		"at the age":                          {"1 2", Retention{MaxAge: 2 * day}, "2"},
		"count or age, what keeps more":       {"1 2 3 4", Retention{Count: 1, MaxAge: 3*day + 1}, "4"},
		"age or count, what keeps more":       {"1 2 3 4", Retention{Count: 3, MaxAge: 1}, "4"},
		"the least of old ones":               {"0 100 200 300", Retention{MaxAge: day, MinCount: 2}, "300 200"},
		"none by age while no newer are made": {"100 200 300", Retention{MaxAge: day, MinCount: 2}, ""},
		"by count, however old all are":       {"100 200 300", Retention{Count: 1, MaxAge: day}, "300 200"},
		"never the last":                      {"100", Retention{MaxAge: day}, ""},
		"never the newest verified":           {"1 2 3v 4v", Retention{Count: 2}, "4v"},
		"never one in use":                    {"1 2 3u 4", Retention{Count: 2}, "4"},
		"a failed verification keeps nothing": {"1 2 3f", Retention{Count: 2}, "3f"},
		"nor does it take a place":            {"1f 2f 3", Retention{Count: 2}, ""},
		"of a good one":                       {"1f 2 3f 4 5", Retention{Count: 2}, "5"},
		"nor by age":                          {"0f 9f 10 11", Retention{MaxAge: day, MinCount: 1}, "11"},
		"all are bad":                         {"1f 2f 3f", Retention{Count: 1}, "3f"},
		"all but the oldest are bad":          {"1f 2f 3f 4", Retention{Count: 1}, "3f"},
		"of a clock that is behind":           {"0 1 -5 2", Retention{MaxAge: day}, "2 1"},
		"one of the future is not the newest": {"1 -5 2", Retention{Count: 1}, "2"},
		"nor the newest verified one":         {"1 -5v 2v 3v", Retention{Count: 1}, "3v"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Expired(days(tc.all), tc.r, now), " "); got != tc.want {
				t.Errorf("Expired = %q, want %q", got, tc.want)
			}
		})
	}
}

// What lies where nobody can look is not the one to verify, and is told. That no backup is made is worse, and told before it.
func TestElsewhere(t *testing.T) {
	all := days("1 2 3v")
	all[0].Elsewhere = true
	v := Verification{AfterEvery: 1}
	if got := v.Decide(all, now, now).Name; got != "2" {
		t.Errorf("verified: %q", got)
	}
	if s := (Health{All: all}).Ready(now); s.OK || s.Reason != v1alpha1.ReasonBackupElsewhere {
		t.Errorf("ready: %+v", s)
	}
	if s := (Health{All: all, FailedAt: now, FailedName: "last"}).Ready(now); s.Reason != v1alpha1.ReasonBackupFailed {
		t.Errorf("the last one failed: %+v", s)
	}
	// It stays, however old it is: only its MysqlBackup tells of it. And it keeps none that can be reached from being the newest.
	old := []Artifact{{Name: "old", FinishedAt: now.Add(-time.Hour), Elsewhere: true, Verified: true}, {Name: "b", FinishedAt: now.Add(-2 * time.Hour)}, {Name: "c", FinishedAt: now.Add(-3 * time.Hour)}}
	if gone := Expired(old, Retention{Count: 1}, now); !slices.Equal(gone, []string{"c"}) {
		t.Errorf("retention removes %v", gone)
	}
	all[0].Elsewhere = false
	if s := (Health{All: all}).Ready(now); !s.OK || v.Decide(all, now, now).Name != "1" {
		t.Errorf("none is elsewhere: %+v", s)
	}
}

// Whatever the rules, the newest and the newest verified stay, as many as are to be kept of those that are not bad, what one rule alone keeps stays, and a second pass removes nothing more.
func TestWhatIsKept(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []Artifact
		for i := range rapid.IntRange(0, 12).Draw(r, "backups") {
			tried := rapid.Bool().Draw(r, "tried")
			all = append(all, Artifact{
				Name: fmt.Sprint("b", i), FinishedAt: now.Add(-time.Duration(rapid.IntRange(-2, 40).Draw(r, "age")) * time.Hour),
				Tried: tried, Verified: tried && rapid.Bool().Draw(r, "verified"), InUse: rapid.IntRange(0, 5).Draw(r, "use") == 0,
			})
		}
		rules := Retention{
			Count: rapid.IntRange(0, 6).Draw(r, "count"), MinCount: rapid.IntRange(0, 6).Draw(r, "minCount"),
			MaxAge: time.Duration(rapid.IntRange(0, 30).Draw(r, "maxAge")) * time.Hour,
		}
		gone := Expired(all, rules, now)
		var left []Artifact
		for _, a := range all {
			if !slices.Contains(gone, a.Name) {
				left = append(left, a)
			} else if a.InUse || rules.MaxAge > 0 && now.Sub(a.FinishedAt) < rules.MaxAge {
				r.Fatalf("%+v is removed by %+v", a, rules)
			}
		}
		if left, all := withoutBad(left), withoutBad(all); len(left) < min(len(all), max(rules.Count, rules.MinCount, 1)) {
			r.Fatalf("%d that are not bad are left of %d by %+v", len(left), len(all), rules)
		}
		if len(all) > 0 && newestFirst(left)[0] != newestFirst(all)[0] {
			r.Fatal("the newest is removed")
		}
		if past := pastFirst(all, now); len(past) > 0 && !slices.Contains(left, past[0]) {
			r.Fatal("the newest of the past is removed")
		}
		is := func(a Artifact) bool { return a.Verified }
		if i := slices.IndexFunc(newestFirst(all), is); i >= 0 && !slices.Contains(left, newestFirst(all)[i]) {
			r.Fatal("the newest verified one is removed")
		}
		if again := Expired(left, rules, now); len(again) > 0 {
			r.Fatalf("a second pass removes %v", again)
		}
	})
}

func withoutBad(all []Artifact) []Artifact {
	return slices.DeleteFunc(slices.Clone(all), func(a Artifact) bool { return a.Tried && !a.Verified })
}

func TestVerificationDue(t *testing.T) {
	weekly := cronOf(t, "0 3 * * 0", time.UTC) // Sundays; now is a Tuesday
	tests := map[string]struct {
		v    Verification
		all  string
		seen time.Time
		want string
	}{
		"nothing to verify":           {Verification{AfterEvery: 1}, "", now, ""},
		"the first":                   {Verification{AfterEvery: 1}, "1", now, "1"},
		"each":                        {Verification{AfterEvery: 1}, "1 2v", now, "1"},
		"not twice":                   {Verification{AfterEvery: 1}, "1v 2", now, ""},
		"not after a failure":         {Verification{AfterEvery: 1}, "1f", now, ""},
		"too few":                     {Verification{AfterEvery: 3}, "1 2 3v", now, ""},
		"enough":                      {Verification{AfterEvery: 3}, "1 2 3 4v", now, "1"},
		"enough since none":           {Verification{AfterEvery: 3}, "1 2 3", now, "1"},
		"a failure counts as a try":   {Verification{AfterEvery: 2}, "1 2f 3", now, ""},
		"never":                       {Verification{}, "1 2 3", now, ""},
		"by the cron, made up for":    {Verification{Cron: weekly, HasCron: true}, "1 2", now.Add(-72 * time.Hour), ""},
		"by the cron":                 {Verification{Cron: weekly, HasCron: true}, "3 4v", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), "3"},
		"by the cron, again the same": {Verification{Cron: weekly, HasCron: true}, "3v", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), "3v"},
		"by the cron, dealt with":     {Verification{Cron: weekly, HasCron: true}, "3", time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC), ""},
		"none of the future":          {Verification{AfterEvery: 1}, "-5v 1 2v", now, "1"},
		"not while one is verified":   {Verification{AfterEvery: 1}, "1 2o 3 4v", now, ""},
		"nor one of the future":       {Verification{AfterEvery: 1}, "-5o 1 2v", now, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			when := now
			if tc.v.HasCron && tc.want != "" || name == "by the cron, dealt with" {
				when = time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC)
			}
			got := tc.v.Decide(days(tc.all), tc.seen, when)
			if got.Name != tc.want {
				t.Errorf("due %+v, want %q", got, tc.want)
			}
			if again := tc.v.Decide(days(tc.all), got.Seen, when); tc.v.HasCron && again.Name != "" {
				t.Errorf("due twice by the cron: %+v", again)
			}
		})
	}
}

// A time of the cron at which there is nothing to verify is not dealt with: the first backup after it is verified while that is not too late.
func TestTheCronWithoutABackup(t *testing.T) {
	v := Verification{Cron: cronOf(t, "0 3 * * 0", time.UTC), HasCron: true}
	seen, sunday := at(t, "2026-11-21T00:00:00Z"), at(t, "2026-11-22T04:00:00Z")
	away := days("3")
	away[0].Elsewhere = true
	for name, all := range map[string][]Artifact{"none": nil, "none within reach": away, "none of the past": days("-5")} {
		if got := v.Decide(all, seen, sunday); got.Name != "" || !got.Seen.Equal(seen) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := v.Decide(days("3 4o"), seen, sunday); got.Name != "" || !got.Seen.Equal(seen) {
		t.Errorf("one is being verified: %+v", got)
	}
	if got := v.Decide(days("3"), seen, sunday); got.Name != "3" || !got.Seen.After(seen) {
		t.Errorf("one comes: %+v", got)
	}
}
