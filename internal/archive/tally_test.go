// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

const serverB = "0a0b0c0d-0000-0000-0000-000000000002"

// counted is what a tally makes of GTIDs in this order, and the sum of what their texts say.
func counted(t *testing.T, of func(add func(server, tag string, n int64))) (got, want gtid.Set) {
	t.Helper()
	var sum tally
	of(func(server, tag string, n int64) {
		text := fmt.Sprintf("%s:%d", server, n)
		if tag != "" {
			text = fmt.Sprintf("%s:%s:%d", server, tag, n)
		}
		e := &replication.GtidTaggedLogEvent{GTIDEvent: replication.GTIDEvent{SID: uuidBytes(server), Tag: protocol.NewTag(tag), GNO: n}}
		if !sum.goesOn(e) {
			sum.begin(text, e)
		}
		want = want.Union(gtid.MustParse(text))
	})
	return sum.sum(), want
}

// What follows in a run is taken without its text. It must be the same GTID: of the same server, with the same tag, and the next one.
func TestARunIsOfOneServerAndOneTag(t *testing.T) {
	for name, of := range map[string]func(add func(server, tag string, n int64)){
		"one run":                   func(add func(string, string, int64)) { add(serverA, "", 7); add(serverA, "", 8); add(serverA, "", 9) },
		"another server's next":     func(add func(string, string, int64)) { add(serverA, "", 7); add(serverB, "", 8); add(serverA, "", 8) },
		"the next with a tag":       func(add func(string, string, int64)) { add(serverA, "", 7); add(serverA, "blue", 8) },
		"the next with another tag": func(add func(string, string, int64)) { add(serverA, "blue", 7); add(serverA, "green", 8) },
		"the next without the tag":  func(add func(string, string, int64)) { add(serverA, "blue", 7); add(serverA, "", 8) },
		"a hole":                    func(add func(string, string, int64)) { add(serverA, "", 7); add(serverA, "", 9) },
		"an earlier one":            func(add func(string, string, int64)) { add(serverA, "", 7); add(serverA, "", 6) },
		"the same one":              func(add func(string, string, int64)) { add(serverA, "", 7); add(serverA, "", 7) },
		"the last one that there is": func(add func(string, string, int64)) {
			add(serverA, "", math.MaxInt64-2)
			add(serverA, "", math.MaxInt64-1)
		},
		"many runs, more than gather": func(add func(string, string, int64)) {
			for n := range int64(runsMax + 10) {
				add(serverA, "", 2*n+1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := counted(t, of); !got.Equal(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestATallyIsTheSumOfTheTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		got, want := counted(t, func(add func(string, string, int64)) {
			n := int64(1)
			server, tag := serverA, ""
			for range 100 {
				switch rnd.IntN(12) {
				case 0:
					server = []string{serverA, serverB}[rnd.IntN(2)]
				case 1:
					tag = []string{"", "blue", "green"}[rnd.IntN(3)]
				case 2:
					n = rnd.Int64N(50) + 1
				default:
					n++
				}
				add(server, tag, n)
			}
		})
		if !got.Equal(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
