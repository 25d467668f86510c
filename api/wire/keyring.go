// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// PathKeyringEscrow is where a sidecar hands the keyring of its site to the operator: over TLS, with the site's token.
const PathKeyringEscrow = "/keyring/escrow"

const (
	// MaxKeyringFile bounds a keyring. MySQL 9.7.4 adds some 180 bytes to it with each rotation of both master keys and never removes
	// InnoDB's: half of what a Secret may hold is enough for 2,800 of them.
	MaxKeyringFile = 512 << 10
	// MaxKeyringBytes bounds the body of POST /keyring/escrow: a keyring in base64, and the rest.
	MaxKeyringBytes = 768 << 10
	// MaxKeyringVersions bounds how many versions of a site's keyring are in escrow; far above retainVersions, which is 50 at most.
	MaxKeyringVersions = 100
	// EscrowTokenBytes is how many random bytes the token of a site has. It is sent as their base64 for URLs, without padding.
	EscrowTokenBytes = 32
)

// IsEscrowToken is true for a string that could be a token at all. It compares nothing with a secret, so it may be called first.
func IsEscrowToken(s string) bool {
	if len(s) != base64.RawURLEncoding.EncodedLen(EscrowTokenBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil
}

// KeyringDigest is how a keyring's content is named everywhere: sha256: and 64 hexadecimal digits.
func KeyringDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Marks in the termination message of a pod that did not start, by which the operator tells why.
const (
	// MarkKeyringLost: the data is there, and the keyring that it needs is not.
	MarkKeyringLost = "the keyring that the data needs"
	// MarkNoSeed: the pod cannot start from the escrow Secret that it was given; its memory holds no keyring.
	MarkNoSeed = "the keyring to start from"
	// MarkRestoreLost: the data that a backup was loaded into is gone, and only a new pod loads it again.
	MarkRestoreLost = "what was restored can no longer be read"
	// MarkNoData: the pod is made sealed, and there is no data that its keyring could read.
	MarkNoData = "there is no data"
	// MarkPlainData: the pod is to make data, and there is some that was never encrypted. Nothing was changed.
	MarkPlainData = "the volume holds data in the clear"
)

// KeyringReport is what a sidecar says of its site's keyring. It never holds anything of its content.
type KeyringReport struct {
	// Sealed is how the pod was made: with the keyring projected from an escrow Secret, read-only.
	Sealed bool `json:"sealed"`
	// Component, Active, DataFile and ReadOnly are what MySQL says in performance_schema.keyring_component_status;
	// Component is empty if MySQL has not answered since the sidecar or mysqld started.
	Component string `json:"component,omitempty"`
	Active    bool   `json:"active"`
	DataFile  string `json:"dataFile,omitempty"`
	ReadOnly  bool   `json:"readOnly"`
	// MountReadOnly is what the kernel says of the mount that the file is on: MySQL's ReadOnly alone proves nothing.
	MountReadOnly bool `json:"mountReadOnly"`
	// Digest is that of the file as it is now; empty if there is none, or it is being written.
	Digest string `json:"digest,omitempty"`
	// Keys is how many keys MySQL lists.
	Keys int `json:"keys"`
	// EscrowedDigest is the last one that the operator confirmed to have stored, EscrowedVersion its version.
	EscrowedDigest  string `json:"escrowedDigest,omitempty"`
	EscrowedVersion int64  `json:"escrowedVersion,omitempty"`
	// Trouble says in words why the keyring was not escrowed yet, or what is wrong with it.
	Trouble string `json:"trouble,omitempty"`
	// Coverage is what MySQL says is encrypted; nil until it was read.
	Coverage *CoverageReport `json:"coverage,omitempty"`
}

// CoverageReport is what is encrypted on a site, as MySQL says.
type CoverageReport struct {
	SystemTablespace bool `json:"systemTablespace"`
	// Unencrypted is how many tablespaces and tables of users are in the clear. They are not named: reports travel in the clear.
	Unencrypted int32 `json:"unencrypted"`
	RedoLog     bool  `json:"redoLog"`
	UndoLog     bool  `json:"undoLog"`
	BinaryLog   bool  `json:"binaryLog"`
}

// KeyringEscrow is the body of POST /keyring/escrow.
type KeyringEscrow struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	Site      string `json:"site"`
	// PodUID is of the pod whose keyring it is: only the pod that the operator takes for the site's may escrow.
	PodUID string `json:"podUID"`
	// Digest is that of Keyring: what was damaged on the way is refused.
	Digest string `json:"digest"`
	// Keyring is the file's content, base64 in JSON.
	Keyring []byte `json:"keyring"`
}

// KeyringEscrowed answers it: where the keyring is now. The same content pushed again is answered with the same version.
type KeyringEscrowed struct {
	Secret  string `json:"secret"`
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// Reasons with which POST /keyring/escrow is refused.
const (
	// ReasonUnauthorized (401): no token, or not the one of this site. It does not say which.
	ReasonUnauthorized = "Unauthorized"
	// ReasonNotUnsealed (409): the site is sealed, nothing is taken from it.
	ReasonNotUnsealed = "NotUnsealed"
	// ReasonDigestMismatch (422): the content does not have the digest that came with it.
	ReasonDigestMismatch = "DigestMismatch"
	// ReasonNotAKeyring (422): the content is no keyring, or one without keys.
	ReasonNotAKeyring = "NotAKeyring"
	// ReasonOtherPod (409): another pod is the site's.
	ReasonOtherPod = "OtherPod"
	// ReasonSlow (408): the body did not come in time.
	ReasonSlow = "TooSlow"
)
