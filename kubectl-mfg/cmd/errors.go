// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// explain adds to an error of the API server what to do next.
func explain(err error, namespace, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err):
		// The answer of the API server to a path that it does not have, not to an object that it does not have.
		return fmt.Errorf(`this cluster does not know the kind MysqlFailoverGroup (%s): is mfg installed?
  helm install mfg charts/mfg --namespace mfg-system --create-namespace`, v1alpha1.GroupVersion)
	case apierrors.IsNotFound(err):
		return fmt.Errorf(`no group %q in namespace %q: %w
  list all groups: kubectl mfg status -A`, name, namespace, err)
	case apierrors.IsForbidden(err):
		where := "-n " + namespace
		if namespace == "" {
			where = "-A"
		}
		return fmt.Errorf(`%w
  see what you may do: kubectl auth can-i get %s.%s %s`, err, resource, v1alpha1.GroupVersion.Group, where)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\n  log in to the cluster again, or choose another context: kubectl config get-contexts", err)
	case errors.Is(err, context.Canceled):
		return err
	case utilnet.IsConnectionRefused(err):
		return fmt.Errorf("ask the API server: %w\n  see which cluster is meant: kubectl config current-context", err)
	case utilnet.IsTimeout(err):
		return fmt.Errorf("ask the API server: %w\n  it does not answer: see which cluster is meant: kubectl config current-context\n  to wait for less long: --request-timeout=5s", err)
	default:
		return fmt.Errorf("ask the API server: %w", err)
	}
}

// whyNotLive says why the operator did not answer, and whether it is certain that none runs. Only certainty counts
// against a group: a user without the right to ask must not read that failover is off.
func whyNotLive(err error, operatorNamespace string) (message string, down bool) {
	switch {
	case errors.Is(err, errOperatorIdle):
		return err.Error(), true
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", liveTimeout), false
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("you may not get services/proxy in namespace %s", operatorNamespace), false
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("no Service %s in namespace %s; is it another one? --operator-namespace", auxiliaryService, operatorNamespace), false
	case strings.Contains(err.Error(), noEndpoints):
		return fmt.Sprintf("no pod is ready behind Service %s in namespace %s", auxiliaryService, operatorNamespace), true
	default:
		return err.Error(), false
	}
}

// noEndpoints is how the API server says that no pod is ready behind a Service.
const noEndpoints = "no endpoints available"

// errOperatorIdle: an operator answered, but it does not look after groups.
var errOperatorIdle = errors.New("the operator does not lead")

// errOperatorSays begins what else it answers to a question that it does not like.
var errOperatorSays = errors.New("the operator says")

// errOperatorAsksWho: the API server's proxy does not tell the operator who asks. A port-forward needs no telling.
var errOperatorAsksWho = errors.New("the operator answers tokens and port-forwards only (--status-authorization), and the API server's proxy passes no token on")

// itsOwnWord is true for an error that is the operator's answer: it is final, whichever way it came.
func itsOwnWord(err error) bool {
	return errors.Is(err, errOperatorIdle) || errors.Is(err, errOperatorSays)
}

// operatorError prefers the operator's own words to what client-go makes of an answer that is not the API server's.
func operatorError(body []byte, otherwise error) error {
	var said wire.Error
	switch err := json.Unmarshal(body, &said); {
	case err != nil, said.Error == "":
		return otherwise
	case said.Reason == wire.ReasonNotLeading:
		return errOperatorIdle
	case said.Reason == wire.ReasonUnauthorized:
		return errOperatorAsksWho
	default:
		return fmt.Errorf("%w: %s (%s)", errOperatorSays, said.Error, said.Reason)
	}
}
