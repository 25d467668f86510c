// SPDX-License-Identifier: Apache-2.0

// Package certs decides how an authority and the certificate that it signs are made, renewed and replaced, so that no server or client
// ever loses trust. It is pure: it gets what two Secrets hold, what the sites have loaded, the time and a source of randomness, and says
// what to write next. docs/decisions/0030 tells why.
//
// One Secret, the authority's, is mounted nowhere; servers and clients mount the other. Each step changes one Secret, and the next is
// decided from their new contents, so if the operator ends in between, its successor continues.
package certs

import "time"

// How long certificates are valid, and when they are replaced.
const (
	// AuthorityLife is how long an authority is valid, AuthorityRest what is left of it when the next one is made.
	AuthorityLife = 10 * 365 * 24 * time.Hour
	AuthorityRest = 2 * 365 * 24 * time.Hour
	// AuthorityLate is what is left of an authority when it is replaced without waiting for the sites: trust in it ends soon anyway.
	AuthorityLate = 30 * 24 * time.Hour
	// ServerLife is how long a server certificate is valid. It is renewed when two thirds of that are over.
	ServerLife = 90 * 24 * time.Hour
	// Skew is how far the checker's clock may be behind the clock that made a certificate.
	Skew = 5 * time.Minute
	// Grace is how long clients have a new authority before it signs, unless an order says otherwise.
	Grace = 24 * time.Hour
	// LeastGrace is the shortest that an order may ask for: the kubelet takes a minute or two to renew mounted files.
	LeastGrace = 2 * time.Minute
	// MostGrace is the longest.
	MostGrace = 30 * 24 * time.Hour
	// Parting is how long a former authority stays after the new one signs: by then the programs that are not asked, such as caches
	// and pods of backups, have read their files again.
	Parting = 10 * time.Minute
)

// Keys of the Secrets. The server's are the keys that every Secret of spec.tls has.
const (
	KeyBundle     = "ca.crt"
	KeyServer     = "tls.crt"
	KeyServerKey  = "tls.key"
	KeyAuthority  = "ca.crt"
	KeyPrivate    = "ca.key"
	KeyNext       = "next.crt"
	KeyNextKey    = "next.key"
	KeyFormer     = "former.crt"
	KeyOrder      = "order"
	KeyOrderGrace = "order-grace"
)
