// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// sessionsOf are writes of two sessions, one every 10 ms each, on a cache for a second and then, after a pause, on another.
func sessionsOf(pause time.Duration) journal.Journal {
	j := journal.Journal{Writer: "w"}
	at := time.Duration(0)
	for _, site := range []string{"a", "b"} {
		for range 100 {
			at += 10 * time.Millisecond
			for worker := range 2 {
				j.Commits = append(j.Commits, journal.Commit{
					Key: journal.Key{Writer: "w", Worker: worker}, Server: journal.Server{Site: site},
					Start: at - time.Millisecond, Ack: at + time.Duration(worker)*time.Microsecond,
				})
			}
		}
		at += pause
	}
	return j
}

func TestACachesPauseIsThatOfTheUnluckiestSession(t *testing.T) {
	got := cachePauses(sessionsOf(200 * time.Millisecond))
	if len(got) != 1 || got[0].Seconds != 0.21 || !got[0].Whole || got[0].MergedSeconds != 0.21 {
		t.Errorf("pauses = %+v", got)
	}
	// One session comes back a second late.
	j := sessionsOf(200 * time.Millisecond)
	for i := len(j.Commits) - 1; i >= 0; i-- {
		if c := j.Commits[i]; c.Site == "b" && c.Worker == 1 && c.Ack < 2*time.Second {
			j.Commits = append(j.Commits[:i], j.Commits[i+1:]...)
		}
	}
	if got := cachePauses(j); len(got) != 1 || got[0].Seconds < 0.9 {
		t.Errorf("pauses = %+v", got)
	}
}

// good is a part within all its targets.
func good() *cachePlanned {
	p := &cachePlanned{}
	pause := 0.1
	for run := 1; run <= 5; run++ {
		s := sample{Run: run, Seconds: pause, OperatorSeconds: &pause}
		p.Without.Samples, p.With.Samples = append(p.Without.Samples, s), append(p.With.Samples, s)
		p.take(run, sessionsOf(200*time.Millisecond), cachePauses(sessionsOf(200*time.Millisecond)))
	}
	return p
}

func TestWhatTakesTheCacheOutOfItsTargets(t *testing.T) {
	for name, spoil := range map[string]func(p *cachePlanned){
		"":                 func(*cachePlanned) {},
		"a session lost":   func(p *cachePlanned) { p.SessionsLost = 1 },
		"two masters":      func(p *cachePlanned) { p.WritesAtOthers = 1 },
		"a run failed":     func(p *cachePlanned) { p.FailedRuns = []string{"x"} },
		"a row is missing": func(p *cachePlanned) { p.With.Samples[0].Lost = 1 },
		"no record":        func(p *cachePlanned) { p.note(&v1alpha1.MysqlFailoverGroup{}) },
		"not back":         func(p *cachePlanned) { p.CacheSamples[0].Whole = false },
		"slow":             func(p *cachePlanned) { p.CacheSamples[0].Seconds = 2 },
		"MySQL slower": func(p *cachePlanned) {
			slow := 0.2
			for i := range p.With.Samples {
				p.With.Samples[i].OperatorSeconds = &slow
			}
		},
		"nothing was measured": func(p *cachePlanned) { *p = cachePlanned{} },
	} {
		t.Run(name, func(t *testing.T) {
			p := good()
			spoil(p)
			if p.judge(); p.WithinTarget != (name == "") {
				t.Errorf("within = %t: %v, %s, %+v", p.WithinTarget, p.Against, p.Verdict, p.Targets)
			}
		})
	}
}

func TestRecordsOfAnEmergencyMustTellTheTruth(t *testing.T) {
	at := func(seconds int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(seconds, 0)) }
	taken := v1alpha1.CachePromotion{At: at(1), To: "west", Method: v1alpha1.CacheByTakeOver, SessionsPreserved: true}
	forced := v1alpha1.CachePromotion{At: at(1), To: "west", Method: v1alpha1.CacheByPromotion, Reason: "CacheMasterSilent"}
	silent := forced
	silent.Reason = ""
	elsewhere := forced
	elsewhere.To = "south"
	state := func(name string) cacheState {
		for _, s := range cacheStates() {
			if s.name == name {
				return s
			}
		}
		t.Fatal(name)
		return cacheState{}
	}
	for name, c := range map[string]struct {
		state string
		seen  []v1alpha1.CachePromotion
		right bool
	}{
		"healthy, taken over":        {"healthy", []v1alpha1.CachePromotion{taken}, true},
		"healthy, promoted":          {"healthy", []v1alpha1.CachePromotion{forced}, false},
		"dead, promoted":             {"dead", []v1alpha1.CachePromotion{forced}, true},
		"dead, said to be kept":      {"dead", []v1alpha1.CachePromotion{taken}, false},
		"dead, no reason":            {"dead", []v1alpha1.CachePromotion{silent}, false},
		"dead, by way of the third":  {"dead", []v1alpha1.CachePromotion{elsewhere, taken}, true},
		"dead, not where MySQL went": {"dead", []v1alpha1.CachePromotion{elsewhere}, false},
		"slow, either":               {"slow", []v1alpha1.CachePromotion{forced}, true},
		"nothing on record":          {"stopped", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if text := wrongRecords(state(c.state), c.seen, []sample{{To: "west"}}); (text == "") != c.right {
				t.Errorf("wrong = %q", text)
			}
		})
	}
}
