// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UpgradeStatus tells what only another version of the operator changes about a group's pods, which waits for the group's turn, from what was
// asked for, which is done at once. See docs/upgrades.md.
type UpgradeStatus struct {
	// revision names the program and the installation's settings that templates were made with.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// generation is that of the specification which the pods were last compared with.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// sites holds one entry for each site that has a pod.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []UpgradeSite `json:"sites,omitempty"`
}

// UpgradeCache begins the name of an entry for the pod of a site's cache.
const UpgradeCache = "cache/"

// UpgradeSite is what the pod of a site is held against.
type UpgradeSite struct {
	// name is the site's, or cache/ and the site's for the pod of its cache.
	Name string `json:"name"`
	// template is the hash of the pod template as the revision made it when it first looked. As long as that is what is wished, only the
	// operator's version is another.
	//
	// +optional
	Template string `json:"template,omitempty"`
	// behind is true for a pod that only an older version of the operator made different.
	//
	// +optional
	Behind bool `json:"behind,omitempty"`
	// asked is true for a pod that differs by what a person, or the group itself, asked for. It waits for no turn.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`
}
