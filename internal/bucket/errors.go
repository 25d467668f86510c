// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"filippo.io/age"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
)

// Kind says what went wrong, in a word that serves as a reason.
type Kind string

// What can go wrong.
const (
	AccessDenied  Kind = "AccessDenied"
	NoSuchBucket  Kind = "NoSuchBucket"
	UntrustedTLS  Kind = "UntrustedTLS"
	Full          Kind = "StorageFull"
	ClockSkew     Kind = "ClockSkew"
	Unreachable   Kind = "StorageUnreachable"
	NotFound      Kind = "NotFound"
	NoDeleteRight Kind = "NoDeleteRight"
	// Exists: the object exists already, and is never overwritten.
	Exists Kind = "AlreadyExists"
	// Foreign: another group writes to this place.
	Foreign Kind = "ForeignOwner"
	// Damaged: the content that was read is not what was written.
	Damaged Kind = "DamagedBackup"
	// TooNew: the backup was written by a newer version.
	TooNew Kind = "TooNew"
	// WrongIdentity: none of the identities opens the backup.
	WrongIdentity Kind = "WrongIdentity"
	// Interrupted: the caller ended it, or its time was over.
	Interrupted Kind = "Interrupted"
	// Other: an error without a kind of its own; its detail says what it was.
	Other Kind = "StorageError"
)

var remedies = map[Kind]string{
	AccessDenied:  "check the Secret with the credentials, and that they may list, read and write under the prefix",
	NoSuchBucket:  "create the bucket, or correct its name, region and endpoint",
	UntrustedTLS:  "put the certificate authority of the server into the Secret of caSecretName, under ca.crt, and check that its certificate names the endpoint",
	Full:          "make room in the storage, raise its quota, or keep fewer backups",
	ClockSkew:     "set the clock of this node or of the storage server right: they differ by more than the storage allows",
	Unreachable:   "check the endpoint, the network policies and that the storage server runs",
	NotFound:      "list the backups that there are; this one, or a part of it, is not there",
	NoDeleteRight: "allow the credentials to delete, or remove old backups by a rule of the bucket",
	Exists:        "choose another name: a backup is never overwritten",
	Foreign:       "choose another prefix for this group; only if the other one is gone for good, remove the object owner.json of the place, and the next backup makes it this group's",
	Damaged:       "take another backup: this one is damaged or was tampered with",
	TooNew:        "read it with the version of the operator that wrote it, or a newer one",
	WrongIdentity: "give the age identity of one of the recipients that the backup was encrypted to",
	Interrupted:   "try again: it was ended before it was done",
	Other:         "look at the log of the storage server",
}

// Remedy says what to do about it.
func (k Kind) Remedy() string { return remedies[k] }

// Error is the error of an operation on the storage. It holds no credential.
type Error struct {
	Kind Kind
	// Op and Key are what was done, and to which object; Key may be empty.
	Op, Key string
	// Detail is what the storage said, on one line of at most detailMax bytes.
	Detail string
	// ended is the context's error if that ended the operation.
	ended error
	// missing is true if a manifest names the object, and it is not there.
	missing bool
}

// Missing is true if a manifest names an object that the storage does not have: that is damage, unless it was removed for a reason since.
func Missing(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.missing
}

const detailMax = 400

func (e *Error) Error() string {
	text := e.Op
	if e.Key != "" {
		text += " " + e.Key
	}
	text += ": " + string(e.Kind)
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	return text + ": " + e.Kind.Remedy()
}

// Unwrap returns only the error of the context: errors of libraries may hold more than may be shown.
func (e *Error) Unwrap() error { return e.ended }

// KindOf is the kind of an error of this package, and empty for others.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// passing is true for kinds that may be gone at the next try.
func passing(k Kind) bool { return k == Unreachable }

// codes are the error codes of S3, of servers with its protocol, and of Azure.
var codes = map[string]Kind{
	"AccessDenied": AccessDenied, "Forbidden": AccessDenied, "InvalidAccessKeyId": AccessDenied, "SignatureDoesNotMatch": AccessDenied,
	"ExpiredToken": AccessDenied, "XAdminUserNotFound": AccessDenied, "InvalidToken": AccessDenied, "AllAccessDisabled": AccessDenied, "AccountProblem": AccessDenied,
	"AuthenticationFailed": AccessDenied, "AuthorizationFailure": AccessDenied, "AuthorizationPermissionMismatch": AccessDenied,
	"NoSuchBucket": NoSuchBucket, "PermanentRedirect": NoSuchBucket, "TemporaryRedirect": NoSuchBucket, "ContainerNotFound": NoSuchBucket, "AuthorizationHeaderMalformed": NoSuchBucket,
	"RequestTimeTooSkewed": ClockSkew, "RequestExpired": ClockSkew,
	"NoSuchKey": NotFound, "NotFound": NotFound, "BlobNotFound": NotFound,
	"QuotaExceeded": Full, "XMinioStorageFull": Full, "InsufficientStorage": Full, "EntityTooLarge": Full, "InsufficientCapacity": Full,
	"XMinioAdminBucketQuotaExceeded": Full, "BucketQuotaExceeded": Full, "QuotaExceededException": Full,
	"PreconditionFailed": Exists, "ConditionalRequestConflict": Exists, "BlobAlreadyExists": Exists,
	"SlowDown": Unreachable, "ServiceUnavailable": Unreachable, "RequestTimeout": Unreachable, "InternalError": Unreachable, "ServerBusy": Unreachable,
}

// failIn makes an Error of what a library returned within a context. Libraries lose the error of the context on their way.
func (b *Bucket) failIn(ctx context.Context, op, key string, err error) error {
	if err == nil || ctx.Err() == nil {
		return b.fail(op, key, err)
	}
	return &Error{Kind: Interrupted, Op: op, Key: key, Detail: ctx.Err().Error(), ended: ctx.Err()}
}

// fail makes an Error of what a library returned.
func (b *Bucket) fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	e := &Error{Kind: classify(err), Op: op, Key: key, Detail: b.say(err)}
	switch {
	case errors.Is(err, context.Canceled):
		e.ended = context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		e.ended = context.DeadlineExceeded
	}
	return e
}

func classify(err error) Kind {
	if k := classifyCode(err); k != "" {
		return k
	}
	var (
		unknown   x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		names     x509.HostnameError
		unmatched *age.NoIdentityMatchError
		netErr    net.Error // an errno is one too: only a timeout counts
		netOp     *net.OpError
		dns       *net.DNSError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &unmatched):
		return WrongIdentity
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &names):
		return UntrustedTLS
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Full
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return AccessDenied
	case errors.As(err, &netOp), errors.As(err, &dns), errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.EIO),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ESTALE),
		errors.Is(err, io.ErrUnexpectedEOF):
		return Unreachable
	}
	switch gcerrors.Code(err) { //nolint:exhaustive // the others say nothing that helps
	case gcerrors.NotFound:
		return NotFound
	case gcerrors.PermissionDenied:
		return AccessDenied
	case gcerrors.AlreadyExists, gcerrors.FailedPrecondition:
		return Exists
	case gcerrors.ResourceExhausted, gcerrors.DeadlineExceeded, gcerrors.Canceled:
		return Unreachable
	}
	return Other
}

// classifyCode reads the answer of a server.
func classifyCode(err error) Kind {
	var api smithy.APIError
	if errors.As(err, &api) {
		if k, known := codes[api.ErrorCode()]; known {
			return k
		}
	}
	status, code := answerOf(err)
	if k, known := codes[code]; known {
		return k
	}
	switch {
	case status == http.StatusInsufficientStorage:
		return Full
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		return AccessDenied
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return Unreachable
	}
	return ""
}

// answerOf is the HTTP status and the code of the answer, if the error has them.
func answerOf(err error) (int, string) {
	var s3 *awshttp.ResponseError
	if errors.As(err, &s3) {
		return s3.HTTPStatusCode(), ""
	}
	return cloudAnswer(err)
}

// say returns one line of a library's error, without anything secret.
func (b *Bucket) say(err error) string {
	text := err.Error()
	var api smithy.APIError
	if errors.As(err, &api) {
		text = api.ErrorCode() + ": " + api.ErrorMessage()
	}
	for _, secret := range b.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > detailMax {
		text = strings.ToValidUTF8(text[:detailMax], "") + "..."
	}
	return text
}
