// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// confirmed ends the value of the annotation reclone-site that lets data be thrown away.
	confirmed = ":confirm"
	// orderOfPolicy is the order of spec.failover.onDivergence: Reclone. No site can be called so.
	orderOfPolicy = "onDivergence"
)

// order is somebody's word that the data of a site may be replaced although it is whole, or thrown away. It is in
// status.sites[].clone.order before anything is done under it. The zero value is no order.
type order struct {
	value string
	// from is the active site whose data was to replace the site's when the order was accepted; empty if that is not known.
	from string
	// begun is true once a clone under it is known to have begun, over once it was carried out.
	begun, over bool
	// acceptedAt is when it was accepted; zero if that is not known.
	acceptedAt time.Time
}

// standing is the order that status holds for a site.
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

// given is true while the order is to be carried out.
func (o order) given() bool { return o.value != "" && !o.over }

// discards is true if the order lets data be thrown away that nobody else has.
func (o order) discards() bool {
	return o.value == orderOfPolicy || strings.HasSuffix(o.value, confirmed)
}

// carriedOutBy is true if a clone that a server tells of was made under the order. A short one may be over before status
// says that it has begun, and the operator may die in that moment: it must not be made once more for that. Two clocks are
// compared; that a clone of before the order passes for its own takes a difference of more than the time in between, and
// then the site is judged by what it has.
func (o order) carriedOutBy(last mysql.CloneStatus) bool {
	return last.State == cloneCompleted && (o.begun || !o.acceptedAt.IsZero() && last.BeganAt.After(o.acceptedAt))
}

func (o order) carriedOut() order {
	o.over = true
	return o
}

// why is the reason of a clone under the order.
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
