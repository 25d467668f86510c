// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"

	jose "github.com/go-jose/go-jose/v4"
)

// ReportKeyBytes is the length of the key with which a site authenticates its reports.
const ReportKeyBytes = 32

// MaxChallenge bounds the challenge of a push.
const MaxChallenge = 128

// Errors of OpenReport.
var (
	ErrReportKey       = errors.New("the key for reports does not have 32 bytes")
	ErrReportSignature = errors.New("report is not authenticated with the site's key")
	ErrReportChallenge = errors.New("report answers another push")
)

// SignedReport is a report and the challenge that it answers, in JWS compact form (HS256). A report is proof of a fence, so nobody on
// the way, and nobody who answers at the pod's address, may make one up or give an old one again.
type SignedReport string

// Answer is the answer to PUT /active-site: the report as it is or, if the push had a challenge and the sidecar has its key, Signed
// alone.
type Answer struct {
	Report
	Signed SignedReport `json:"signedReport,omitempty"`
}

// AuthenticAnswer is an answer that holds nothing but the authenticated report.
type AuthenticAnswer struct {
	Signed SignedReport `json:"signedReport"`
}

// answered is what is authenticated: the very bytes of the report, which names the pod, and the challenge of the push.
type answered struct {
	Challenge string          `json:"challenge"`
	Report    json.RawMessage `json:"report"`
}

// SignReport authenticates a report as the answer to the push with that challenge.
func SignReport(key []byte, challenge string, r Report) (SignedReport, error) {
	if len(key) != ReportKeyBytes {
		return "", ErrReportKey
	}
	report, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	body, err := json.Marshal(answered{Challenge: challenge, Report: report})
	if err != nil {
		return "", fmt.Errorf("encode answer: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	if err != nil {
		return "", ErrReportKey // what the library says may hold the key (I11)
	}
	jws, err := signer.Sign(body)
	if err != nil {
		return "", fmt.Errorf("authenticate report: %w", ErrReportKey)
	}
	compact, err := jws.CompactSerialize()
	return SignedReport(compact), err
}

// OpenReport returns the report if it is authenticated with the key and answers the push with that challenge. An empty challenge is
// answered by nothing. The library compares in constant time; any algorithm but HS256 is refused.
func OpenReport(key []byte, challenge string, signed SignedReport) (Report, error) {
	if len(key) != ReportKeyBytes {
		return Report{}, ErrReportKey
	}
	jws, err := jose.ParseSignedCompact(string(signed), []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return Report{}, ErrReportSignature
	}
	body, err := jws.Verify(key)
	if err != nil {
		return Report{}, ErrReportSignature
	}
	var a answered
	if err := json.Unmarshal(body, &a); err != nil {
		return Report{}, fmt.Errorf("decode answer: %w", err)
	}
	if challenge == "" || subtle.ConstantTimeCompare([]byte(a.Challenge), []byte(challenge)) != 1 {
		return Report{}, ErrReportChallenge
	}
	var r Report
	if err := json.Unmarshal(a.Report, &r); err != nil {
		return Report{}, fmt.Errorf("decode report: %w", err)
	}
	return r, nil
}
