// SPDX-License-Identifier: Apache-2.0

package wire

import "errors"

// Paths of the endpoints.
const (
	PathActiveSite     = "/active-site"
	PathPeerActiveSite = "/peer/active-site"
	PathStatus         = "/status"
	PathWSStatus       = "/ws/status"
	PathHealthz        = "/healthz"
	PathReadyz         = "/readyz"
	// PathMysqldHealthz is the liveness of the MySQL container: the sidecar is well, and the supervisor of mysqld watches.
	PathMysqldHealthz = "/healthz/mysqld"
	PathMetrics       = "/metrics"
	// PathLeave is asked by the pod itself before its mysqld is ended.
	PathLeave = "/leave"
)

// Ports of the listeners.
const (
	PortOperatorMetrics   = 8080
	PortOperatorHealth    = 8081
	PortOperatorAuxiliary = 8082
	PortOperatorEscrow    = 8443
	PortSidecar           = 8090
	PortMySQL             = 3306
	PortMySQLAdmin        = 33062
)

// Query parameters of GET /active-site and GET /peer/active-site.
const (
	ParamNamespace = "namespace"
	ParamGroup     = "group"
	// ParamSite names the asking site: the one that answers remembers when.
	ParamSite = "site"
	// ParamPod is the UID of the asking sidecar's pod. Only the pod that the operator takes for the site's may open.
	ParamPod = "pod"
	// ParamNonce is repeated inside the signed answer.
	ParamNonce = "nonce"
)

// ParamWait is how long GET /leave may take to answer, a Go duration.
const ParamWait = "wait"

// Leave is the answer to GET /leave.
type Leave struct {
	// Left is true if mysqld can be ended without anybody missing it: this site is fenced, and another one is active.
	Left bool `json:"left"`
	// Reason and Message say why not.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// MaxBodyBytes bounds the bodies of every endpoint of this package, but for the answer of GET /status.
const MaxBodyBytes = 64 << 10

// MaxQueryBytes bounds the query of a request: the longest names that Kubernetes allows fit in it, all at once.
const MaxQueryBytes = 1 << 10

// MaxReportBytes bounds the answer to PUT /active-site: a set of some 6,000 servers' transactions. A sidecar leaves out what is
// longer, and says so.
const MaxReportBytes = 256 << 10

// MaxAnswerBytes bounds the answer to PUT /active-site as it is sent: an authenticated report is a third longer than the report.
const MaxAnswerBytes = MaxReportBytes*4/3 + 4<<10

// MaxStatusBytes bounds the answer of GET /status and one message of GET /ws/status: a thousand groups are about 2 MB.
const MaxStatusBytes = 32 << 20

// Errors with which an operator declines to say who is active; each has a reason of its own.
var (
	// ErrUnknownGroup: this operator does not look after such a group.
	ErrUnknownGroup = errors.New("no such group")
	// ErrNotLeading: another process of the operator speaks for the groups, or nobody does yet.
	ErrNotLeading = errors.New("this operator does not lead")
	// ErrNoStatement: the group has no active site yet.
	ErrNoStatement = errors.New("the group has no active site yet")
)

// ErrForbidden says that the asker is known, and may not read the state of groups.
var ErrForbidden = errors.New("no right to read these groups")

// ActiveSite is the answer to GET /active-site and GET /peer/active-site, and the body of PUT /active-site.
type ActiveSite struct {
	Statement Signed `json:"statement"`
	// Challenge is what a push has in it, new every time, and the authenticated report repeats. An answer has none.
	Challenge string `json:"challenge,omitempty"`
}

// Error is the body of every answer that is not a success.
type Error struct {
	Error  string `json:"error"`
	Reason string `json:"reason"`
}

// Reasons of errors.
const (
	ReasonBadRequest   = "BadRequest"
	ReasonBadStatement = "BadStatement"
	ReasonOtherGroup   = "OtherGroup"
	ReasonNoStatement  = "NoStatement"
	ReasonNotLeading   = "NotLeading"
	ReasonUnknownGroup = "UnknownGroup"
	ReasonTooLarge     = "TooLarge"
	// ReasonNotAPeer: only the other sites of a group, by the names that a pod was started with, are told what it knows.
	ReasonNotAPeer = "NotAPeer"
	// ReasonTooManyRequests: this client asks too often, or too many strangers ask at once.
	ReasonTooManyRequests = "TooManyRequests"
	// ReasonNotFound: no such endpoint.
	ReasonNotFound         = "NotFound"
	ReasonMethodNotAllowed = "MethodNotAllowed"
	// ReasonOtherOrigin: a page of another origin asked a browser for a WebSocket.
	ReasonOtherOrigin = "OtherOrigin"
	// ReasonTooManyClients: the listener holds as many WebSocket connections as it may.
	ReasonTooManyClients = "TooManyClients"
	ReasonInternal       = "Internal"
	// ReasonForbidden: who asks is known, and may not read this.
	ReasonForbidden = "Forbidden"
)
