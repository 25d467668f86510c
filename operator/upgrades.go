// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mysql-mfg/mfg/api/pace"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/upgrade"
	"github.com/mysql-mfg/mfg/operator/upgrade/turns"
)

// upgradeSettings say how groups get the pods of another version of the operator.
type upgradeSettings struct {
	pause, stopAfter time.Duration
	window           string
	policy           upgrade.Policy
}

// shortestPause is long enough to see what happens to a group's pods.
const shortestPause = 10 * time.Second

// shortestStop is less than any group needs for its new pods.
const shortestStop = time.Minute

func (u *upgradeSettings) flags(f *flag.FlagSet) {
	f.DurationVar(&u.pause, "upgrade-pause", time.Minute, "how long a group stays healthy with the pods of a new version of the operator before the next group's turn; at least 10s")
	f.DurationVar(&u.stopAfter, "upgrade-stop-after", 30*time.Minute, "how long a group may take for that; after it no other group begins until a person says so; at least 1m")
	f.StringVar(&u.window, "upgrade-window", "", "when a group's turn may begin, in UTC, such as \"Mon-Fri 22:00-04:00; Sat,Sun 00:00-24:00\"; never keeps every group at its version, empty means at any time")
}

// settle makes the policy of what was given, and says what of it cannot be used. None of that ends the operator: a slip in a setting that only
// paces upgrades would leave every group without failover. A window that nobody can read is never open, as that of a group.
func (u *upgradeSettings) settle() (notes []string) {
	window, err := pace.ParseWindow(u.window)
	if err != nil {
		notes, window = append(notes, fmt.Sprintf("--upgrade-window: %s; no group gets new pods until it is mended", err)), pace.Never
	}
	for _, d := range []struct {
		flag  string
		value *time.Duration
		least time.Duration
	}{{"--upgrade-pause", &u.pause, shortestPause}, {"--upgrade-stop-after", &u.stopAfter, shortestStop}} {
		if *d.value < d.least {
			notes = append(notes, fmt.Sprintf("%s %s is too short: %s is used", d.flag, *d.value, d.least))
			*d.value = d.least
		}
	}
	u.policy = upgrade.Policy{Pause: u.pause, StopAfter: u.stopAfter, Window: window}
	return notes
}

// newTurns makes the Keeper of the groups' turns. Its Lease is beside the one by which this process leads.
func newTurns(mgr ctrl.Manager, s settings, install render.Install) (*turns.Keeper, error) {
	revision, err := turns.Revision(install)
	if err != nil {
		return nil, err
	}
	return &turns.Keeper{Revision: revision, Options: turns.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Lease: types.NamespacedName{Namespace: s.namespace, Name: leaseName + v1alpha1.UpgradeLeaseSuffix},
		Own: s.lease(), Namespaces: elements(s.watchNamespaces), Policy: s.upgrades.policy, Now: time.Now,
	}}, nil
}
