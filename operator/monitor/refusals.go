// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"strings"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Who can refuse to speak to the operator at a site.
const (
	fromSidecar = "sidecar "
	fromMySQL   = "mysql "
)

// refused notes why a site can be reached and not be spoken to, or with an empty text that it can be. To a decision such a
// site is silent; a person must be told what is wrong with it, because waiting does not mend it.
func (l *loop) refused(from, site, why string) {
	if why == "" {
		l.refusals.Delete(from + site)
		return
	}
	if before, _ := l.refusals.Swap(from+site, why); before != why {
		l.log.Warn("a site refuses the operator", "site", site, "from", strings.TrimSpace(from), "reason", why)
	}
}

// tellRefusals adds to the message of each site why it cannot be spoken to.
func (l *loop) tellRefusals(views []failover.View) {
	for i := range views {
		for _, from := range []string{fromSidecar, fromMySQL} {
			why, is := l.refusals.Load(from + views[i].Name)
			text, _ := why.(string)
			if !is || strings.Contains(views[i].Message, text) {
				continue
			}
			if views[i].Message != "" {
				views[i].Message += "; "
			}
			views[i].Message += text
		}
	}
}

// refusalOfSidecar is for a sidecar that answers and takes no statement.
func refusalOfSidecar(err error) string {
	switch {
	case errors.Is(err, errUnsigned):
		return "what answers as its sidecar does not authenticate its reports, which its pod was given a key for: see the log of the sidecar; or somebody else answers at the address of the pod"
	case errors.Is(err, errForged):
		return "what answers as its sidecar authenticates its reports with another key than that in the Secret for its reports: the pod gets a new one within two minutes; or somebody else answers at its address"
	}
	told, ok := errors.AsType[*apiclient.StatusError](err)
	if !ok || told.Reason != wire.ReasonBadStatement {
		return ""
	}
	return "its sidecar takes no statement, because it does not have the key that the operator signs with: authority.pub in its ConfigMap is not that of the group's authority Secret, or has not reached the pod yet"
}

// refusalOfMySQL is for a MySQL that answers and cannot be asked.
func refusalOfMySQL(err error) string {
	if why := mysql.Refusal(err); why != "" {
		return "the operator cannot ask its MySQL: " + why
	}
	return ""
}
