// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/certs"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

// The values of the label certificate.
const (
	ofServer    = "server"
	ofAuthority = "authority"
)

var (
	metricExpiry = metrics.Gauge(metrics.Group, "operator_certificate_expiry_timestamp_seconds",
		"When the certificate in the Secret of spec.tls ends (certificate=\"server\"), and with tls: {} the authority that signs it (\"authority\").", "certificate")
	metricLate = metrics.Gauge(metrics.Group, "operator_certificate_late",
		"1 if a site shows a certificate that should have been renewed, or its MySQL does not take the one in the Secret; else 0. Only with spec.tls.")
	metricEscrowExpiry = metrics.Gauge(metrics.Operator, "operator_escrow_certificate_expiry_timestamp_seconds",
		"When the certificate that the operator made for its escrow listener ends. Absent if it makes none.")
)

func show(key types.NamespacedName, d certs.Decision) {
	if !d.AuthorityEnds.IsZero() {
		metricExpiry.WithLabelValues(key.Namespace, key.Name, ofAuthority).Set(float64(d.AuthorityEnds.Unix()))
	}
}

// ShowServer shows when the certificate that a group uses ends, whoever made it.
func ShowServer(key types.NamespacedName, secret *corev1.Secret) {
	if ends, is := endOf(secret.Data[corev1.TLSCertKey]); is {
		metricExpiry.WithLabelValues(key.Namespace, key.Name, ofServer).Set(float64(ends.Unix()))
	}
}

// ShowLate shows whether a site is without the certificate that it should have.
func ShowLate(key types.NamespacedName, late bool) {
	value := 0.0
	if late {
		value = 1
	}
	metricLate.WithLabelValues(key.Namespace, key.Name).Set(value)
}

func endOf(file []byte) (time.Time, bool) {
	block, _ := pem.Decode(file)
	if block == nil {
		return time.Time{}, false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return c.NotAfter, true
}
