// SPDX-License-Identifier: Apache-2.0

package cachedesk

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// counting is a Port that takes a second for each word, and knows how many it listens to at once.
type counting struct{ now, most atomic.Int32 }

func (c *counting) Moved(string, string, cache.MySQL) {
	if now := c.now.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	time.Sleep(time.Second)
	c.now.Add(-1)
}

func (c *counting) Readiness(string, string, string) cache.Readiness {
	return cache.Readiness{Known: true, Why: "it lags"}
}

// I22: a word that is under way is waited for before the next one, so that one Port that hangs holds one goroutine, and the last word is last.
func TestOneWordAtATimeI22(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		port := &counting{}
		desk := &Desk{Port: port}
		for epoch := range int64(9) {
			// Also two words at once, before anybody has begun to tell the first.
			desk.Tell(failover.Durable{ActiveSite: "east", Epoch: epoch + 1})
			desk.Tell(failover.Durable{ActiveSite: "west", Epoch: epoch + 1})
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if most := port.most.Load(); most != 1 {
			t.Errorf("I22: %d words are told at once", most)
		}
	})
}

// I22: an answer ends its question, and the next one can be asked.
func TestAQuestionIsAskedAgainI22(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &Desk{Port: &counting{}}
		for range 3 {
			if got, _ := desk.Behind("west"); got != "it lags" {
				t.Errorf("I22: behind: %q", got)
			}
			synctest.Wait()
		}
	})
}
