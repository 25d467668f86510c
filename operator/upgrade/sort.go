// SPDX-License-Identifier: Apache-2.0

package upgrade

// Known is what was kept of a site's pod template.
type Known struct {
	// Revision is the version of the operator that looked, with the settings of its installation.
	Revision string
	// Template is the hash of the template that it wished for when it first looked.
	Template string
	// Asked is true if the pod differed by what was asked for.
	Asked bool
}

// Look is one look at a site's pod template.
type Look struct {
	// Revision is that of this process.
	Revision string
	// Has is the hash of the template in place, Wants that of the one that is wished for.
	Has, Wants string
	// Changed is true if the specification is not the one that was acted on last.
	Changed bool
}

// Sort tells whether a pod differs only by the operator's version, and what to keep of it. A revision that first sees a difference takes it for
// its own doing, unless the specification changed too or the version before had it as asked for; a wish that is another one under the same
// revision was asked for, by a person or by what the group itself does, such as the rotation of a keyring.
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
	return keep, !keep.Asked
}
