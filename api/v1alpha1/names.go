// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// Domain is the API and label domain prefix. Every label, annotation and object name of the project derives from it
// or from a function in this file.
const Domain = "mysql-mfg.io"

// Labels on managed objects (specification 2.4).
const (
	LabelName         = "app.kubernetes.io/name"
	LabelInstance     = "app.kubernetes.io/instance"
	LabelManagedBy    = "app.kubernetes.io/managed-by"
	LabelGroup        = Domain + "/failover-group"
	LabelSite         = Domain + "/site"
	LabelRole         = Domain + "/role"
	LabelHealthy      = Domain + "/healthy"
	LabelCacheRole    = Domain + "/cache-role"
	LabelCacheTraffic = Domain + "/cache-traffic"

	NameMySQL         = "mysql"
	ManagedByOperator = "operator"
	RolePrimary       = "primary"
	RoleReplica       = "replica"
	HealthyYes        = "yes"
	HealthyNo         = "no"
)

// Annotations: the control surface on the group, and marks on managed objects.
const (
	AnnotationRotateKeyring   = Domain + "/rotate-keyring"
	AnnotationEncryptionAdopt = Domain + "/encryption-adopt"
	AnnotationPlannedFailover = Domain + "/planned-failover"
	AnnotationRecloneSite     = Domain + "/reclone-site"
	AnnotationLastRequest     = Domain + "/last-request"
	AnnotationSpecHash        = Domain + "/spec-hash"

	// AnnotationForceFailover overrides a blocked emergency failover: the value names the site to promote although
	// acknowledged writes may be lost. Cleared once carried out.
	AnnotationForceFailover = Domain + "/accept-data-loss-failover"
)

// Field managers of server-side apply, one for each owner.
const (
	ManagerController       = "mfg-operator"
	ManagerControllerStatus = "mfg-operator-status"
	ManagerMonitor          = "mfg-monitor"
	ManagerMonitorStatus    = "mfg-monitor-status"
)

// Finalizer keeps the group until what must outlive it has been let go.
const Finalizer = Domain + "/group"

// OutOfServiceTaint is set by a person on a node that is known to be down; Kubernetes defines it.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// ContainerBootstrap is the init container that takes the volume's lock.
const ContainerBootstrap = "bootstrap"

// Environment of the sidecar that the operator reads back from the pods that run.
const (
	EnvLeaseTimeout = "MFG_LEASE_TIMEOUT"
	EnvFenceTimeout = "MFG_FENCE_TIMEOUT"
)

// SiteName is the name of the Deployment and the Service of one site.
func SiteName(group, site string) string { return fmt.Sprintf("mysql-%s-%s", group, site) }

// DataVolumeName is the name of the PVC of one site.
func DataVolumeName(group, site string) string { return SiteName(group, site) + "-data" }

// ConfigName is the name of the ConfigMap of one site.
func ConfigName(group, site string) string { return SiteName(group, site) + "-config" }

// PrimaryService is the name of the Service that follows the active site.
func PrimaryService(group string) string { return fmt.Sprintf("mysql-%s-primary", group) }

// ReplicasService is the name of the Service of the healthy read replicas.
func ReplicasService(group string) string { return fmt.Sprintf("mysql-%s-replicas", group) }

// DisruptionBudgetName is the name of the PodDisruptionBudget of the MySQL pods.
func DisruptionBudgetName(group string) string { return "mysql-" + group }

// AuthoritySecret holds the key pair that signs statements.
func AuthoritySecret(group string) string { return fmt.Sprintf("mysql-%s-authority", group) }

// Keys of the authority Secret, PEM: PKCS#8 private and PKIX public Ed25519.
const (
	AuthorityPrivateKey = "private.pem"
	AuthorityPublicKey  = "public.pem"
)

// AccountsSecret holds the generated passwords of the operator's own MySQL accounts.
func AccountsSecret(group string) string { return fmt.Sprintf("mysql-%s-accounts", group) }

// RootSecret holds the generated password of root@localhost, for the user.
func RootSecret(group string) string { return fmt.Sprintf("mysql-%s-root", group) }

// KeyringSecret is the immutable escrow Secret of one version of a site's keyring.
func KeyringSecret(group, site string, version int64) string {
	return fmt.Sprintf("mysql-%s-%s-keyring-v%d", group, site, version)
}

// KeyringTokenSecret holds the bearer token with which a site escrows its keyring.
func KeyringTokenSecret(group, site string) string {
	return fmt.Sprintf("mysql-%s-%s-keyring-token", group, site)
}
