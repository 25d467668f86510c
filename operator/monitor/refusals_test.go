// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// refusing is a Pusher that answers with an error.
type refusing struct{ err error }

func (p refusing) PushActiveSite(context.Context, string, wire.ActiveSite) (wire.Answer, error) {
	return wire.Answer{Report: wire.Report{Site: "east", PodUID: "pod-1"}}, p.err
}

// TestARefusalIsToldAsSuch: to the decision such a site is silent, but no waiting mends it, so a person must be told.
func TestARefusalIsToldAsSuch(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	l := testLoop(t, refusing{&apiclient.StatusError{Code: 401, Reason: wire.ReasonBadStatement}}, nil)
	message := func() string {
		views := []failover.View{{Name: "east", Message: "the sidecar answers"}, {Name: "west"}}
		l.tellRefusals(views)
		if views[1].Message != "" {
			t.Errorf("west: %q", views[1].Message)
		}
		return views[0].Message
	}
	if l.push(t.Context(), nil, asking{pod, "east", ""}).Answered {
		t.Error("a refusal counts as an answer")
	}
	if got := message(); !strings.HasPrefix(got, "the sidecar answers; its sidecar takes no statement") {
		t.Errorf("message %q", got)
	}
	l.m.Push = refusing{}
	l.push(t.Context(), nil, asking{pod, "east", ""})
	if got := message(); got != "the sidecar answers" {
		t.Errorf("it is told although it is over: %q", got)
	}
	ended := x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotAfter: time.Unix(0, 0)}}
	l.refused(fromMySQL, "east", refusalOfMySQL(fmt.Errorf("read status: %w", ended)))
	if got := message(); !strings.Contains(got, "the operator cannot ask its MySQL: the certificate that it shows is valid from") || !strings.Contains(got, "to 1970-01-01T00:00:00Z") {
		t.Errorf("message %q", got)
	}
	l.refused(fromMySQL, "east", refusalOfMySQL(context.DeadlineExceeded))
	if got := message(); got != "the sidecar answers" {
		t.Errorf("message %q", got)
	}
}
