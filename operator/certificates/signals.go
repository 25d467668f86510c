// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// The values of the label certificate.
const (
	ofServer    = "server"
	ofAuthority = "authority"
)

var (
	metricExpiry = metrics.Gauge(metrics.Group, "operator_certificate_expiry_timestamp_seconds",
		"When the certificate in the Secret of spec.tls ends (certificate=\"server\"), and the authority that signed it (\"authority\").", "certificate")
	metricRenewal = metrics.Gauge(metrics.Group, "operator_certificate_renewal_timestamp_seconds",
		"From when on the operator makes another certificate, or authority. Absent for what the operator does not renew.", "certificate")
	metricNotice = metrics.Gauge(metrics.Group, "operator_certificate_notice_timestamp_seconds",
		"From when on TLSReady says that a certificate, or its authority, ends soon. Absent for what the operator renews.", "certificate")
	metricLate = metrics.Gauge(metrics.Group, "operator_certificate_late",
		"1 if a site shows a certificate that should have been renewed, or its MySQL does not take the one in the Secret; else 0. Only with spec.tls.")
	metricEscrowExpiry = metrics.Gauge(metrics.Operator, "operator_escrow_certificate_expiry_timestamp_seconds",
		"When the certificate of the operator's escrow listener ends, also one that a person made. Absent without the listener, and until it has one.")
	metricEscrowNotice = metrics.Gauge(metrics.Operator, "operator_escrow_certificate_notice_timestamp_seconds",
		"From when on the certificate of the operator's escrow listener ends soon. Absent if the operator renews it.")
	metricEscrowRenewal = metrics.Gauge(metrics.Operator, "operator_escrow_certificate_renewal_timestamp_seconds",
		"From when on the operator makes another certificate for its escrow listener. Absent if it makes none.")
)

// ShowEscrow shows when the certificate of the escrow listener ends, if a person made it.
func ShowEscrow(c *x509.Certificate) {
	metricEscrowExpiry.WithLabelValues().Set(float64(c.NotAfter.Unix()))
	metricEscrowNotice.WithLabelValues().Set(float64(noticeOf(c.NotBefore, c.NotAfter).Unix()))
}

// Show shows when the certificate that a group uses ends, also one that a person made, and when it is renewed.
func Show(key types.NamespacedName, d Dates) {
	set(metricExpiry, key, ofServer, d.ServerEnds)
	set(metricExpiry, key, ofAuthority, d.AuthorityEnds)
	set(metricNotice, key, ofServer, d.ServerNotice())
	set(metricNotice, key, ofAuthority, d.AuthorityNotice())
	set(metricRenewal, key, ofServer, d.ServerRenews)
	set(metricRenewal, key, ofAuthority, d.AuthorityRenews)
}

// set removes the series of an unknown time: 0 would be a certificate that ended in 1970.
func set(metric *prometheus.GaugeVec, key types.NamespacedName, of string, at time.Time) {
	if at.IsZero() {
		metric.DeleteLabelValues(key.Namespace, key.Name, of)
		return
	}
	metric.WithLabelValues(key.Namespace, key.Name, of).Set(float64(at.Unix()))
}

// ShowLate shows whether a site is without the certificate that it should have.
func ShowLate(key types.NamespacedName, late bool) {
	value := 0.0
	if late {
		value = 1
	}
	metricLate.WithLabelValues(key.Namespace, key.Name).Set(value)
}
