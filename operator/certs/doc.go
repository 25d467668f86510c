// SPDX-License-Identifier: Apache-2.0

// Package certs decides how an authority and the certificate that it signs are made, renewed and replaced without anybody losing trust.
// It is pure: it gets what two Secrets hold, what the sites have loaded, the time and a source of randomness, and says what to write next.
// docs/decisions/0030 tells why it is as it is.
//
// One Secret, the authority's, is mounted nowhere; the other is what servers and clients mount. One step changes one Secret, and the next
// is decided on what then stands in them, so whoever ends in between is followed by one who goes on.
package certs

import "time"

// How long what is made is good for, and when it is replaced.
const (
	// AuthorityLife is how long an authority is valid, AuthorityRest what is left of it when the next one is made.
	AuthorityLife = 10 * 365 * 24 * time.Hour
	AuthorityRest = 2 * 365 * 24 * time.Hour
	// AuthorityLate is what is left of an authority when it is replaced without asking anybody: what is trusted for its sake ends anyway.
	AuthorityLate = 30 * 24 * time.Hour
	// ServerLife is how long a server certificate is valid. It is renewed when two thirds of that are over.
	ServerLife = 90 * 24 * time.Hour
	// Skew is how far the clock of who checks a certificate may be behind that of who made it.
	Skew = 5 * time.Minute
	// Grace is for how long clients are given a new authority before it signs, unless an order says otherwise.
	Grace = 24 * time.Hour
	// LeastGrace is the shortest that an order may ask for: the kubelet takes a minute or two to renew mounted files.
	LeastGrace = 2 * time.Minute
	// MostGrace is the longest.
	MostGrace = 30 * 24 * time.Hour
	// Parting is for how long a former authority stays after the new one signs: those that are asked about nothing, such as caches and
	// pods of backups, have read their files again by then.
	Parting = 10 * time.Minute
)

// Keys of the Secrets. Those of the server's are what every Secret of spec.tls has.
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
