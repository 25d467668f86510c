// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"
)

// Moves that are under way.
func TestLooksAtMoves(t *testing.T) {
	const (
		planned   = "move Planned east west TakeOver - 3 w1 "
		emergency = "move Emergency east west TakeOver - 3 w1 "
		earlier   = "move Planned east west TakeOver - 4 w1 100ms"
		ended     = "mysql west epoch=3; see west master; see east replica=west; see south replica=west; quit east; traffic west; label west master; label east replica; "

		goesOn  = "as before CacheMoving; route to west; await connections at west; take over east -> west within 1.9s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"
		givenUp = "as before AsExpected; active east e1; event CacheMoveFailed; failed in 3; next 1ms"
		back    = " west>east TakeOver; cut clients of west; event CacheMoveFailed; failed in 3; next 1ms" // clients may have come by then
		toSouth = "cut clients of east; traffic off east; traffic on south; label east replica; next 1ms"
		cutOff  = "; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; next 1ms"
		silent  = "; route to west; traffic off east; promote west; traffic on west; next 1ms"
	)
	runLooks(t, []look{
		{name: "the target is silent", given: "see west silent run=; " + planned + "1s", want: givenUp, says: "it has not caught up"},
		{name: "the target began again", given: "see west run=w2; " + planned + "1s", want: "as before CacheMoving; Planned" + back, says: "its process began again"},
		{name: "a restarted master restarts once more", given: "see east run=e3; move CacheOnly east east Restart CacheMasterRestarted 3 e2 100ms",
			want: "as before AsExpected; active east e3; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"},
		{name: "a promotion to one that is silent by now", given: "see west silent; move CacheOnly east west Promotion CacheMasterSilent 3 w1 1s", want: givenUp},

		{name: "MySQL fails over once more to the same site", given: "mysql west epoch=5 Emergency; " + earlier, want: goesOn},
		{name: "MySQL fails over to where no cache answers", given: "mysql south epoch=5 Emergency; see south silent; " + earlier, want: goesOn},
		{name: "MySQL fails over to where no cache answers, and the old one is silent", given: "mysql south epoch=5 Emergency; see south silent; see east silent; " + earlier,
			want: "as before CacheMoving; next 100ms"},
		{name: "MySQL fails over to where the cache has not caught up", given: "mysql south epoch=5 Emergency; see south down; " + earlier, want: goesOn},
		{name: "MySQL is elsewhere under the epoch of the move", given: "mysql south epoch=4 Emergency; " + earlier, want: goesOn},
		{name: "MySQL is nowhere", given: "mysql south epoch=5 Emergency; nohome; " + earlier, want: goesOn},
		{name: "MySQL fails over to a third site", given: "mysql south epoch=5 Emergency; " + earlier,
			want: "as before CacheMoving; Emergency east>south TakeOver; route to south; take over east -> south within 3s; " + toSouth},
		{name: "MySQL moves on to a third site", given: "mysql south epoch=5 Planned; " + earlier,
			want: "as before CacheMoving; Planned east>south TakeOver; route to south; await connections at south; take over east -> south within 2s; " + toSouth},
		{name: "MySQL has failed over to a third site", given: "mysql south epoch=5 Emergency done; " + earlier,
			want: "as before CacheMoving; Home east>south TakeOver; route to south; await connections at south; take over east -> south within 2s; " + toSouth},
		{name: "MySQL has moved to a third site", given: "mysql south epoch=5 Planned done; " + earlier,
			want: "as before CacheMoving; Home east>south TakeOver; route to south; await connections at south; take over east -> south within 2s; " + toSouth},
		{name: "MySQL has moved on, and the target has taken over", given: "see west master; see east replica=west; see south replica=west; mysql south epoch=5 Planned done; " + earlier,
			want: "as before CacheMoving; Home west>south TakeOver; route to south; await connections at south; take over west -> south within 2s; cut clients of west; traffic off east; traffic off west; traffic on south; label west replica; next 1ms"},
		{name: "MySQL went back, and the old master has not let go", given: "mysql east epoch=5 Planned done; " + earlier,
			want: "as before CacheMoving; Home west>east TakeOver; cut clients of west; next 1ms"},

		{name: "clients of the old master are cut", given: ended + planned + "9s", want: "not CacheMoving; cut clients of east; next 1ms"},
		{name: "clients cannot be cut: done without, in the same process by name", given: ended + "status run=w1; hung 1s; " + planned + "11s",
			want: "ready AsExpected; active west w1; event CachePromoted; record Planned east>west TakeOver; next 1ms"},
		{name: "the cache alone has moved", given: ended + "cut east 1ms; move CacheOnly east west Promotion CacheMasterSilent 3 w1 1s",
			want: "as before AsExpected; active west w1; event CacheSessionsLost; record CacheOnly east>west Promotion CacheMasterSilent; alone; next 1ms"},

		{name: "handing over: the old master has not let go after all", given: "hung 10s; " + planned + "100ms", want: goesOn},
		{name: "handing over: not caught up", given: "see west down; " + planned + "1s", want: "as before CacheMoving; Planned" + back},
		{name: "handing over: too late", given: planned + "1950ms", want: "as before CacheMoving; Planned" + back, says: "within 2s"},
		{name: "handing over: a new leader gives it its whole time again", given: "began 100ms; " + planned + "1950ms", want: goesOn},
		{name: "handing over: begun by a leader whose clock is ahead", given: "began 100ms; " + planned + "-5s", want: goesOn},
		{name: "handing over: to a removed site", given: "see west removed; " + planned + "1s", want: "as before CacheMoving; Planned" + back},
		{name: "handing over: to a removed site in an emergency", given: "see west removed; " + emergency + "1s", want: "as before CacheMoving; Emergency" + back},
		{name: "handing over: to no pod in an emergency", given: "see west gone; " + emergency + "1s", want: givenUp},
		{name: "handing over: the site is given up", given: "see west syncing; " + emergency + "1s", want: "as before CacheMoving; traffic off east; next 100ms"},
		{name: "handing over: the site is given up, and the Service leads to it", given: "see west syncing; route east; " + emergency + "1s",
			want: "as before CacheMoving; route by labels; traffic off east; next 100ms"},
		{name: "handing over: too late in an emergency", given: emergency + "2950ms",
			want: "as before CacheMoving; Emergency east>west Promotion CacheTakeOverFailed; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; next 1ms"},
		{name: "handing over: not from one that loads", given: "see east loading; see west down; " + planned + "1s", want: "as before CacheMoving; next 100ms"},
		{name: "given up: both load", given: "see east loading; see west master loading; see south down; " + planned + "3s",
			want: "as before CacheMoving; Planned east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "given up: both hand over", given: "see east failing-over; see west master failing-over; " + planned + "1s",
			want: "as before CacheMoving; Planned west>east Promotion; route to east; traffic off west; promote east; traffic on east; west follows east; cut clients of west; event CacheMoveFailed; failed in 3; next 1ms"},
		{name: "given up: both hand over, and neither may be the master", given: "see east failing-over removed; see west master failing-over removed; " + planned + "1s",
			want: "as before CacheMoving; Planned west>east Promotion; event CacheMoveFailed; event CacheMoveFailed; event CacheMoveFailed; failed in 3; next 100ms"},
		{name: "given up: the question of somebody stays open", given: "ask south; see west down; " + planned + "1s", want: "as before CacheMoving; Planned" + back},
		{name: "given up: it was asked for", given: "ask west; see west down; move Requested east west TakeOver - 3 w1 1s",
			want: "as before CacheMoving; Requested west>east TakeOver; cut clients of west; event CacheMoveFailed; answer done=false failed=true CacheMoveFailed; failed in 3; next 1ms"},
		{name: "given up, and what was lost on the way is still said", given: "see west master; see south replica=west; see east replica=west down; mysql east epoch=5 Planned done; move Home west east TakeOver CacheMasterSilent 5 e1 1s",
			want: "as before CacheMoving; Home east>west TakeOver CacheMasterSilent; traffic off east; traffic on west; cut clients of east; event CacheMoveFailed; failed in 5; next 1ms"},
		{name: "MySQL went back to a site whose cache cannot take over", given: "see west master; see south replica=west; see east replica=west; unlisted east an odd address; mysql east epoch=5 Planned done; move Emergency east west Promotion CacheMasterSilent 3 w1 1s",
			want: "as before CacheMoving; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "given up: another was asked for meanwhile", given: "ask south; see west down; move Requested east west TakeOver - 3 w1 1s", want: "as before CacheMoving; Requested" + back},
		{name: "given up: it was asked for, and withdrawn", given: "see west down; move Requested east west TakeOver - 3 w1 1s", want: "as before CacheMoving; Requested" + back},

		{name: "hung: for a moment", given: "see east replica=west failing-over; hung 400ms; " + planned + "1s", want: "as before CacheMoving; hung; next 100ms"},
		{name: "hung: the target has all", given: "see east replica=west failing-over; hung 500ms; " + planned + "1s",
			want: "as before CacheMoving; Planned east>west Promotion; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; hung; next 1ms"},
		{name: "hung: the target lacks something", given: "see east replica=west failing-over; see west offset=499; hung 500ms; " + planned + "1s",
			want: "as before CacheMoving; Planned west>east Promotion; route to east; traffic off west; promote east; traffic on east; west follows east; cut clients of west; event CacheMoveFailed; failed in 3; next 1ms"},
		{name: "hung: the target had taken over and took writes before it went silent", given: "see east replica=west down; see west silent; quit east; traffic west; hung 500ms; " + planned + "1s",
			want: "as before CacheMoving; Planned west>east Promotion CacheMasterSilent; route to east; traffic off west; promote east; traffic on east; event CacheMoveFailed; failed in 3; next 1ms"},
		{name: "given up, and the target had taken writes before it went silent", given: "cut west 1ms; move Planned west east Promotion CacheMasterSilent 3 e1 1s",
			want: "as before AsExpected; active east e1; event CacheSessionsLost; record Planned west>east Promotion CacheMasterSilent; next 1ms"},
		{name: "hung: it was asked for", given: "ask west; see east replica=west failing-over; see west offset=499; hung 500ms; move Requested east west TakeOver - 3 w1 1s",
			want: "as before CacheMoving; Requested west>east Promotion; route to east; traffic off west; promote east; traffic on east; west follows east; cut clients of west; event CacheMoveFailed; answer done=false failed=true CacheMoveFailed; failed in 3; next 1ms"},
		{name: "hung: not one that loads", given: "see east replica=west loading; " + planned + "3s",
			want: "as before CacheMoving; Planned east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; next 1ms"},

		{name: "the old master began again, empty: the target has the data", given: "see east run=e2 keys=0; see west down; " + planned + "1s",
			want: "as before CacheMoving; Planned east>west Promotion CacheMasterRestarted" + cutOff, never: "stays on east"},
		{name: "the old master began again, in an emergency", given: "see east run=e2 keys=0; see west down; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterRestarted" + cutOff},
		{name: "the old master began again as a replica of nobody", given: "see east replica= down run=e2 keys=0 offset=0; hung 1s; " + planned + "1s",
			want: "as before CacheMoving; Planned east>west Promotion CacheMasterRestarted" + cutOff},
		{name: "the old master began again with its volume, and the target has the data", given: "see east run=e2 keys=300; see west down; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterRestarted" + cutOff},
		{name: "the old master began again with its volume, and the target has nothing", given: "see east run=e2 keys=90; see south gone; see west keys=0 offset=0 syncing; " + emergency + "1s",
			want: "as before CacheNoReplica; active east e2; event CacheMoveFailed; event CacheSessionsLost; record Emergency east>east Restart CacheMasterRestarted; failed in 3; next 1ms",
			says: "the master of the cache stays on east"},
		{name: "the old master began again with its volume, and the move was asked for", given: "ask west; see east run=e2 keys=90; see south gone; see west keys=0 offset=0 syncing; move Requested east west TakeOver - 3 w1 1s",
			want: "as before CacheNoReplica; active east e2; event CacheMoveFailed; event CacheSessionsLost; record Requested east>east Restart CacheMasterRestarted; answer done=false failed=true CacheMoveFailed; failed in 3; next 1ms"},
		{name: "the old master began again and loads, and the target has nothing", given: "see east run=e2 loading; see south gone; see west keys=0 offset=0 syncing; " + emergency + "1s",
			want: "as before CacheMoving; next 100ms"},
		{name: "the old master began again and loads, and the target has the data", given: "see east run=e2 loading; see west down; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterRestarted" + cutOff},
		{name: "the target was silent and comes as an empty master", given: "see west master run=w9 keys=0; move Emergency east west TakeOver - 3 - 1s",
			want: "as before CacheMoving; traffic off east; next 100ms"},

		{name: "the target was silent and comes as an empty master beside a silent one", given: "see east silent; away east 2s; see west master run=w9 keys=0; see south gone; move Emergency east west TakeOver - 3 - 1s",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; next 1ms"},
		{name: "the target was silent and comes as an empty master beside one that has let go", given: "see east replica=west failing-over; see west master run=w9 keys=0 offset=500; hung 500ms; move Planned east west TakeOver - 3 - 1s",
			want: "as before CacheMoving; Planned west>east Promotion; route to east; traffic off west; promote east; traffic on east; west follows east; cut clients of west; event CacheMoveFailed; failed in 3; next 1ms"},
		{name: "the target was silent and follows by now", given: "move Planned east west TakeOver - 3 - 100ms",
			want: "as before CacheMoving; Planned east>west TakeOver; route to west; await connections at west; take over east -> west within 1.9s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"},

		{name: "given up, and the master is another process by now", given: "cut west 1ms; see east run=e9; move Planned west east TakeOver - 3 e9 1s",
			want: "as before AsExpected; active east e9; event CacheSessionsLost; record Planned west>east TakeOver CacheMasterRestarted; next 1ms"},
		{name: "given up, another process, and why keys are lost was known", given: "cut west 1ms; see east run=e9; move Planned west east Promotion CacheTakeOverFailed 3 e9 1s",
			want: "as before AsExpected; active east e9; event CacheSessionsLost; record Planned west>east Promotion CacheTakeOverFailed; next 1ms"},
		{name: "given up, and which process it was is not known", given: "cut west 1ms; status run=; see east run=e9; move Planned west east TakeOver - 3 e9 1s",
			want: "as before AsExpected; active east e9; event CachePromoted; record Planned west>east TakeOver; next 1ms"},
		{name: "given up, and the target had taken writes before it began again", given: "cut west 1ms; move Planned west east TakeOver CacheTargetRestarted 3 e1 1s",
			want: "as before AsExpected; active east e1; event CacheSessionsLost; record Planned west>east TakeOver CacheTargetRestarted; next 1ms"},
		{name: "the old master began again and loads, and so does the target", given: "see east run=e2 loading; see south gone; see west loading; " + emergency + "1s",
			want: "as before CacheMoving; next 100ms"},
		{name: "the old master began again and loads for too long", given: "see east run=e2 loading; see south gone; see west keys=0 offset=0 syncing; " + emergency + "2m",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterRestarted" + cutOff},
		{name: "the old master began again and loads for too long, and so does the target", given: "see east run=e2 loading; see south gone; see west loading; " + emergency + "2m",
			want: "not CacheNoMaster; Emergency east>west Promotion CacheMasterRestarted; next 100ms"},
		{name: "the old master began again, and the target loads", given: "see east run=e2 keys=0; see west loading; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterRestarted; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "the first one is silent", given: "status active= run=; quit east; see east silent; see south replica=; see west replica=; move First - east FirstStart - 3 e1 1s",
			want: "as before CacheMoving; First >south FirstStart; route to south; promote south; traffic on south; next 1ms"},

		{name: "silent: one lost answer", given: "see east silent; " + planned + "1900ms", want: "as before CacheMoving; next 100ms"},
		{name: "silent: for too long", given: "see east silent; " + planned + "2s", want: "as before CacheMoving; Planned east>west Promotion CacheMasterSilent" + silent},
		{name: "silent: at once in an emergency", given: "see east silent; away east 2s; " + emergency + "1ms", want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent" + silent},
		{name: "silent: a few lost answers in an emergency", given: "see east silent; away east 1400ms; " + emergency + "1s", want: "as before CacheMoving; next 100ms"},
		{name: "silent: for the whole budget of an emergency", given: "see east silent; budget 1s; " + emergency + "1s", want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent" + silent},
		{name: "silent: without a pod, in an emergency", given: "see east gone; " + emergency + "1ms",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; promote west; traffic on west; next 1ms"},
		{name: "silent: another has data, and the move of MySQL goes on", given: "see east silent; away east 2s; see west keys=0; mysql west epoch=4 Emergency; move Emergency east west TakeOver - 4 w1 1s",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; failed in 4; next 1ms"},
		{name: "silent: at once with the cache alone", given: "see east silent; move CacheOnly east west TakeOver - 3 w1 1s", want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent" + silent},
		{name: "silent: both, and it was decided before", given: "see east silent; see west silent; move Planned east west Promotion CacheTakeOverFailed 3 w1 1s",
			want: "as before CacheMoving; Planned east>south Promotion CacheTakeOverFailed; route to south; traffic off east; promote south; traffic on south; next 1ms"},
		{name: "silent: another has data", given: "see east silent; away east 2s; see west keys=0; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; failed in 3; next 1ms"},
		{name: "silent: all", given: "see east silent; away east 2s; see south silent; see west silent; trouble west no disk; " + emergency + "1s", want: "not CacheNoMaster; next 100ms", says: ": no disk"},
		{name: "the first one is a replica of nobody", given: "status active= run=; see east replica=; move First - east FirstStart - 3 e1 1s",
			want: "as before CacheMoving; route to east; promote east; traffic on east; next 1ms"},

		{name: "the target began again, and another has the data", given: "see east silent; away east 2s; see west run=w2 keys=0; " + emergency + "1s",
			want: "as before CacheMoving; Emergency east>south Promotion CacheTargetRestarted; route to south; traffic off east; promote south; traffic on south; next 1ms"},
		{name: "the target began again, and why keys are lost was known", given: "see east silent; away east 2s; see west run=w2 keys=0; move Emergency east west Promotion CacheMasterSilent 3 w1 1s",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; next 1ms"},
		{name: "the target began again, and nobody can be the master", given: "see east silent; away east 2s; see south silent; see west run=w2 loading; " + emergency + "1s",
			want: "not CacheNoMaster; Emergency east>west Promotion CacheTargetRestarted; next 100ms"},
		{name: "the target began again, and is the master", given: ended + "see west run=w2 keys=0; cut east 1ms; move Planned east west Promotion CacheTargetRestarted 3 w2 1s",
			want: "as before AsExpected; active west w2; event CacheSessionsLost; record Planned east>west Promotion CacheTargetRestarted; next 1ms",
			says: "the process of the cache that was to be the master ended", never: "of east ended"},
		{name: "the first one began again", given: "status active= run=; quit east; see east replica= run=e2; move First - east FirstStart - 3 e1 1s",
			want: "as before CacheMoving; First >east FirstStart; route to east; promote east; traffic on east; next 1ms"},
	})
}

// Of two masters that with the traffic stays. MySQL goes back while a move ends: the old master has come back empty, and would throw away
// what the new one has, of which nobody would be told.
func TestGoesBackToNoSecondMaster(t *testing.T) {
	runLooks(t, []look{
		{name: "the old one came back empty", given: "see west master; see east master run=e2 keys=0; mysql east epoch=5 Planned done; move Planned east west TakeOver - 4 w1 100ms",
			want: "as before CacheMoving; traffic off east; traffic on west; east follows west; cut clients of east; next 1ms"},
		{name: "a third one is a master too", given: "see south master keys=0; mysql south epoch=5 Planned done; move Planned east west TakeOver - 4 w1 100ms",
			want: "as before CacheMoving; route to west; await connections at west; take over east -> west within 1.9s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"},
	})
}

// A target that was silent when the move began is known by its process from when it is seen to follow: only that one can take over.
func TestTheTargetIsKnownOnceItFollows(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest)
	w.prepare(t, "move Planned east west TakeOver - 3 - 100ms")
	if d := Decide(w.s, w.m); !d.Persist || d.Status.Transition == nil || d.Status.Transition.ToRun != "w1" {
		t.Errorf("got %+v", d.Status.Transition)
	}
	w.prepare(t, "move Planned east west TakeOver - 3 w1 100ms")
	if d := Decide(w.s, w.m); d.Persist {
		t.Errorf("it is written again: %+v", d.Status.Transition)
	}
}

// A request whose move failed gets its answer again if that could not be written. No move begins for it; one begins for the next request.
func TestAFailedMoveIsAnsweredUntilTheAnswerStands(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; ask west; move Requested east west TakeOver - 3 w1 2s")
	first := Decide(w.s, w.m)
	if first.Answer == nil || !first.Answer.Failed {
		t.Fatalf("answer %+v", first.Answer)
	}
	w.m, w.s.Status.Transition = first.Memory, nil
	w.s.Now = w.s.Now.Add(time.Hour)
	again := Decide(w.s, w.m)
	if again.Persist || again.Answer == nil || *again.Answer != *first.Answer {
		t.Errorf("%s", again.describe(w.s))
	}
	w.m, w.s.Request.ID = again.Memory, "2"
	if next := Decide(w.s, w.m); next.Answer != nil || next.Status.Transition == nil {
		t.Errorf("the next request: %s", next.describe(w.s))
	}
	w.s.Request.ID = "1"
	w.prepare(t, "status active=west run=w1; see west master; see east replica=west")
	if done := Decide(w.s, w.m); done.Answer == nil || !done.Answer.Done {
		t.Errorf("it came to it after all: %s", done.describe(w.s))
	}
}

// A replica that its master knows by no address of it cannot take over with every key. The Service never leads to it for an attempt that can
// only fail, and people hear why. In an emergency it replaces the master all the same.
func TestAReplicaThatCannotTakeOver(t *testing.T) {
	const alone = "see south down; unlisted west an odd address; "
	runLooks(t, []look{
		{name: "none can", given: alone, want: "not CacheNoReplica; next 500ms", says: "no replica can take over from it: losing it now would lose the sessions; west: an odd address"},
		{name: "one can", given: "unlisted west an odd address", want: "ready AsExpected; next 500ms", says: "1 of 2 replicas"},
		{name: "home", given: alone + "mysql west epoch=4 Emergency done; still 1h", want: "not CacheNotHome; next 500ms", says: "an odd address"},
		{name: "planned", given: alone + "mysql west epoch=4 Planned done; still 11s", want: "not CacheNotHome; next 500ms"},
		{name: "planned, which is reported", given: alone + "mysql west epoch=4 Planned done; still 12s", want: "not CacheNotHome; event CacheMoveFailed; next 500ms", says: "the cache of west cannot take over: an odd address"},
		{name: "leaving", given: alone + "see east leaving=drained", want: "not CacheNoReplica; next 500ms"},
		{name: "asked for", given: alone + "ask west", want: "not CacheNoReplica; answer done=false failed=false CacheTargetNotSynced; next 500ms"},
		{name: "in the middle of a move", given: alone + "move Home east west TakeOver - 3 w1 1s",
			want: "as before CacheMoving; Home west>east TakeOver; cut clients of west; event CacheMoveFailed; failed in 3; next 1ms", says: "it cannot take over: an odd address"},
		{name: "in an emergency", given: alone + "mysql west epoch=4 Emergency",
			want: "as before CacheMoving; Emergency east>west TakeOver; route to west; take over east -> west within 3s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"},
	})
	w := newWorld()
	w.prepare(t, atRest+"; unlisted west an odd address")
	if s := Decide(w.s, w.m).Synced[2]; s.Yes || s.Why != "the cache of west cannot take over from that of east: an odd address" {
		t.Errorf("west: %+v", s)
	}
}
