// SPDX-License-Identifier: Apache-2.0

package wire

import "errors"

// Errors with which an operator declines to take a keyring into escrow; each has a reason of its own.
var (
	// ErrUnauthorized: the token is not the one of this site, or there is no such site. Nobody learns which.
	ErrUnauthorized = errors.New("the token is not valid for this site")
	// ErrNotUnsealed: the site's keyring cannot have been written by MySQL, so nothing is taken from it.
	ErrNotUnsealed = errors.New("the keyring of this site is not unsealed")
	// ErrDigestMismatch: the content was damaged on the way, or the digest is of another.
	ErrDigestMismatch = errors.New("the keyring does not have the digest that came with it")
	// ErrNotAKeyring: the content is no file of component_keyring_file, or one without keys.
	ErrNotAKeyring = errors.New("this is no keyring with keys in it")
	// ErrOtherPod: another pod is the site's.
	ErrOtherPod = errors.New("another pod is the site's")
	// ErrTokenUnread: the token of the site could not be read, so nobody knows who pushes. It is no answer of its own.
	ErrTokenUnread = errors.New("the token of the site could not be read")
	// ErrTooManyVersions: as many versions of this keyring are in escrow as may be.
	ErrTooManyVersions = errors.New("too many versions of this keyring are in escrow")
)

// ReasonTooManyVersions (507): as many versions of this keyring are in escrow as may be.
const ReasonTooManyVersions = "TooManyVersions"

// String hides the keyring from logs and messages.
func (e KeyringEscrow) String() string {
	return "keyring of " + e.Namespace + "/" + e.Group + "/" + e.Site + " [redacted]"
}

// GoString hides the keyring from %#v.
func (e KeyringEscrow) GoString() string { return e.String() }
