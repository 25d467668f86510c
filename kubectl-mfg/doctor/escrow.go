// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// Endpoint is what the operator's escrow endpoint shows, and which authorities the group's sites trust.
type Endpoint struct {
	// Chain is what the endpoint showed, its own certificate first; Err says why it could not be asked.
	Chain []*x509.Certificate
	Err   error
	// Own is true if the operator makes the endpoint's certificate. Then it gives the sites its authority beside their token, where no
	// image has a program to read it, and Authorities stays empty.
	Own bool
	// Authorities is ca.crt as a pod of the group has it, PEM; AuthoritiesErr says why it could not be read.
	Authorities    []byte
	AuthoritiesErr error
}

// soon is how long before its end a certificate should have been renewed, at most; shorter-lived ones have a sixth of their time.
const soon = 7 * 24 * time.Hour

// escrow plays a sidecar that is about to hand over a keyring: would it trust the endpoint?
func escrow(_ context.Context, w World) []Finding {
	if w.Escrow == nil {
		return nil // the group is not encrypted
	}
	if w.Escrow.Err != nil {
		if apierrors.IsForbidden(w.Escrow.Err) {
			verb, kind := lackingToForward(w.Escrow.Err)
			return cannotSee(w.Escrow.Err, verb, kind, w.OperatorNamespace)
		}
		return one(Fail, wire.Remedy{Text: "see that auxiliary.escrowTLS.enabled is true in the chart mfg", Command: "helm get values mfg -n " + w.OperatorNamespace},
			"no keyring can be taken into escrow: the endpoint of the operator does not answer: %v", w.Escrow.Err)
	}
	shown, now := w.Escrow.Chain[0], w.clock()
	renew := wire.Remedy{Text: "renew the certificate in the Secret of auxiliary.escrowTLS; the operator reloads it"}
	name := "mfg-auxiliary." + w.OperatorNamespace + ".svc"
	rename := wire.Remedy{Text: "put a certificate for " + name + " into the Secret of auxiliary.escrowTLS"}
	if w.Escrow.Own {
		renew = wire.Remedy{Text: "the operator makes this certificate; its log says why it does not renew it",
			Command: fmt.Sprintf("kubectl logs -n %s -l %s --tail=100", w.OperatorNamespace, live.Selector)}
		rename = renew
	}
	switch err := shown.VerifyHostname(name); {
	case err != nil:
		return one(Fail, rename, "sidecars ask for %s, and the certificate is for %s",
			name, strings.Join(shown.DNSNames, ", "))
	case now.After(shown.NotAfter):
		return one(Fail, renew, "the certificate ended at %s: no keyring can be taken into escrow", shown.NotAfter.UTC().Format(time.RFC3339))
	case w.Escrow.AuthoritiesErr != nil:
		return one(Unknown, wire.Remedy{Text: "see that you may exec into the group's pods", Command: "kubectl auth can-i create pods/exec -n " + w.Group.Namespace},
			"the certificate is for %s; whether the sites believe its issuer %s cannot be seen: %v", name, shown.Issuer, w.Escrow.AuthoritiesErr)
	}
	if err := believed(w.Escrow, name, now); err != nil && !w.Escrow.Own {
		return one(Fail, wire.Remedy{Text: "let ca.crt in the Secret of spec.tls hold the authority that issued the escrow certificate"}, "the sites do not believe the endpoint: %v", err)
	}
	if left := shown.NotAfter.Sub(now); left < min(soon, shown.NotAfter.Sub(shown.NotBefore)/6) {
		return one(Warn, renew, "the certificate ends at %s", shown.NotAfter.UTC().Format(time.RFC3339))
	}
	if w.Escrow.Own {
		return one(OK, wire.Remedy{}, "the endpoint %s shows a certificate until %s; the operator makes it, and gives the sites its authority with their token",
			name, shown.NotAfter.UTC().Format(time.DateOnly))
	}
	return one(OK, wire.Remedy{}, "the sites believe the endpoint %s, until %s", name, shown.NotAfter.UTC().Format(time.DateOnly))
}

// lackingToForward says which of the two rights for a forwarded port is missing: the pod must be found first.
func lackingToForward(err error) (verb, kind string) {
	if strings.Contains(err.Error(), `cannot list resource "pods"`) {
		return "list", "pods"
	}
	return "create", "pods/portforward"
}

func believed(e *Endpoint, name string, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(e.Authorities)
	for _, c := range e.Chain[1:] {
		between.AddCert(c)
	}
	_, err := e.Chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: between, CurrentTime: now})
	return err
}
