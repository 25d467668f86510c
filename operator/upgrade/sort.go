// SPDX-License-Identifier: Apache-2.0

package upgrade

// Known is what is remembered of a site's pod template.
type Known struct {
	// Revision is the version of the operator that looked, with the settings of its installation.
	Revision string
	// Template is the hash of the template that it wanted when it first looked.
	Template string
	// Asked is true if the pod differed because of a request.
	Asked bool
}

// Look is one look at a site's pod template.
type Look struct {
	// Revision is this process's.
	Revision string
	// Has is the hash of the template in place, Wants the hash of the wanted one.
	Has, Wants string
	// Changed is true if the specification is not the one last acted on.
	Changed bool
	// Ordered is true if the templates differ in what no version of the operator changes on its own.
	Ordered bool
}

// Sort tells whether a pod differs only by the operator's version, and what to remember. A revision that first sees a difference attributes it
// to itself, unless the specification changed too or the previous version had noted a request. If the wanted template changes under one
// revision, that was requested, by a person or by the group's own work, such as the rotation of a keyring. What is certain to be an order is
// one, whichever look sees it first: the order may have come while no operator ran.
func Sort(known Known, l Look) (keep Known, behind bool) {
	keep = Known{Revision: l.Revision, Template: l.Wants}
	switch {
	case l.Has == l.Wants:
		return keep, false
	case known.Revision != l.Revision:
		keep.Asked = l.Changed || known.Asked
	case known.Asked || known.Template != l.Wants:
		keep.Template, keep.Asked = known.Template, true
	}
	keep.Asked = keep.Asked || l.Ordered
	return keep, !keep.Asked
}
