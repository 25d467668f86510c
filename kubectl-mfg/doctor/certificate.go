// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// groupCertificate tells until when the group's certificate is valid, as status says: it reads no Secret.
func groupCertificate(_ context.Context, w World) []Finding {
	if w.Group.Spec.TLS == nil {
		return nil
	}
	look := wire.Remedy{Command: fmt.Sprintf("kubectl mfg certificates %s -n %s", w.Group.Name, w.Group.Namespace)}
	c, now := report.CertificateOf(w.Group), w.clock()
	if c == nil {
		return one(Unknown, look, "status says nothing of the group's certificate: there is none yet, or the operator is of an earlier version")
	}
	switch trouble, ended := c.Trouble(now); {
	case ended:
		return one(Fail, look, "%s: clients that verify it cannot connect", trouble)
	case trouble != "":
		return one(Warn, look, "%s", trouble)
	}
	return one(OK, wire.Remedy{}, "%s", c.Words(now))
}
