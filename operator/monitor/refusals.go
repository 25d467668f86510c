// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"strconv"
	"strings"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// The programs that can refuse to speak to the operator at a site.
const (
	fromSidecar = "sidecar "
	fromMySQL   = "mysql "
)

// refused notes why a site can be reached but refuses to speak, or, with an empty text, that it speaks. A decision takes
// such a site for silent; a person must learn what is wrong, because waiting does not mend it.
func (c *siteClient) refused(from, site, why string) {
	if why == "" {
		c.refusals.Delete(from + site)
		return
	}
	if before, _ := c.refusals.Swap(from+site, why); before != why {
		c.log.Warn("a site refuses the operator", "site", site, "from", strings.TrimSpace(from), "reason", why)
	}
}

// tellRefusals adds to the message of each site why it refuses to speak.
func (c *siteClient) tellRefusals(views []failover.View) {
	for i, view := range views {
		for _, from := range []string{fromSidecar, fromMySQL} {
			why, is := c.refusals.Load(from + view.Name)
			text, _ := why.(string)
			if !is || strings.Contains(view.Message, text) {
				continue
			}
			if view.Message != "" {
				view.Message += "; "
			}
			view.Message += text
		}
		views[i] = view
	}
}

// badAnswer is an answer of a sidecar that is no report, and what to tell a person about it.
type badAnswer struct{ reason, message string }

// badAnswer notes what a sidecar answered instead of a report, or that it did not. A decision takes it for silence: it proves
// nothing, acknowledges no epoch, and shows no lease to be over. But no waiting mends it, so it is told and counted.
func (c *siteClient) badAnswer(site string, bad badAnswer) {
	if bad.reason != "" {
		badAnswers.WithLabelValues(c.key.Namespace, c.key.Name, site, bad.reason).Inc()
	}
	c.refused(fromSidecar, site, bad.message)
}

// badAnswerOf is empty for a report of the pod that was meant, and for a sidecar that did not answer at all. It repeats
// nothing that a stranger may have written.
func badAnswerOf(err error, r wire.Report) badAnswer {
	told, refused := errors.AsType[*apiclient.StatusError](err)
	switch {
	case refused && told.Reason == wire.ReasonBadStatement:
		return badAnswer{answerBadStatement, "its sidecar takes no statement: nothing leads from the key that its pod was started with to the one that the operator signs with; the pod is replaced for it, one site after the other"}
	case refused:
		return badAnswer{answerRefused, "its sidecar refuses the operator with HTTP status " + strconv.Itoa(told.Code)}
	case errors.Is(err, apiclient.ErrTooLarge):
		return badAnswer{answerTooLarge, "its sidecar answers with more than a report can be, so it counts as silent: delete the pod if that does not end"}
	case errors.Is(err, apiclient.ErrUnreadable):
		return badAnswer{answerUnreadable, "what answers at its sidecar's port is no report, so it counts as silent: delete the pod if that does not end"}
	case errors.Is(err, errOtherPod):
		return badAnswer{answerOtherPod, "another pod or site answers at its address, so it counts as silent"}
	case errors.Is(err, errUnsigned):
		return badAnswer{answerUnauthenticated, "what answers as its sidecar does not authenticate its reports, which its pod was given a key for: see the log of the sidecar; or another program answers at the address of the pod"}
	case errors.Is(err, errForged):
		return badAnswer{answerUnauthenticated, "what answers as its sidecar authenticates its reports with another key than that in the Secret for its reports: the pod gets a new one within two minutes; or another program answers at its address"}
	case err != nil:
		return badAnswer{} // no answer: the decision tells that
	case r.Overlong():
		return badAnswer{answerTooLarge, "its sidecar answers with more than a report can hold, so it counts as silent: delete the pod if that does not end"}
	}
	return badAnswer{}
}

// Bounds for the contents of a report.
const (
	longestText = wire.LongestText
	longestName = wire.LongestName
)
