// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"time"
)

// What is done for a group whose master need not move, and for one that has none yet.
func TestLooksAtRest(t *testing.T) {
	runLooks(t, []look{
		{name: "the first master does not come, and it is said why", given: "see east gone; see south gone; see west gone; status active= run=; trouble east no room; began 21s",
			want: "not CacheStarting; next 500ms", says: "the cache of east does not answer yet: no room"},
		{name: "first: a replica with the traffic is no master", given: "status active= run=; quit east; traffic south",
			want: "as before CacheMoving; First >east FirstStart; traffic off south; traffic on east; next 1ms"},
		{name: "first: a site that left the specification is none", given: "status active= run=; quit east; see south removed master; traffic south",
			want: "as before CacheMoving; First >east FirstStart; traffic off south; traffic on east; next 1ms"},
		{name: "first: nobody has the traffic, and a master is elsewhere", given: "status active= run=; quit east; mysql west epoch=3",
			want: "as before CacheMoving; First >west FirstStart; route to west; promote west; traffic on west; next 1ms"},
		{name: "first: the cache of the active site is waited for", given: "status active= run=; see east gone; began 19s", want: "not CacheStarting; next 500ms"},
		{name: "first: and not for ever", given: "status active= run=; see east gone; began 20s",
			want: "as before CacheMoving; First >south FirstStart; route to south; promote south; traffic on south; next 1ms"},
		{name: "first: the active site goes before one that has more", given: "status active= run=; quit east; see east replica=; see west offset=900; began 21s",
			want: "as before CacheMoving; First >east FirstStart; route to east; promote east; traffic on east; next 1ms"},
		{name: "first: only status was lost", given: "status active= run=; mysql west epoch=3",
			want: "as before CacheNotHome; active east e1; event CachePromoted; record First >east FirstStart; next 1ms"},
		{name: "a replica without a link is looked at sooner", given: "see west down", want: "ready AsExpected; next 500ms", says: "1 of 2"},
		{name: "a removed site is no replica", given: "see west removed down", want: "ready AsExpected", says: "1 of 1"},
		{name: "no replica at all is none that is missed", given: "see west removed; see south removed", want: "ready AsExpected", says: "0 of 0"},
		{name: "all replicas lost", given: "see west down; see south down", want: "not CacheNoReplica; next 500ms"},
		{name: "no active site", given: "nohome", want: "ready AsExpected"},
		{name: "the label of the master is put right", given: "label east -", want: "ready AsExpected; traffic on east"},
		{name: "the Service follows labels again, once every node knows", given: "route east; on east 1400ms", want: "ready AsExpected; next 100ms"},
		{name: "clients that came late to the old master are cut", given: "route east; on east 10s; last Home south east 3 1h", want: "ready AsExpected; route by labels; cut clients of south"},
		{name: "not those of one that is silent", given: "route east; on east 10s; last Home south east 3 1h; see south silent", want: "ready AsExpected; route by labels; next 500ms"},
		{name: "a Service that leads nowhere", given: "route ?; on east 1ms", want: "ready AsExpected; route by labels"},
		{name: "a Service that leads elsewhere", given: "route west", want: "ready AsExpected; route to east"},
		{name: "not those of a move to elsewhere", given: "route east; on east 10s; last Home south west 3 1h", want: "ready AsExpected; route by labels"},
		{name: "not those of one that is no replica", given: "route east; on east 10s; last Home south east 3 1h; see south master; ending south",
			want: "ready AsExpected; route by labels; next 500ms"},
		{name: "a second master with the label", given: "see south master keys=0; label south master",
			want: "ready AsExpected; south follows east; label south replica; cut clients of south; event CacheSecondMaster; next 500ms"},
		{name: "a second master with the traffic", given: "see south master keys=0; traffic south",
			want: "ready AsExpected; traffic off south; south follows east; cut clients of south; event CacheSecondMaster; next 500ms"},
		{name: "a second master with data", given: "see south master keys=1",
			want: "ready AsExpected; south follows east; cut clients of south; event CacheSecondMaster; next 500ms"},
		{name: "one that was a master for nobody", given: "see south master keys=0", want: "ready AsExpected; south follows east; cut clients of south; next 500ms"},
		{name: "a master that named east a moment ago", given: "see south master keys=0; names south east", want: "ready AsExpected; south follows east; cut clients of south; next 500ms"},
		{name: "a replica left in the middle of a failover", given: "see west failing-over", want: "ready AsExpected; west follows east"},
		{name: "a replica that stays without its master is told again", given: "see west down; apart west 5s", want: "ready AsExpected; west follows east; next 500ms"},
		{name: "not one that was told a moment ago", given: "see west down; apart west 4900ms", want: "ready AsExpected; next 500ms"},
		{name: "nor one that gets its first copy", given: "see west down syncing; apart west 1h", want: "ready AsExpected; next 500ms"},
		{name: "nor one that loads", given: "see west down loading; apart west 1h", want: "ready AsExpected; next 500ms"},
		{name: "nor one that is silent", given: "see west down silent; apart west 1h", want: "ready AsExpected; next 500ms"},
		{name: "one that loads is let be", given: "see west replica=south loading", want: "ready AsExpected; next 500ms"},
		{name: "the trouble of a replica is told", given: "see west silent; trouble west no disk", want: "ready AsExpected; next 500ms", says: "; west: no disk"},
		{name: "that of a removed site is not", given: "see west removed silent; trouble west no disk", want: "ready AsExpected", never: "no disk"},
		{name: "nor that of a master that answers", given: "trouble east odd", want: "ready AsExpected", never: "odd"},
		{name: "a master whose pod is replaced still answers", given: "ending east", want: "ready AsExpected", never: "no pod"},
	})
}

// Why a master that stands moves, and why not.
func TestLooksAtCauses(t *testing.T) {
	const (
		toWest = "route to west; await connections at west; take over east -> west within 2s; cut clients of east; traffic off east; traffic on west; label east replica; next 1ms"
		after  = "mysql west epoch=4 Planned done; linked west 1h; "
		home   = "mysql west epoch=4 Emergency done; still 1h; "

		inPlace = "as before AsExpected; active east e2; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"
	)
	runLooks(t, []look{
		{name: "restarted: which process had the traffic is not known", given: "status run=", want: "ready AsExpected"},
		{name: "restarted: not before it has loaded", given: "see east run=e2 loading", want: "as before CacheNoMaster; next 500ms"},
		{name: "restarted: nobody holds more", given: "see east run=e2 keys=0; see south keys=0; see west keys=0",
			want: "as before AsExpected; active east e2; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"},
		{name: "restarted: nobody answers but it", given: "see east run=e2 keys=0; see south silent; see west silent",
			want: "as before CacheNoReplica; active east e2; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"},
		{name: "restarted: empty while a replica is not", given: "see east run=e2 keys=0",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterRestarted; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "restarted: clients have written a little by then", given: "see east run=e2 keys=49",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterRestarted; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "restarted: it came back with more, and a replica followed until then", given: "held south e1; see south down; see west down; see east run=e2 keys=300",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterRestarted; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "restarted: a replica followed an earlier process", given: "held south e0; see east run=e2 keys=90", want: inPlace},
		{name: "restarted: a replica that followed until then is empty", given: "held south e1; see south keys=0; see east run=e2 keys=90", want: inPlace},
		{name: "restarted: it came back with half of it", given: "see east run=e2 keys=50",
			want: "as before AsExpected; active east e2; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"},
		{name: "restarted: held", given: "hold paused; see east run=e2 keys=0",
			want: "as before AsExpected; active east e2; event CacheSessionsLost; record CacheOnly east>east Restart CacheMasterRestarted; next 1ms"},

		{name: "moved: the target has no pod", given: "see west gone; mysql west epoch=4 Emergency", want: "not CacheNotHome; event CacheMoveFailed; failed in 4; next 500ms"},
		{name: "moved: the target was removed", given: "see west removed; mysql west epoch=4 Emergency", want: "not CacheNotHome; event CacheMoveFailed; failed in 4"},
		{name: "moved: the target is a master, and follows first", given: "see west master; mysql west epoch=4 Emergency",
			want: "not CacheNotHome; west follows east; cut clients of west; event CacheMoveFailed; event CacheSecondMaster; failed in 4; next 500ms"},
		{name: "moved: the master is well on a site that MySQL does not leave", given: "mysql south epoch=3 Emergency done; mysql west epoch=4 Emergency",
			want: "not CacheNotHome"},
		{name: "moved: the master is silent on a site that MySQL does not leave",
			given: "mysql south epoch=3 Emergency done; see east silent; away east 1500ms; mysql west epoch=4 Emergency",
			want:  "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; next 1ms"},
		{name: "moved: to nowhere", given: "mysql west epoch=3 Emergency; nohome", want: "ready AsExpected"},
		{name: "moved: a few lost answers", given: "see east silent; away east 1400ms; mysql west epoch=4 Emergency", want: "as before CacheMoving; Emergency east>west TakeOver; next 100ms"},
		{name: "moved: a few lost answers, and the target cannot take over", given: "see east silent; mysql west epoch=4 Emergency; see west gone; see south offset=900",
			want: "as before CacheNoMaster; next 100ms"},
		{name: "moved: silent, and the target goes before one that has more", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see south offset=900",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; next 1ms"},
		{name: "moved: silent, and nobody answers", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see south silent; see west silent",
			want: "not CacheNoMaster; Emergency east>west TakeOver; next 100ms"},
		{name: "moved: silent, and the target cannot be it", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see west loading",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; failed in 4; next 1ms"},
		{name: "moved: silent, the target is empty", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see west keys=0",
			want: "as before CacheMoving; Emergency east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; failed in 4; next 1ms"},
		{name: "moved: silent, all are empty", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see west keys=0 offset=0; see south keys=0",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; next 1ms"},
		{name: "moved: silent, the target is a master", given: "see east silent; away east 2s; mysql west epoch=4 Emergency; see west master",
			want: "as before CacheMoving; Emergency east>west Promotion CacheMasterSilent; traffic off east; traffic on west; next 1ms"},

		{name: "planned: not after an emergency", given: "mysql west epoch=4 Emergency done; still 3s; linked west 1h", want: "not CacheNotHome"},
		{name: "planned: not twice under an epoch", given: after + "still 3s; last Planned east west 4 1h", want: "not CacheNotHome"},
		{name: "planned: the master's process began again under that epoch, which was no move", given: after + "still 3s; last CacheOnly east east 4 1s", want: "as before CacheMoving; Planned east>west TakeOver; " + toWest},
		{name: "planned: not again at once after it failed", given: after + "still 1h; hold paused; failed 4 29s", want: "not CacheNotHome; failed in 4"},
		{name: "planned: again after a while, also in a paused group", given: after + "still 1h; hold paused; failed 4 30s",
			want: "as before CacheMoving; Planned east>west TakeOver; " + strings.Replace(toWest, "next", "failed in 4; next", 1)},
		{name: "planned: in a moment", given: after + "still 500ms", want: "as before CacheNotHome; next 1.5s"},
		{name: "planned: in no time, and yet not at once", given: after + "still 1950ms", want: "as before CacheNotHome; next 100ms"},
		{name: "planned: now", given: after + "still 2s", want: "as before CacheMoving; Planned east>west TakeOver; " + toWest},
		{name: "planned: a master that hands over already", given: after + "still 3s; see east failing-over", want: "as before CacheNoMaster; next 500ms"},
		{name: "planned: it has not caught up yet", given: after + "still 11s; see west down", want: "not CacheNotHome; next 500ms"},
		{name: "planned: it has not caught up in time, which is reported", given: after + "still 12s; see west down", want: "not CacheNotHome; event CacheMoveFailed; next 500ms", says: "stays on east"},
		{name: "planned: it has caught up late", given: after + "still 1h; hold paused", want: "as before CacheMoving; Planned east>west TakeOver; " + toWest},
		{name: "planned: a silent master is waited for", given: after + "still 3s; see east silent", want: "as before CacheNoMaster; next 500ms"},
		{name: "planned: a silent master is told of in the end", given: after + "still 1s; see east silent; away east 6s; hold paused", want: "not CacheNoMaster; next 500ms"},
		{name: "planned: the target leaves", given: after + "still 3s; see west leaving=drained", want: "not CacheNotHome"},
		{name: "planned: to nowhere", given: "mysql west epoch=3 Planned done; nohome", want: "ready AsExpected"},

		{name: "leaving: its site was removed", given: "see east removed; see south down",
			want: "as before CacheMoving; Rollout east>west TakeOver; " + toWest},
		{name: "leaving: not to a removed site", given: "see east leaving=drained; see south removed", want: "as before CacheMoving; Rollout east>west TakeOver; " + toWest},
		{name: "leaving: not to one that leaves too", given: "see east leaving=drained; see south leaving=drained offset=900", want: "as before CacheMoving; Rollout east>west TakeOver; " + toWest},
		{name: "leaving: to the site of MySQL, though another one holds a little more",
			given: "mysql west epoch=3 Emergency done; see east leaving=drained; see south offset=900; still 1h",
			want:  "as before CacheMoving; Rollout east>west TakeOver; " + toWest},
		{name: "leaving: not in the moment in which MySQL has moved", given: after + "see east leaving=drained; still 1500ms", want: "as before CacheNotHome; next 500ms"},
		{name: "leaving: a moment later", given: after + "see east leaving=drained; still 2s", want: "as before CacheMoving; Rollout east>west TakeOver; " + toWest},
		{name: "leaving: to nobody", given: "see east leaving=drained; see south down; see west down", want: "not CacheNoReplica; next 500ms"},
		{name: "leaving: no master that answers", given: "see east leaving=drained silent", want: "as before CacheNoMaster; next 500ms"},
		{name: "leaving: not while MySQL moves", given: "see east leaving=drained; mysql west epoch=4 Planned", want: "as before CacheNotHome; next 2s"},
		{name: "leaving: soon after one that failed", given: "see east leaving=drained; see south down; failed 4900ms", want: "ready AsExpected; next 500ms"},
		{name: "leaving: once more", given: "see east leaving=drained; see south down; failed 5s", want: "as before CacheMoving; Rollout east>west TakeOver; " + toWest},

		{name: "home", given: home, want: "as before CacheMoving; Home east>west TakeOver; " + toWest},
		{name: "home: held", given: home + "hold paused", want: "not CacheNotHome", says: "moves it nowhere: paused"},
		{name: "home: the master is silent", given: home + "see east silent", want: "as before CacheNoMaster; next 500ms"},
		{name: "home: it leaves", given: home + "see west leaving=drained", want: "not CacheNotHome"},
		{name: "home: it was removed", given: home + "see west removed", want: "not CacheNotHome"},
		{name: "home: it has only just caught up", given: home + "linked west 4900ms", want: "not CacheNotHome"},
		{name: "home: MySQL has only just come", given: home + "still 4900ms", want: "not CacheNotHome"},
		{name: "home: soon after one that failed", given: home + "failed 29s", want: "not CacheNotHome"},
		{name: "home: once more", given: home + "failed 30s", want: "as before CacheMoving; Home east>west TakeOver; " + toWest},
		{name: "home: a person put it where it is", given: home + "last Requested west east 4 1h", want: "not CacheNotHome"},
		{name: "home: a person put it there before MySQL moved", given: home + "last Requested west east 3 1h", want: "as before CacheMoving; Home east>west TakeOver; " + toWest},
		{name: "home: a person put it elsewhere", given: home + "last Requested west south 4 1h", want: "as before CacheMoving; Home east>west TakeOver; " + toWest},
	})
}

// The cache alone moves, and what a person asks for.
func TestLooksAtMovesOfTheCacheAlone(t *testing.T) {
	const nobody = "see south keys=0; see west keys=0; "
	const gone = "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; promote south; traffic on south; next 1ms"
	runLooks(t, []look{
		{name: "away: somebody else made it follow one that had not caught up", given: "see east replica=west; see west master; away east 2s",
			want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "away: somebody else moved the role", given: "held west e1; see east replica=west; see west master; away east 2s",
			want: "as before CacheMoving; CacheOnly east>west TakeOver; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "away: one that answers may come back for a moment", given: "see east replica=west; see west master; away east 1900ms", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: one that loads for longer", given: "see east loading; away east 4900ms", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: one that loads too long", given: "see east loading; away east 5s",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "away: one that loads while no other has a key", given: nobody + "see east loading; away east 119s", want: "not CacheNoMaster; next 500ms"},
		{name: "away: one that loads for minutes", given: nobody + "see east loading; away east 2m",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; east follows south; cut clients of east; next 1ms"},
		{name: "away: a silent one while no other has a key", given: nobody + "see east silent; away east 29s", want: "not CacheNoMaster; next 500ms"},
		{name: "away: one that stays silent while no other has a key", given: nobody + "see east silent; away east 30s",
			want: "as before CacheMoving; CacheOnly east>south Promotion CacheMasterSilent; route to south; traffic off east; promote south; traffic on south; next 1ms"},
		{name: "away: no pod while no other has a key", given: nobody + "see east gone; away east 2s", want: gone},
		{name: "away: a silent one for longer", given: "see east silent; away east 4900ms", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: no pod", given: "see east gone; away east 2s", want: gone},
		{name: "away: a restart in place was no promotion", given: "see east gone; away east 2s; last CacheOnly east east 3 10s", want: gone},
		{name: "away: a move home was none either", given: "see east gone; away east 2s; last Home west east 3 10s", want: gone},
		{name: "away: not again at once, whoever did it", given: "see east gone; away east 2s; last CacheOnly west east 3 59s", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: the last move is of a leader whose clock is ahead", given: "see east gone; away east 2s; last CacheOnly west east 3 -1h", want: gone},
		{name: "away: again after the cooldown", given: "see east gone; away east 2s; last CacheOnly west east 3 60s", want: gone},
		{name: "away: the later of the two counts", given: "see east gone; away east 2s; only 10s; last CacheOnly west east 3 70s", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: held", given: "see east gone; away east 2s; hold paused", want: "as before CacheNoMaster; next 500ms"},
		{name: "away: it lost the role and nothing else", given: "see east replica= offset=900; away east 3s; hung 1h",
			want: "as before CacheMoving; CacheOnly east>east Promotion; route to east; promote east; traffic on east; next 1ms"},
		{name: "away: another is the master, and it follows somebody else", given: "see east replica=south; see west master; away east 3s",
			want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "away: it follows one that is no master, and followed it until then", given: "held west e1; see east replica=west; see west offset=900; away east 3s",
			want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; next 1ms"},
		{name: "away: the new master followed it until then, and it follows another", given: "held west e1; see east replica=south; see west master; away east 3s",
			want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "away: it follows one that is no master", given: "see east replica=west; see west offset=900; away east 3s",
			want: "as before CacheMoving; CacheOnly east>west Promotion CacheMasterSilent; route to west; traffic off east; promote west; traffic on west; east follows west; cut clients of east; next 1ms"},

		{name: "asked while MySQL moves", given: "mysql west epoch=4 Planned; ask south", want: "as before CacheNotHome; next 2s"},
		{name: "asked for the master that is it", given: "ask east", want: "ready AsExpected; answer done=true failed=false"},
		{name: "asked for the master that hangs in handing over", given: "hold paused; see east failing-over; ask east",
			want: "as before CacheMoving; Requested east>east Promotion; route to east; promote east; traffic on east; next 1ms"},
		{name: "asked for the master that lost the role to no cache", given: "hold paused; see east replica=; ask east",
			want: "as before CacheMoving; Requested east>east Promotion; route to east; promote east; traffic on east; next 1ms"},
		{name: "asked for the master whose role another client moved", given: "hold paused; see east replica=west; see west master; ask east",
			want: "as before CacheMoving; Requested west>east TakeOver; route to east; await connections at east; take over west -> east within 2s; cut clients of west; traffic off west; traffic on east; label west replica; next 1ms"},
		{name: "asked for the master whose role another client moved a moment ago", given: "hold paused; see east replica=west down; see west master; ask east",
			want: "as before CacheNoMaster; answer done=false failed=false CacheTargetNotSynced; next 500ms"},
		{name: "asked for the one to which another client moved the role", given: "hold paused; see east replica=west; see west master; ask west",
			want: "as before CacheMoving; Requested east>west TakeOver; traffic off east; traffic on west; cut clients of east; next 1ms"},
		{name: "asked for the master that is silent", given: "see east silent; ask east", want: "as before CacheNoMaster; answer done=false failed=false CacheTargetNotSynced; next 500ms"},
		{name: "asked for one in place of a silent master", given: "hold paused; see east silent; see west down; away east 5s; ask west", want: "as before CacheMoving; Requested east>west TakeOver; next 100ms"},
		{name: "asked for one while the master misses an answer", given: "see east silent; see west down; away east 4900ms; ask west", want: "as before CacheNoMaster; next 500ms"},
		{name: "asked for one that began as a master, in place of a silent one", given: "hold paused; see east silent; see west master run=w9 keys=0; away east 5s; ask west",
			want: "as before CacheMoving; Requested east>west Promotion CacheMasterSilent; traffic off east; traffic on west; next 1ms"},
		{name: "asked for a silent one in place of a silent master", given: "see east silent; see west silent; ask west", want: "as before CacheNoMaster; answer done=false failed=false CacheTargetNotSynced; next 500ms"},
		{name: "asked for one that has not caught up", given: "see west down; ask west", want: "ready AsExpected; answer done=false failed=false CacheTargetNotSynced; next 500ms"},
		{name: "asked for a removed site", given: "see west removed; ask west", want: "ready AsExpected; answer done=false failed=false UnknownSite"},
	})
}

// An operator that was cut off from all caches knows nothing about the master: the first answer of a replica must not depose it.
func TestSilenceOfAllIsNotHeldAgainstTheMaster(t *testing.T) {
	for _, request := range []string{"", "hold paused; ask west"} {
		w := newWorld()
		w.prepare(t, atRest+"; see east silent; see south silent; see west silent")
		looks := func(n int) (d Decision) {
			for range n {
				w.s.Now = w.s.Now.Add(time.Second)
				d = Decide(w.s, w.m)
				w.m = d.Memory
			}
			return d
		}
		if d := looks(60); d.Keep || d.Ready || d.Status.Transition != nil {
			t.Errorf("all are silent: %s", d.describe(w.s))
		}
		w.pod("west").Reachable = true
		w.prepare(t, request)
		if d := looks(5); d.Status.Transition != nil {
			t.Errorf("%q: west answers for 4 s: %s", request, d.describe(w.s))
		}
		if d := looks(1); d.Status.Transition == nil {
			t.Errorf("%q: west answers for 5 s: %s", request, d.describe(w.s))
		}
	}
}

// The wait for a silent master goes on after the operator was cut off from all caches, and the time in between is no part of it.
func TestSilenceOfAllInTheMiddleIsNotHeldAgainstTheMaster(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; see east silent; see south silent")
	look := func(west bool) Decision {
		w.pod("west").Reachable = west
		w.s.Now = w.s.Now.Add(time.Second)
		d := Decide(w.s, w.m)
		w.m = d.Memory
		return d
	}
	for n, west := range []bool{true, true, true, false, false, false, false, false, false, false, true, true} {
		if d := look(west); d.Status.Transition != nil {
			t.Errorf("after look %d: %s", n+1, d.describe(w.s))
		}
	}
	if look(true); look(true).Status.Transition == nil {
		t.Error("west has answered for more than 5 s without the master, and waits")
	}
}

// A replica that misses an answer now and then, beside a master that hangs, must not have the wait begin again each time.
func TestAMissedAnswerDoesNotBeginTheWaitAgain(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; see east silent; see south silent")
	for n := range 16 { // west misses every fourth look
		w.pod("west").Reachable = n%4 != 3
		w.s.Now = w.s.Now.Add(500 * time.Millisecond)
		d := Decide(w.s, w.m)
		if w.m = d.Memory; d.Status.Transition != nil {
			if n < 10 {
				t.Errorf("after %d looks: %s", n+1, d.describe(w.s))
			}
			return
		}
	}
	t.Error("the master that hangs stays for 8 s")
}

// A master whose site left the specification and has no pod is in no list of pods. Another cache takes its place all the same.
func TestTheSiteOfTheMasterIsNoMore(t *testing.T) {
	for given, want := range map[string]string{
		"":                      "as before CacheMoving; CacheOnly north>south Promotion CacheMasterSilent; route to south; promote south; traffic on south; next 1ms",
		"hold paused; ask west": "as before CacheMoving; Requested north>west TakeOver; next 100ms",
	} {
		w := newWorld()
		w.prepare(t, `site south west; mysql south epoch=3; status active=north run=n1; see south replica=north down run=s1 keys=100 offset=500; label south replica;
			see west replica=north down run=w1 keys=100 offset=500; label west replica`)
		w.prepare(t, given)
		w.m = Decide(w.s, w.m).Memory
		w.s.Now = w.s.Now.Add(10 * time.Second)
		if got := Decide(w.s, w.m).brief(w.s); got != want {
			t.Errorf("%q: got %s\nwant %s", given, got, want)
		}
	}
}

// A replica that is told again gets as long as before to come: Dragonfly begins its copy from the start each time.
func TestTellsAReplicaAgainAtIntervals(t *testing.T) {
	w := newWorld()
	w.prepare(t, atRest+"; see west down")
	told := 0
	for range 100 {
		d := Decide(w.s, w.m)
		told += len(d.Actions)
		w.m, w.s.Now = d.Memory, w.s.Now.Add(restless)
	}
	if told != 9 {
		t.Errorf("told %d times in 50 s", told)
	}
}
