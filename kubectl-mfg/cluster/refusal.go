// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// refusedUpgrade keeps the API server's refusal of an exec or a port-forward: client-go turns it into text, which no longer shows
// that only a right is missing.
type refusedUpgrade struct{ err error }

// noting returns a configuration whose requests leave a refusal behind.
func (r *refusedUpgrade) noting(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return notingTrip{next: next, refused: r} })
	return config
}

// instead returns the refusal, if there was one.
func (r *refusedUpgrade) instead(err error) error {
	if err != nil && r.err != nil {
		return r.err
	}
	return err
}

type notingTrip struct {
	next    http.RoundTripper
	refused *refusedUpgrade
}

// refusalBytes bounds how much of a refusal is read.
const refusalBytes = 64 << 10

// RoundTrip passes on every answer whole.
func (n notingTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	said := metav1.Status{}
	if json.Unmarshal(body, &said) != nil || said.Reason == "" {
		said = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: string(body)} // of a proxy
	}
	said.Code = http.StatusForbidden
	n.refused.err = &apierrors.StatusError{ErrStatus: said}
	return resp, nil
}
