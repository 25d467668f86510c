// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
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
		l.client.tellRefusals(views)
		if views[1].Message != "" {
			t.Errorf("west: %q", views[1].Message)
		}
		return views[0].Message
	}
	if l.client.push(t.Context(), nil, asking{pod, "east", ""}).Answered {
		t.Error("a refusal counts as an answer")
	}
	if got := message(); !strings.HasPrefix(got, "the sidecar answers; its sidecar takes no statement") {
		t.Errorf("message %q", got)
	}
	l.m.Push = refusing{}
	l.client.push(t.Context(), nil, asking{pod, "east", ""})
	if got := message(); got != "the sidecar answers" {
		t.Errorf("it is told although it is over: %q", got)
	}
	ended := x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotAfter: time.Unix(0, 0)}}
	l.client.refused(fromMySQL, "east", access.Refusal(l.client.key, "east", fmt.Errorf("read status: %w", ended)))
	if got := message(); !strings.Contains(got, "the operator cannot ask its MySQL: the certificate that it shows is valid from") || !strings.Contains(got, "to 1970-01-01T00:00:00Z") {
		t.Errorf("message %q", got)
	}
	l.client.refused(fromMySQL, "east", access.Refusal(l.client.key, "east", context.DeadlineExceeded))
	if got := message(); got != "the sidecar answers" {
		t.Errorf("message %q", got)
	}
}

// pushTo is a Pusher that reaches a server of the test's by the real client.
type pushTo struct{ addr string }

func (p pushTo) PushActiveSite(ctx context.Context, _ string, push wire.ActiveSite) (wire.Answer, error) {
	return apiclient.NewFrugal(nil).PushActiveSite(ctx, p.addr, push)
}

func textsOf(r wire.Report) []string {
	texts := []string{r.Message}
	if r.Keyring != nil && r.Certificate != nil {
		texts = append(texts, r.Keyring.Trouble, r.Certificate.Problem)
	}
	return texts
}

// TestGarbageIsToldAndProvesNothing: what is no report counts as silence to every decision (I1: no proof of a fence comes from it), and
// unlike silence it is told and counted, with nothing in it that a stranger wrote.
func TestGarbageIsToldAndProvesNothing(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	long := strings.Repeat("ü", longestText)
	whole := `{"site":"east","podUID":"pod-1","epoch":9,"mysqldRunning":false`
	for name, tc := range map[string]struct {
		code         int
		body, reason string
		message      string
	}{
		"a report":         {200, whole + `}`, "", ""},
		"a long report":    {200, whole + `,"gtidExecuted":"` + strings.Repeat("x", wire.MaxBodyBytes) + `"}`, "", ""},
		"too large":        {200, whole + `,"message":"` + strings.Repeat("x", wire.MaxAnswerBytes) + `"}`, answerTooLarge, "more than a report"},
		"a long name":      {200, whole + `,"volumeID":"` + strings.Repeat("x", longestName+1) + `"}`, answerTooLarge, "more than a report"},
		"long texts":       {200, whole + `,"message":"` + long + `","keyring":{"trouble":"` + long + `"},"certificate":{"problem":"` + long + `"}}`, "", ""},
		"a whole keyring":  {200, whole + `,"keyring":{"trouble":"x","coverage":{}},"vouched":[{"site":"b"}]}`, "", ""},
		"a page":           {200, "<html>evil", answerUnreadable, "no report"},
		"cut off":          {200, whole, answerUnreadable, "no report"},
		"another document": {200, `{}`, answerOtherPod, "another pod or site"},
		"a refusal":        {429, `{"reason":"TooManyRequests","error":"evil"}`, answerRefused, "status 429"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			l := testLoop(t, pushTo{strings.TrimPrefix(server.URL, "http://")}, nil)
			metrics.ForgetSite("shop", "orders", "east") // other tests push to it too
			got := l.client.push(t.Context(), &v1alpha1.MysqlFailoverGroup{}, asking{pod: pod, site: "east"})
			if got.Answered != (tc.reason == "") {
				t.Errorf("I1: counts as an answer: %t", got.Answered)
			}
			for _, text := range textsOf(got.Report) {
				if len(text) > longestText+3 || !utf8.ValidString(text) {
					t.Errorf("a text of %d bytes", len(text))
				}
			}
			views := []failover.View{{Name: "east"}, {Name: "west"}}
			l.client.tellRefusals(views)
			if got := views[0].Message; !strings.Contains(got, tc.message) || strings.Contains(got, "evil") || (tc.message == "") != (got == "") {
				t.Errorf("message %q", got)
			}
			counted := 0.0
			if tc.reason != "" {
				counted = testutil.ToFloat64(badAnswers.WithLabelValues("shop", "orders", "east", tc.reason))
			}
			if (counted == 1) != (tc.reason != "") {
				t.Errorf("counted %v", counted)
			}
		})
	}
}
