// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// confirmed ends a value of the annotation reclone-site that lets the operator throw data away.
	confirmed = ":confirm"
	// orderOfPolicy is the order that spec.failover.onDivergence: Reclone gives. No site can have this name.
	orderOfPolicy = "onDivergence"
)

// order permits the operator to replace the data of a site although it is whole, or to throw it away. It is in
// status.sites[].clone.order before anything is done under it. The zero value is no order.
type order struct {
	value string
	// from is the active site whose data should replace the site's when the order was accepted; empty if not known.
	from string
	// begun is true once a clone under the order is known to have begun, over once the order was carried out.
	begun, over bool
	// acceptedAt is when the order was accepted; zero if not known.
	acceptedAt time.Time
}

// standing is the order that status has for a site.
func standing(clone *v1alpha1.CloneProgress) order {
	if clone == nil {
		return order{}
	}
	o := order{value: clone.Order, from: clone.Source, begun: clone.Order != "" && clone.Stage != ""}
	if clone.Order != "" && clone.StartedAt != nil {
		o.acceptedAt = clone.StartedAt.Time
	}
	return o
}

// given is true while the order must still be carried out.
func (o order) given() bool { return o.value != "" && !o.over }

// discards is true if the order lets the operator throw away data that no other site has.
func (o order) discards() bool {
	return o.value == orderOfPolicy || strings.HasSuffix(o.value, confirmed)
}

// carriedOutBy is true if a clone that a server reports was made under the order. A short clone may be over before status
// says that it has begun, and the operator may die in that moment: that must not cause a second clone. It compares two
// clocks: if they differ by more than the time between an earlier clone and the order, that clone passes for the order's,
// and the site is judged by the data that it has.
func (o order) carriedOutBy(last mysql.CloneStatus) bool {
	return last.State == cloneCompleted && (o.begun || !o.acceptedAt.IsZero() && last.BeganAt.After(o.acceptedAt))
}

func (o order) carriedOut() order {
	o.over = true
	return o
}

// why is the reason for a clone under the order.
func (o order) why() string {
	if o.value == orderOfPolicy {
		return "it has diverged, and spec.failover.onDivergence is Reclone"
	}
	return "a person ordered it (" + o.value + ")"
}

// request is the value of the annotation reclone-site.
type request struct {
	value, site string
	confirmed   bool
}

func parseRequest(value string) request {
	site, sure := strings.CutSuffix(value, confirmed)
	return request{value: value, site: site, confirmed: sure}
}
