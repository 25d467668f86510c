// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// How is each site? One row for each.

func (o Options) siteColumns(r report.MysqlFailoverGroupReport) []column {
	site := column{title: "SITE"}
	role := column{title: "ROLE", drop: 2}
	state := column{title: "STATE"}
	lag := column{title: "LAG"}
	behind := column{title: "GTID BEHIND", short: "BEHIND"}
	fence := column{title: "FENCE"}
	keyring := column{title: "KEYRING", drop: 1}
	disk := column{title: "DISK", drop: 3}
	node := column{title: "NODE", drop: 3}
	errant := column{title: "ERRANT", drop: 4}
	follows := column{title: "FOLLOWS", drop: 5}
	version := column{title: "VERSION", drop: 6}
	seen := column{title: "LAST SEEN", short: "SEEN", drop: 7}
	for _, s := range r.Sites {
		mark := "  "
		if s.Active {
			mark = "* "
		}
		site.cells = append(site.cells, text{s: mark + s.Name})
		role.cells = append(role.cells, text{s: orNone(s.Role)})
		state.cells = append(state.cells, stateCell(s))
		lag.cells = append(lag.cells, replicaCell(s, seconds(s.LagSeconds)))
		behind.cells = append(behind.cells, replicaCell(s, count(s.Behind)))
		fence.cells = append(fence.cells, fenceCell(s))
		keyring.cells = append(keyring.cells, keyringCell(s.Keyring))
		disk.cells = append(disk.cells, diskCell(s.Volume))
		node.cells = append(node.cells, text{s: orNone(s.Node)})
		errant.cells = append(errant.cells, errantCell(s))
		follows.cells = append(follows.cells, text{s: orNone(s.ReplicatingFrom)})
		version.cells = append(version.cells, text{s: orNone(s.Version)})
		seen.cells = append(seen.cells, o.seenCell(s))
	}
	columns := []column{site, role, state, lag, behind, fence}
	if r.Encryption != nil {
		columns = append(columns, keyring)
	}
	if slices.ContainsFunc(r.Sites, func(s report.Site) bool { return s.Volume != nil }) {
		columns = append(columns, disk)
	}
	columns = append(columns, node)
	if o.Wide {
		columns = append(columns, errant, follows, version, seen)
	}
	return columns
}

func stateCell(s report.Site) text {
	if s.Foreign {
		return text{lower(s.StateWord()), bad}
	}
	switch v1alpha1.SiteState(s.State) {
	case "":
		return text{unknown, warn}
	case v1alpha1.SitePrimary, v1alpha1.SiteReplica:
		return text{lower(s.State), good}
	case v1alpha1.SiteDiverged, v1alpha1.SiteUnreachable:
		return text{lower(s.State), bad}
	default:
		return text{lower(s.State), warn}
	}
}

func fenceCell(s report.Site) text {
	switch {
	case s.KeptFenced && s.Fence != wire.FenceOpen:
		return text{s.FenceWord(), warn}
	case s.Fence == "" || s.Fence == wire.FenceUnknown:
		return text{unknown, warn}
	case s.Fence == wire.FenceOpen && s.Active:
		return text{s.Fence, good}
	case s.Fence == wire.FenceOpen:
		return text{s.Fence, bad}
	default:
		return text{s: s.Fence}
	}
}

func keyringCell(k *report.Keyring) text {
	if k == nil || k.Phase == "" {
		return text{none, warn}
	}
	words := lower(k.Phase)
	if k.Version > 0 {
		words = fmt.Sprintf("v%d %s", k.Version, words)
	}
	switch v1alpha1.KeyringPhase(k.Phase) {
	case v1alpha1.KeyringSealed:
		return text{words, good}
	case v1alpha1.KeyringFailed:
		return text{words, bad}
	case v1alpha1.KeyringPending, v1alpha1.KeyringUnsealed, v1alpha1.KeyringEscrowed:
	}
	return text{words, warn}
}

// From how many percent on a volume counts as filling up, and as nearly full: a MySQL without room stops.
const (
	diskFilling = 80
	diskFull    = 90
)

func diskCell(use *wire.VolumeUse) text {
	if use == nil {
		return text{s: unknown}
	}
	cell := text{s: strconv.FormatInt(use.Percent(), 10) + "%"}
	switch {
	case use.Percent() >= diskFull:
		cell.colour = bad
	case use.Percent() >= diskFilling:
		cell.colour = warn
	}
	return cell
}

// replicaCell draws a number that has no meaning for the active site, nor for one whose data will soon be replaced.
func replicaCell(s report.Site, value string) text {
	if s.Active || s.State == string(v1alpha1.SitePending) || s.State == string(v1alpha1.SiteCloning) {
		return text{s: none}
	}
	return text{s: value}
}

func errantCell(s report.Site) text {
	switch {
	case s.Errant > 0:
		return text{strconv.FormatInt(s.Errant, 10), bad}
	case s.ErrantSet != "":
		return text{s.ErrantSet, bad}
	case s.Reachable == nil || !*s.Reachable:
		return text{s: unknown}
	default:
		return text{s: "0"}
	}
}

func (o Options) seenCell(s report.Site) text {
	if s.LastSeen == nil {
		return text{s: unknown}
	}
	return text{s: o.ago(*s.LastSeen) + " ago"}
}
