// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestAgesOfSeveralMessages: of messages that are delivered together, the newest word on a group's age counts. A delta is one too.
func TestAgesOfSeveralMessages(t *testing.T) {
	told := Told{Status: wire.GroupStatus{Namespace: "shop", Group: "orders"}}
	var c Changes
	c.add(Changes{Ages: map[string]time.Duration{"shop/orders": time.Minute, "shop/carts": time.Minute}})
	c.add(Changes{Groups: []Told{told}})
	if _, old := c.Ages["shop/orders"]; old || c.Ages["shop/carts"] != time.Minute {
		t.Errorf("after a delta: %v", c.Ages)
	}
	c.add(Changes{Ages: map[string]time.Duration{"shop/carts": time.Second}})
	if c.Ages["shop/carts"] != time.Second {
		t.Errorf("after another ping: %v", c.Ages)
	}
	c.add(Changes{Whole: true, Groups: []Told{told}, Ages: map[string]time.Duration{"shop/orders": time.Hour}})
	if len(c.Ages) != 1 || c.Ages["shop/orders"] != time.Hour {
		t.Errorf("after a snapshot: %v", c.Ages)
	}
}
