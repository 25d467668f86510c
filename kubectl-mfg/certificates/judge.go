// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/chain"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

const (
	// notice is how long before its end a certificate should have been renewed, at most; shorter-lived ones have a sixth of their time.
	notice = 14 * 24 * time.Hour
	// overdue is how long after its time the operator's renewal counts as late.
	overdue = 24 * time.Hour
)

// judging is the work of one report.
type judging struct {
	Facts
	rep Report
	// authorities are those of ca.crt, server is the certificate of the Secret with those in between; nil if there is none.
	authorities, server []*x509.Certificate
}

// Build judges.
func Build(f Facts) Report {
	g := f.Group
	j := &judging{Facts: f, rep: Report{
		APIVersion: report.APIVersion, Kind: "MfgCertificatesReport", Metadata: report.Metadata{Name: g.Name, Namespace: g.Namespace},
		MadeBy: madeBy(g.Spec.TLS), Secret: g.Spec.TLS.Secret(g.Name), Certificates: []Certificate{},
	}}
	j.secret()
	j.changing()
	for _, s := range f.Sites {
		j.site(s)
	}
	if f.Escrow != nil {
		j.escrow()
	}
	return j.rep
}

func madeBy(spec *v1alpha1.TLSSpec) string {
	switch {
	case spec.Made():
		return "Operator"
	case spec.IssuerRef != nil:
		return "Issuer"
	}
	return "Somebody"
}

func (j *judging) found(check string, level Level, remedy, format string, args ...any) {
	j.rep.Findings = append(j.rep.Findings, Finding{Check: check, Level: level, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// status is the command that shows what TLSReady says.
func (j *judging) status() string {
	return fmt.Sprintf("kubectl mfg status %s -n %s", j.Group.Name, j.Group.Namespace)
}

// remedy says what to do about what a check found. The operator replaces an authority of its own long before it ends, so something keeps
// it from that. A new certificate by the same authority helps no more, and status says what does.
func (j *judging) remedy(check string) string {
	if check == Authority && j.rep.MadeBy == "Operator" {
		return j.status()
	}
	return j.renew()
}

// renew says what to do about a certificate of the Secret.
func (j *judging) renew() string {
	switch j.rep.MadeBy {
	case "Operator":
		return fmt.Sprintf("kubectl mfg certificates renew %s -n %s", j.Group.Name, j.Group.Namespace)
	case "Issuer":
		return fmt.Sprintf("kubectl -n %s describe certificate mysql-%s", j.Group.Namespace, j.Group.Name)
	}
	return "put a renewed certificate into Secret " + j.rep.Secret
}

// secret judges what is in the Secret of spec.tls.
func (j *judging) secret() {
	switch {
	case j.SecretErr != nil:
		j.found("secret", Unknown, "kubectl auth can-i get secret/"+j.rep.Secret+" -n "+j.Group.Namespace, "Secret %s was not read: %v", j.rep.Secret, j.SecretErr)
		return
	case j.Secret == nil:
		j.found("secret", Fail, j.status(), "Secret %s does not exist", j.rep.Secret)
		return
	}
	j.authorities, j.server = chain.Read(j.Secret.Data["ca.crt"]), chain.Read(j.Secret.Data["tls.crt"])
	before := len(j.rep.Findings)
	if len(j.authorities) == 0 {
		j.found(Authority, Fail, j.remedy(Authority), "ca.crt holds no certificate that can be read")
	}
	if len(j.server) == 0 {
		j.found(Server, Fail, j.renew(), "tls.crt holds no certificate that can be read")
		return
	}
	above := chain.Above(j.server, j.authorities)
	var signer *x509.Certificate
	if above != nil {
		signer = above[len(above)-1]
	}
	for _, c := range j.authorities {
		j.authority(c, signer)
	}
	if above != nil && !chain.EndsFirst(above).Equal(signer) {
		j.time(Authority, rowOf(Authority, "", chain.EndsFirst(above), j.Now)) // an intermediate is not in ca.crt, and ends what it has signed
	}
	leaf := j.server[0]
	row := rowOf(Server, "", leaf, j.Now)
	row.Renewal = j.renewal(func(c *v1alpha1.CertificateStatus) *time.Time { return timeOf(c.Renewal) })
	j.rep.Certificates = append(j.rep.Certificates, row)
	if _, err := chain.Pair(j.Secret.Data["tls.crt"], j.Secret.Data["tls.key"]); err != nil {
		// Never with the error's own words: they might quote what a person wrote there.
		j.found(Server, Fail, j.renew(), "tls.crt and tls.key are no pair of a certificate and its key")
	}
	if signer == nil {
		j.found(Server, Fail, j.renew(), "no authority in ca.crt has signed it: it was signed by %s", leaf.Issuer)
	}
	if missing := j.missingNames(leaf); len(missing) > 0 {
		j.found(Server, Fail, j.renew(), "it lacks the name %s", strings.Join(missing, ", "))
	}
	j.time(Server, row)
	if len(j.rep.Findings) == before {
		j.found(Server, OK, "", "Secret %s is good until %s%s", j.rep.Secret, leaf.NotAfter.UTC().Format(time.DateOnly), whenRenewed(row))
	}
}

func whenRenewed(c Certificate) string {
	if c.Renewal == nil {
		return "; the operator does not renew it"
	}
	return "; the operator renews it from " + c.Renewal.Format(time.DateOnly) + " on"
}

// authority adds one of ca.crt. Only the one that the certificate relies on matters if it ends.
func (j *judging) authority(c, signer *x509.Certificate) {
	row := rowOf(Authority, "", c, j.Now)
	switch {
	case signer == nil:
	case c.Equal(signer):
		row.Role = Signs
		row.Renewal = j.renewal(func(c *v1alpha1.CertificateStatus) *time.Time { return timeOf(c.AuthorityRenewal) })
		j.time(Authority, row)
	case c.NotBefore.After(signer.NotBefore):
		row.Role = SignsNext
	default:
		row.Role = Former
	}
	if j.rep.MadeBy != "Operator" && row.Role != Signs {
		row.Role = "" // the purpose of an authority that a person put there is unknown
	}
	j.rep.Certificates = append(j.rep.Certificates, row)
}

// renewal returns what the operator says about it in status.
func (j *judging) renewal(of func(*v1alpha1.CertificateStatus) *time.Time) *time.Time {
	if t := j.Group.Status.TLS; t != nil && t.Certificate != nil {
		return of(t.Certificate)
	}
	return nil
}

// time judges the time of its validity.
func (j *judging) time(check string, c Certificate) {
	at := c.NotAfter.Format(time.RFC3339)
	switch {
	case j.Now.After(c.NotAfter):
		j.found(check, Fail, j.remedy(check), "it expired at %s: clients that verify it cannot connect", at)
	case j.Now.Before(c.NotBefore):
		j.found(check, Fail, "see that the clocks of who made it and of the nodes are right", "it is not good before %s", c.NotBefore.Format(time.RFC3339))
	case c.Renewal != nil && j.Now.Sub(*c.Renewal) > overdue:
		j.found(check, Warn, j.status(),
			"the operator should have renewed it at %s; it ends at %s", c.Renewal.Format(time.RFC3339), at)
	case c.Renewal == nil && c.NotAfter.Sub(j.Now) < min(notice, c.NotAfter.Sub(c.NotBefore)/6):
		j.found(check, Warn, j.remedy(check), "it ends at %s, and the operator does not renew it", at)
	}
}

func (j *judging) missingNames(leaf *x509.Certificate) (missing []string) {
	for _, s := range j.Group.Spec.Sites {
		if name := v1alpha1.SiteName(j.Group.Name, s.Name) + "." + j.Group.Namespace + ".svc"; leaf.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// changing reports a replacement of the authority, and an order without an answer.
func (j *judging) changing() {
	if c := meta.FindStatusCondition(j.Group.Status.Conditions, v1alpha1.ConditionTLSReady); c != nil && c.Reason == string(v1alpha1.ReasonCertificateAuthorityChanging) {
		j.found(Authority, OK, "", "it is being replaced: %s", c.Message)
	}
	if value, asked := j.Group.Annotations[v1alpha1.AnnotationRotateCertificate]; asked {
		j.found("order", OK, "", "a new certificate was requested, and the operator has not answered yet (%s)", value)
	}
}

// site judges what a site's MySQL shows.
func (j *judging) site(s Shown) {
	check := Site + " " + s.Name
	if s.Err != nil || len(s.Chain) == 0 {
		j.found(check, Unknown, "", "what MySQL shows was not seen: %v", s.Err)
		return
	}
	row := rowOf(Site, s.Name, s.Chain[0], j.Now)
	same := len(j.server) > 0 && s.Chain[0].Equal(j.server[0])
	if len(j.server) > 0 {
		row.Role = map[bool]string{true: Current, false: Other}[same]
	}
	j.rep.Certificates = append(j.rep.Certificates, row)
	until := row.NotAfter.Format(time.RFC3339)
	switch {
	case j.Now.After(row.NotAfter):
		j.found(check, Fail, j.renew(), "MySQL shows a certificate that ended at %s", until)
	case len(j.authorities) > 0 && chain.Above(s.Chain, j.authorities) == nil:
		j.found(check, Fail, j.renew(), "MySQL shows a certificate that no authority in ca.crt has signed; it was signed by %s", s.Chain[0].Issuer)
	case len(j.server) > 0 && !same:
		j.found(check, Warn, "wait some minutes; then see TLSReady: "+j.status(),
			"MySQL shows another certificate than that in the Secret, until %s; it takes a new one within minutes", until)
	default:
		j.found(check, OK, "", "MySQL shows it")
	}
}

// escrowRemedy is for both who may make the listener's certificate: this report does not know which.
const escrowRemedy = "if the operator makes it, its log says why it does not renew it; otherwise renew it in the Secret of auxiliary.escrowTLS.existingSecret"

// escrow judges what the operator's listener shows. The doctor checks whether sites trust it.
func (j *judging) escrow() {
	if j.Escrow.Err != nil || len(j.Escrow.Chain) == 0 {
		j.found(Escrow, Unknown, "", "what the escrow listener shows was not seen: %v", j.Escrow.Err)
		return
	}
	row := rowOf(Escrow, "", j.Escrow.Chain[0], j.Now)
	j.rep.Certificates = append(j.rep.Certificates, row)
	switch left := row.NotAfter.Sub(j.Now); {
	case left <= 0:
		j.found(Escrow, Fail, escrowRemedy,
			"it ended at %s: no keyring can be taken into escrow", row.NotAfter.Format(time.RFC3339))
	case left < min(notice, row.NotAfter.Sub(row.NotBefore)/6):
		j.found(Escrow, Warn, escrowRemedy,
			"it ends at %s", row.NotAfter.Format(time.RFC3339))
	default:
		j.found(Escrow, OK, "", "the listener shows a certificate until %s", row.NotAfter.Format(time.DateOnly))
	}
}
