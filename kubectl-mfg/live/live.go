// SPDX-License-Identifier: Apache-2.0

// Package live knows the operator's answers, and why one is missing.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

const (
	// Service is the Service in front of the operator's status listener.
	Service = "mfg-auxiliary"
	// Selector finds the pods of the operator.
	Selector = "app.kubernetes.io/name=mfg"
	// Timeout bounds how long a command waits for the operator before it uses only the custom resource.
	Timeout = 3 * time.Second
	// ProxyTimeout is the part of it that the Service proxy has; the rest is for a forwarded port.
	ProxyTimeout = 2 * time.Second
)

// WhyNot says why the operator did not answer, and whether it is certain that none runs. Only certainty counts
// against a group: a user without the right to ask must not read that failover is off.
func WhyNot(err error, operatorNamespace string) (message string, down bool) {
	switch {
	case errors.Is(err, ErrIdle):
		return err.Error(), true
	case errors.Is(err, ErrNoPod):
		return fmt.Sprintf("%v in namespace %s (is it another one? --operator-namespace)", ErrNoPod, operatorNamespace), true
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", Timeout), false
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("you may not get services/proxy in namespace %s", operatorNamespace), false
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("no Service %s in namespace %s; is it another one? --operator-namespace", Service, operatorNamespace), false
	case strings.Contains(err.Error(), NoEndpoints):
		return fmt.Sprintf("no pod is ready behind Service %s in namespace %s", Service, operatorNamespace), true
	default:
		return err.Error(), false
	}
}

// NoEndpoints is how the API server says that no pod is ready behind a Service.
const NoEndpoints = "no endpoints available"

// ErrIdle means that an operator answered, but does not look after groups.
var ErrIdle = errors.New("the operator does not lead")

// ErrSays begins any other refusal of the operator.
var ErrSays = errors.New("the operator says")

// ErrAsksWho means that the API server's proxy does not tell the operator which user asks. A port-forward need not tell.
var ErrAsksWho = errors.New("the operator answers tokens and port-forwards only (--status-authorization), and the API server's proxy passes no token on")

// IsFinal is true for an error that is the operator's answer: it is final, whichever way it came.
func IsFinal(err error) bool {
	return errors.Is(err, ErrIdle) || errors.Is(err, ErrSays)
}

// ErrorOf prefers the operator's own words to what client-go makes of an answer that is not the API server's.
func ErrorOf(body []byte, otherwise error) error {
	var said wire.Error
	switch err := json.Unmarshal(body, &said); {
	case err != nil, said.Error == "":
		return otherwise
	case said.Reason == wire.ReasonNotLeading:
		return ErrIdle
	case said.Reason == wire.ReasonUnauthorized:
		return ErrAsksWho
	default:
		return fmt.Errorf("%w: %s (%s)", ErrSays, said.Error, said.Reason)
	}
}

// View splits an explained answer into the view for other reports, and the explanation.
func View(list wire.ExplainedList, err error, operatorNamespace string) (report.LiveView, *wire.Explanation) {
	if err != nil {
		return Unanswered(err, operatorNamespace), nil
	}
	view := report.LiveView{Status: wire.StatusList{Operator: list.Operator, IssuedAt: list.IssuedAt}}
	var e *wire.Explanation
	for _, g := range list.Groups {
		view.Status.Groups = append(view.Status.Groups, g.GroupStatus)
		e = g.Explanation
	}
	return view, e
}

// DefaultNamespace is where the chart installs the operator.
const DefaultNamespace = "mfg-system"

// Unanswered returns what is known of the operator if it gave no answer.
func Unanswered(err error, operatorNamespace string) report.LiveView {
	view := report.LiveView{Denied: apierrors.IsForbidden(err)}
	view.Missing, view.Down = WhyNot(err, operatorNamespace)
	return view
}
