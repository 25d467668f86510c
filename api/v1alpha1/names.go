// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Domain is the API and label domain prefix. Every label, annotation and object name of the project derives from it
// or from a function in this file.
const Domain = "mysql-mfg.io"

// Labels on managed objects (specification 2.4).
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelGroup     = Domain + "/failover-group"
	LabelSite      = Domain + "/site"
	LabelRole      = Domain + "/role"
	// LabelLeader is on the pod of the operator that leads, with the value Leads. The chart puts it on the only one; of two, the leader does.
	LabelLeader       = Domain + "/leader"
	LabelHealthy      = Domain + "/healthy"
	LabelCacheRole    = Domain + "/cache-role"
	LabelCacheTraffic = Domain + "/cache-traffic"
	// LabelReadable is yes on the pods of replicas that take reads, within spec.maxReadLag.
	LabelReadable = Domain + "/readable"
	// LabelProtected is yes on the pods that must not be evicted now: the active site's, that of the only candidate
	// that has caught up, and one whose memory has the only copy of its keyring.
	LabelProtected = Domain + "/protected"
	// LabelKeyringVersion is the number of a keyring in escrow.
	LabelKeyringVersion = Domain + "/keyring-version"
	// LabelAllowDeletion, with the value true, lets a person delete or change a keyring in escrow, which the chart's
	// admission policy refuses otherwise.
	LabelAllowDeletion = Domain + "/allow-deletion"
	// LabelKeyOfNamespace and LabelKeyOfGroup name the group of a key in the namespace of the operator. They are not those of the
	// group's own objects, by which other things are found.
	LabelKeyOfNamespace = Domain + "/key-of-namespace"
	LabelKeyOfGroup     = Domain + "/key-of-group"

	NameMySQL         = "mysql"
	NameCache         = "cache"
	NameKeyring       = "mysql-keyring"
	NameAuthority     = "mfg-authority"
	ManagedByOperator = "operator"
	RolePrimary       = "primary"
	Leads             = "true"
	RoleReplica       = "replica"
	CacheTrafficOn    = "enabled"
	HealthyYes        = "yes"
	HealthyNo         = "no"
)

// Annotations: the control surface on the group, and marks on managed objects.
const (
	// AnnotationRotateKeyring has the master keys of the site rotated that it names, or of all sites: CampaignOrder tells how. The operator
	// takes it off when it is done or refused.
	AnnotationRotateKeyring   = Domain + "/rotate-keyring"
	AnnotationEncryptionAdopt = Domain + "/encryption-adopt"
	AnnotationPlannedFailover = Domain + "/planned-failover"
	// AnnotationPromoteCache moves the cache's master to the site that it names. The operator takes it off when it is done or refused.
	AnnotationPromoteCache = Domain + "/promote-cache"
	// AnnotationCacheLeaving, on the pod of a cache, says why it is about to go: the controller sets it on a master that is to be
	// updated or evicted, and replaces the pod once status.cache.activeSite names another site and status.cache.transition is gone.
	AnnotationCacheLeaving = Domain + "/cache-leaving"
	// AnnotationCacheStale, on the pod of a cache, says what of it cannot be renewed but with the pod: the operator sets it, and replaces the
	// pod in its turn.
	AnnotationCacheStale  = Domain + "/cache-stale"
	AnnotationRecloneSite = Domain + "/reclone-site"
	// AnnotationRotatePasswords has the passwords of the operator's own accounts replaced: all, or some of operator, replication,
	// sidecar and clone, separated by commas. The operator takes it off when it is done or refused.
	AnnotationRotatePasswords = Domain + "/rotate-passwords"
	// AnnotationRotateCertificate has the operator replace what it made for a group with tls: {}: server, the certificate; ca, the authority
	// too, 24 hours after clients can trust the new one; ca=1h, after that time, 2m to 720h. The operator takes it off when it is done or refused.
	AnnotationRotateCertificate = Domain + "/rotate-certificate"
	// AnnotationPasswordSerial, on the pod of a site, is the serial of the accounts Secret. Changed, it has the kubelet look at once.
	AnnotationPasswordSerial = Domain + "/password-serial"
	// AnnotationRotation is what an older plugin leaves on a group while it leads the rotation of all sites. The operator reads nothing of it,
	// and takes it off once it is asked for such a rotation.
	AnnotationRotation = Domain + "/rotation"
	AnnotationSpecHash = Domain + "/spec-hash"
	// AnnotationAuthority, on the Deployment of a site, is the key that its pod trusts, as in the environment of the sidecar.
	AnnotationAuthority = Domain + "/authority"
	// AnnotationRestores, on the Deployment of the site that is restored, tells apart what its pod loads.
	AnnotationRestores = Domain + "/restores"
	// AnnotationPrepared, on a volume claim or a Secret, says that the group uses it and did not make it: the operator never deletes it. Once a
	// person takes it off, the object is the group's.
	AnnotationPrepared = Domain + "/prepared"
	// AnnotationAllowGroups, on a TLS Secret, lists the groups of its namespace that may use it, separated by commas; * means all.
	AnnotationAllowGroups = Domain + "/allow-groups"
	// AnnotationKeyringDigest is the digest of a keyring in escrow.
	AnnotationKeyringDigest = Domain + "/keyring-digest"
	// AnnotationKeyringRound is the unseal that a token, or an unsealed pod, was made for.
	AnnotationKeyringRound = Domain + "/keyring-round"

	// AnnotationAbortFailover, with any value, gives a planned failover up that has not passed its point of no return.
	AnnotationAbortFailover = Domain + "/abort-planned-failover"
	// AnnotationPauseUntil is a time as in RFC 3339 until which the operator changes no role, rolls no pod and clones no
	// site by itself.
	AnnotationPauseUntil = Domain + "/pause-until"

	// AnnotationOperatedBy names the release of the operator that is to operate the group, by its leader-election Lease, as
	// namespace/name. The release that operates it hands it over.
	AnnotationOperatedBy = Domain + "/operated-by"

	// AnnotationForceFailover overrides a blocked emergency failover: the value names the site to promote although
	// acknowledged writes may be lost. Cleared once carried out.
	AnnotationForceFailover = Domain + "/accept-data-loss-failover"
)

// Field managers of server-side apply, one for each owner.
const (
	ManagerController       = "mfg-operator"
	ManagerControllerStatus = "mfg-operator-status"
	ManagerKeyringStatus    = "mfg-operator-keyring"
	ManagerMonitor          = "mfg-monitor"
	ManagerMonitorStatus    = "mfg-monitor-status"
	ManagerClaim            = "mfg-claim"
	ManagerCache            = "mfg-cache"
	ManagerCacheStatus      = "mfg-cache-status"
	ManagerBackup           = "mfg-backup"
	ManagerBackupStatus     = "mfg-backup-status"
	ManagerPITRStatus       = "mfg-pitr-status"
	// ManagerPrepared owns AnnotationPrepared and nothing else, so that no apply of another owner takes it away.
	ManagerPrepared = "mfg-prepared"
	// ManagerPlugin is kubectl mfg, whatever it writes.
	ManagerPlugin = "kubectl-mfg"
	// ManagerRequest, with a kind of requests after it, owns the last answer of that kind: whoever answers one kind writes no other.
	ManagerRequest = "mfg-request-"
)

// IndexGroup is the index of the operator's cache in which the pods, Deployments and Services of a group are found by its name.
const IndexGroup = "mfg.group"

// IndexCacheSets is the index of the operator's cache in which the StatefulSets of a group's cache store are found by its name.
const IndexCacheSets = "mfg.cachesets"

// Finalizer keeps the group until what must outlive it has been let go.
const Finalizer = Domain + "/group"

// OutOfServiceTaint is set by a person on a node that is known to be down; Kubernetes defines it.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// ContainerSidecar is the native sidecar that fences; it starts once the volume's lock is had.
const ContainerSidecar = "sidecar"

// InactiveSiteTaint is the key of the taint on the nodes of a group's sites that are not active; its value is the site.
// Every group has a key of its own, because a node holds only one taint of a key and effect: with a shared key the
// groups on one node would overwrite each other. Neither name contains a dot, so no two groups share a key.
func InactiveSiteTaint(namespace, group string) string {
	return group + "." + namespace + "." + Domain + "/inactive-site"
}

// InactiveSiteEffect is the effect of InactiveSiteTaint. It asks and does not forbid: when the node of the active site
// is lost, those of the other sites are all tainted, and what must come back there (the operator itself, cluster DNS,
// pods of other groups) cannot know the keys of groups and would find no place.
const InactiveSiteEffect = "PreferNoSchedule"

// ContainerLoad is the init container that loads a backup onto the first site of a new group.
const ContainerLoad = "load"

// ContainerBootstrap is the init container that takes the volume's lock.
const ContainerBootstrap = "bootstrap"

// Environment of the sidecar that the operator reads back from the pods that run.
const (
	EnvLeaseTimeout = "MFG_LEASE_TIMEOUT"
	EnvFenceTimeout = "MFG_FENCE_TIMEOUT"
	// EnvPeers lists the host:port of the other sites' sidecars, separated by commas.
	EnvPeers = "MFG_PEERS"
	// EnvReportKey is the file with the key that authenticates reports.
	EnvReportKey = "MFG_REPORT_KEY_FILE"
	// EnvAuthorityKey is the key that the sidecar trusts. Nothing reads it back: AnnotationAuthority has the same.
	EnvAuthorityKey = "MFG_AUTHORITY_KEY"
	// EnvRequireTLS has the accounts of the group use TLS. Exactly the pods have it whose MySQL refuses connections without.
	EnvRequireTLS = "MFG_REQUIRE_TLS"
)

// RequiresTLS is true for a pod of MySQL that was made to refuse connections without TLS. The option file, which has MySQL do so, is not
// part of a pod; what the sidecar is told of it is.
func RequiresTLS(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil && e.Name == EnvRequireTLS && e.Value == "true" {
				return true
			}
		}
	}
	return false
}

// Authenticates is true if the sidecar of a pod was started with a key for its reports. Those of a pod that an older operator began are not
// authenticated. What the sidecar answers says nothing of that: anybody can leave a signature out.
func Authenticates(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil && e.Name == EnvReportKey {
				return true
			}
		}
	}
	return false
}

// Peers are the host:port of the other sites' sidecars that the sidecar of a pod was started with.
func Peers(pod *corev1.Pod) []string {
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil && e.Name == EnvPeers {
				return strings.Split(e.Value, ",")
			}
		}
	}
	return nil
}

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

// MySQLPods selects the pods of a site's MySQL, as kubectl takes it. Group and site alone select those of its cache, too.
func MySQLPods(group, site string) string {
	return fmt.Sprintf("%s=%s,%s=%s,%s=%s", LabelGroup, group, LabelSite, site, LabelName, NameMySQL)
}

// CacheSiteName is the name of the StatefulSet, the Service and the PodDisruptionBudget of one site's cache.
func CacheSiteName(group, site string) string { return fmt.Sprintf("%s-cache-%s", group, site) }

// CacheService is the name of the Service of the cache's master, to which applications connect.
func CacheService(group string) string { return group + "-cache" }

// CacheSelector is the selector of that Service: it follows the labels of the cache's pods.
func CacheSelector(group string) map[string]string {
	return map[string]string{LabelName: NameCache, LabelGroup: group, LabelCacheRole: string(CacheMaster), LabelCacheTraffic: CacheTrafficOn}
}

// CacheVolumeName is the name of the PVC of one site's cache.
func CacheVolumeName(group, site string) string { return CacheSiteName(group, site) + "-data" }

// CacheConfigName is the name of the ConfigMap of a group's cache.
func CacheConfigName(group string) string { return group + "-cache-config" }

// CacheAuthSecret is the Secret with the password of the cache that the operator makes, under the key CachePassword.
func CacheAuthSecret(group string) string { return group + "-cache-auth" }

// CachePassword is the key of the Secret with the cache's password.
const CachePassword = "password"

// CachePasswordPrevious is the key of the password before it, which is tried at a pod that does not have the new one yet.
const CachePasswordPrevious = CachePassword + PasswordPrevious

// CachePort is the port of the cache, with TLS or without.
const CachePort = 6379

// DisruptionBudgetName is the name of the PodDisruptionBudget of the MySQL pods.
func DisruptionBudgetName(group string) string { return "mysql-" + group }

// ProtectionName is the name of the PodDisruptionBudget of the pods that must not be evicted now.
func ProtectionName(group string) string { return "mysql-" + group + "-protected" }

// DNSEndpointName is the name of the DNSEndpoint that has external-dns publish the active site.
func DNSEndpointName(group string) string { return fmt.Sprintf("mysql-%s-primary", group) }

// AuthoritySecret is the Secret with the key that signs the statements of a group, in the namespace of the operator.
func AuthoritySecret(group types.UID) string { return "mfg-authority-" + string(group) }

// FormerAuthoritySecret is where operators before this one kept that key, beside the group.
func FormerAuthoritySecret(group string) string { return fmt.Sprintf("mysql-%s-authority", group) }

// Keys of the authority Secret: the private key, PKCS#8 in PEM, and how it follows from the keys before, a wire.Chain in JSON.
const (
	AuthorityPrivateKey = "private.pem"
	AuthorityChain      = "chain.json"
)

// AuthoritySecretOfTLS holds the authority that the operator made for a group with tls: {}, with its private key. No pod mounts it.
func AuthoritySecretOfTLS(group string) string { return fmt.Sprintf("mysql-%s-ca", group) }

// MadeTLSSecret holds the certificate that the operator made for a group with tls: {}.
func MadeTLSSecret(group string) string { return fmt.Sprintf("mysql-%s-tls", group) }

// AccountsSecret holds the generated passwords of the operator's own MySQL accounts.
func AccountsSecret(group string) string { return fmt.Sprintf("mysql-%s-accounts", group) }

// Keys of the accounts Secret: the password of each account. Those of one that is being replaced have the suffixes.
const (
	AccountOperator    = "operator"
	AccountReplication = "replication"
	AccountSidecar     = "sidecar"
	AccountClone       = "clone"
	// AccountBackup is what backups are made with, for groups that have a profile. It follows from AccountClone, and is replaced with it.
	AccountBackup = "backup"

	// PasswordKnown is the operator's own copy of what the servers take, PasswordNext what they are being given, PasswordPrevious
	// what they take still.
	PasswordKnown    = "-known"
	PasswordNext     = "-next"
	PasswordPrevious = "-previous"
	// PasswordPrefix begins each password that is made: it satisfies a server that checks passwords for kinds of letters.
	PasswordPrefix = "mP1-"
	// PasswordSerial is the key that counts the changes.
	PasswordSerial = "serial"
	// PasswordOrder is the key with the ID of the order for which the passwords that come were made.
	PasswordOrder = "order"
)

// ReportSecret holds the key with which the sidecar of a site authenticates its reports.
func ReportSecret(group, site string) string { return SiteName(group, site) + "-report" }

// ReportKey is the key of the report Secret: 32 random bytes.
const ReportKey = "key"

// RootSecret holds the generated password of root@localhost, for the user.
func RootSecret(group string) string { return fmt.Sprintf("mysql-%s-root", group) }

// KeyringSecret is the immutable escrow Secret of one version of a site's keyring.
func KeyringSecret(group, site string, version int64) string {
	return fmt.Sprintf("mysql-%s-%s-keyring-v%d", group, site, version)
}

// Keys of the escrow Secret and of the token Secret.
const (
	KeyringKey      = "keyring"
	KeyringTokenKey = "token"
	// KeyringTokenCA is, beside the token, the authorities of the escrow endpoint's certificate if the operator makes it.
	KeyringTokenCA = "ca.crt"
)

// KeyringTokenSecret holds the bearer token with which a site escrows its keyring.
func KeyringTokenSecret(group, site string) string {
	return fmt.Sprintf("mysql-%s-%s-keyring-token", group, site)
}

// generatedSecrets are the names under which the operator keeps passwords and keys, of any group and site.
var generatedSecrets = regexp.MustCompile(`^(mysql-.+-(accounts|root|app|report|authority|ca|keyring-token|keyring-v[0-9]+)|mfg-authority-.+)$`)

// IsGeneratedSecret is true for a name under which the operator keeps passwords or keys, of a group that is there or may come yet. Where a
// specification names a Secret, it must be none of these: who may edit groups may not read Secrets by that, nor have them written over.
func IsGeneratedSecret(name string) bool { return generatedSecrets.MatchString(name) }
