// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types; what each means while it is true.
const (
	// ConditionReady: every site is up, replicates and is fit for its role.
	ConditionReady = "Ready"
	// ConditionAvailable: a site is open for writes, and a write as a client makes it succeeds there.
	ConditionAvailable = "Available"
	// ConditionProgressing: objects of the group are being made, updated or removed, or volumes grow.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: the group works, and something that keeps it safe is missing: a site, its replication, or its fitness.
	ConditionDegraded = "Degraded"
	// ConditionReplicationHealthy: every replica replicates from the active site.
	ConditionReplicationHealthy = "ReplicationHealthy"
	// ConditionFailoverBlocked: a failover is due or under way, and needs a person or a change of the facts.
	ConditionFailoverBlocked = "FailoverBlocked"
	// ConditionTLSReady: the group's certificate is there, names what it must, and MySQL shows it.
	ConditionTLSReady = "TLSReady"
	// ConditionTLSRequired: the sites refuse connections without TLS. It is there in a group that got TLS later, or that lets clients
	// connect without it, and says what the next step waits for.
	ConditionTLSRequired = "TLSRequired"
	// ConditionEncryptionReady: every keyring is sealed, and what the specification asks for is encrypted.
	ConditionEncryptionReady = "EncryptionAtRestReady"
	// ConditionBackupReady: every profile has a backup, its last attempt succeeded, and none that was due is missing. It is unknown while the
	// first backup of a profile is not due yet, or is being made.
	ConditionBackupReady = "BackupReady"
	// ConditionBackupVerified: the newest verification restored a backup, and it is not older than it should be. It is unknown while there is no
	// backup to verify.
	ConditionBackupVerified = "BackupVerified"
	// ConditionPITRReady: binary logs are archived, the latest point in time that can be recovered is as young as it should be, and nothing is
	// missing.
	ConditionPITRReady = "PITRReady"
	// ConditionRestoreReady: the group has all that initFromBackup names; while it is false, nothing opens.
	ConditionRestoreReady = "RestoreReady"
	// ConditionCacheReady: the cache store follows the active site.
	ConditionCacheReady = "CacheReady"
	// ConditionUnbuiltFeatures: the specification asks for something that this version does not have.
	ConditionUnbuiltFeatures = "UnbuiltFeatures"
	// ConditionSpecRefused: the specification asks for something that is not allowed, and the group runs without it.
	ConditionSpecRefused = "SpecRefused"
	// ConditionPaused: until the time in pause-until the operator begins no failover, replaces no pod and clones no site unless a person orders it.
	ConditionPaused = "Paused"
	// ConditionSitesKeptFenced: a person keeps at least one site fenced: the operator does not open it, and it does not take over.
	ConditionSitesKeptFenced = "SitesKeptFenced"
	// ConditionPlannedBlocked: the active site is about to go, and its role cannot be moved away.
	ConditionPlannedBlocked = "PlannedFailoverBlocked"
	// ConditionDNSReady: the DNS name points to the active site.
	ConditionDNSReady = "DNSReady"
	// ConditionTaintsReady: the nodes carry the taints that follow the roles.
	ConditionTaintsReady = "TaintsReady"
	// ConditionApplicationReady: the database of spec.application is there, and its account can log in with the password of its Secret.
	ConditionApplicationReady = "ApplicationReady"
	// ConditionUpgradePending: pods of the group were made by an older version of the operator; they are replaced when it is the group's turn.
	ConditionUpgradePending = "UpgradePending"
)
