// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SiteState is what a site is right now, in one word.
type SiteState string

// The states of a site.
const (
	SitePending     SiteState = "Pending"
	SitePrimary     SiteState = "Primary"
	SiteReplica     SiteState = "Replica"
	SiteFenced      SiteState = "Fenced"
	SiteCloning     SiteState = "Cloning"
	SiteDiverged    SiteState = "Diverged"
	SiteUnreachable SiteState = "Unreachable"
	SiteDetached    SiteState = "Detached"
)

// SiteIncarnation is a pod of a site on a machine.
type SiteIncarnation struct {
	// podUID is the UID of the pod.
	//
	// +required
	PodUID string `json:"podUID"`
	// node is the name of its node.
	//
	// +optional
	Node string `json:"node,omitempty"`
	// machine is what was behind that name: the UID of the node and the UUID of its system.
	//
	// +optional
	Machine string `json:"machine,omitempty"`
	// volumeID is the random name of the data volume that its sidecar reported.
	//
	// +optional
	VolumeID string `json:"volumeID,omitempty"`
	// leaseMillis is for how long it may stay open without an answer, the time for its fence included.
	//
	// +optional
	LeaseMillis int64 `json:"leaseMillis,omitempty"`
	// closed is true once another pod was opened after proof that this one accepts no writes. It may still tell the active site that that
	// is active.
	//
	// +optional
	Closed bool `json:"closed,omitempty"`
}

// SiteStatus is one site as seen by the operator.
type SiteStatus struct {
	// name of the site.
	//
	// +required
	Name string `json:"name"`
	// state is what the site is right now: Pending, Primary, Replica, Fenced, Cloning, Diverged, Unreachable or Detached.
	//
	// +optional
	State SiteState `json:"state,omitempty"`
	// reason is why the site is in that state, one CamelCase word.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people and names the next step.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// errant is the GTID set that this site has and the active site lacks, as far as it was seen last.
	//
	// +optional
	Errant string `json:"errant,omitempty"`
	// filtered is the server_uuid of the MySQL of this site, if that was seen with a replication filter: it may lack rows that its set says it
	// has, until the site is copied again.
	//
	// +optional
	Filtered string `json:"filtered,omitempty"`
	// outlivedLease is true if the site was seen to accept writes after its lease must have ended, and its sidecar was not heard to have
	// one since. Nobody fences it then, so it is replaced only on proof that it accepts no writes, and not after a time.
	//
	// +optional
	OutlivedLease bool `json:"outlivedLease,omitempty"`
	// keptFenced is true while a person keeps the site fenced (kubectl mfg fence on): it is not opened and takes over from nobody. The
	// operator has seen that, and goes by it.
	//
	// +optional
	KeptFenced bool `json:"keptFenced,omitempty"`
	// incarnations are the pods of the site that have run and are not known to have ended, in the order in which they were seen. While
	// there is more than one, what the newest says proves nothing for the site.
	//
	// +optional
	// +listType=atomic
	Incarnations []SiteIncarnation `json:"incarnations,omitempty"`

	// clone is the copy that the site receives, while it does.
	//
	// +optional
	Clone *CloneProgress `json:"clone,omitempty"`
	// provisioned is true once the site's data is part of the group: it was the first active site, or was cloned.
	//
	// +optional
	Provisioned bool `json:"provisioned,omitempty"`
	// volumeID names the data volume on which the site was provisioned, after a random name that is kept on the volume.
	// A site that shows up with another volume has lost that data.
	//
	// +optional
	VolumeID string `json:"volumeID,omitempty"`
	// unlisted is true for a site that was added to a group with data and has not got its own yet: no pod of another site was started
	// with it as a peer, so it can keep nobody's lease, and no failover waits for it. It goes for good, before any pod is made that
	// asks the site.
	//
	// +optional
	Unlisted bool `json:"unlisted,omitempty"`
	// node is where the sidecar of the site's pod started last. It stays while a replacement of that pod waits, since the
	// old one may still run there.
	//
	// +optional
	Node string `json:"node,omitempty"`
	// image that the site's pod runs.
	//
	// +optional
	Image string `json:"image,omitempty"`
	// version of the site's MySQL.
	//
	// +optional
	Version string `json:"version,omitempty"`
}

// FormerSite is a site that left the spec. Its volume may still be there, and it may come back with it.
type FormerSite struct {
	// name that the site had.
	//
	// +required
	Name string `json:"name"`
	// filtered is the server_uuid of the MySQL of this site, which was seen with a replication filter: it may lack rows that its set says it
	// has.
	//
	// +optional
	Filtered string `json:"filtered,omitempty"`
}

// CloneProgress is how far a clone has come, from clone_progress of the recipient.
type CloneProgress struct {
	// source is the site whose data is copied.
	//
	// +optional
	Source string `json:"source,omitempty"`
	// stage is the stage that runs, as MySQL names it, such as FILE COPY.
	//
	// +optional
	Stage string `json:"stage,omitempty"`
	// percent of the estimated bytes that has arrived, in steps of 5.
	//
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// etaSeconds is how long the rest will take at the pace so far, in seconds, rounded up to 10.
	//
	// +optional
	ETASeconds *int64 `json:"etaSeconds,omitempty"`
	// order is why the site is cloned although it had data: the value of the annotation reclone-site, or onDivergence.
	// Empty for a clone that throws nothing away.
	//
	// +optional
	Order string `json:"order,omitempty"`
	// startedAt is when the clone was ordered or began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
}
