// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DNSSpec publishes the active site by external-dns.
type DNSSpec struct {
	// name is the DNS name that follows the active site.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// ttlSeconds is the time to live of the record in seconds. Default 30, from 1 to 300.
	//
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
}

// TaintsSpec taints the nodes of sites that are not fit to run the application next to the database: all but the node
// of the active site.
type TaintsSpec struct {
	// enabled puts the taint <group>.<namespace>.mysql-mfg.io/inactive-site=<site>:PreferNoSchedule on the node of every
	// site that is not active. The operator needs the right to change nodes: nodeTaints.enabled of its chart.
	// Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
}
