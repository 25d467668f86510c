// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"time"
)

// component is the keyring component that MySQL must name.
const component = "component_keyring_file"

// calmBeforeSealing is how long the live keyring, and the work on the site, must have been unchanged at the time of the last
// report before the site is sealed with that keyring. It is longer than a sidecar takes to see a change and to report it, so that
// nothing written at the end of a clone is missed. How often the sites are polled does not matter: the time of the report counts.
const calmBeforeSealing = 5 * time.Second

// seals is the chain of conditions under which a site counts as sealed (specification, keyring lifecycle 5). Each says
// what is missing; empty means that it holds. With Read_only: Yes alone MySQL was seen to rewrite the file, so the mount
// must be read-only too.
var seals = []func(Group, Site) string{escrowExists, digestsEqual, rendersSecret, podHoldsSecret, keyringIsReadOnly}

func escrowExists(_ Group, s Site) string {
	if _, exists := s.version(s.Status.KeyringSecret); exists {
		return ""
	}
	return fmt.Sprintf("there is no escrow Secret %q", s.Status.KeyringSecret)
}

func digestsEqual(_ Group, s Site) string {
	v, _ := s.version(s.Status.KeyringSecret)
	switch {
	case v.Digest != s.Status.KeyringDigest:
		return "the content of the escrow Secret " + v.Name + " is not the one that was stored"
	case s.Report == nil || s.Report.Digest == "":
		return "the sidecar does not tell the digest of the keyring"
	case s.Report.Digest != v.Digest:
		return "the pod has another keyring than the escrow Secret " + v.Name
	}
	return ""
}

func rendersSecret(_ Group, s Site) string {
	if s.Rendered.Sealed && s.Rendered.Secret == s.Status.KeyringSecret {
		return ""
	}
	return "its pod is to be replaced by one with the escrowed keyring"
}

func podHoldsSecret(_ Group, s Site) string {
	switch {
	case !s.Pod.Current || !s.Pod.Ready:
		return "its pod with the escrowed keyring is not ready"
	case s.Pod.Projects != s.Status.KeyringSecret:
		return "its pod has not mounted the escrowed keyring read-only"
	}
	return ""
}

func keyringIsReadOnly(g Group, s Site) string {
	switch r := s.Report; {
	case r == nil || r.Component == "":
		return "MySQL has not said what its keyring is"
	case !r.Sealed:
		return "its sidecar runs unsealed"
	case r.Component != component || !r.Active || r.DataFile != g.DataFile:
		return fmt.Sprintf("MySQL does not use the keyring %s by %s", g.DataFile, component)
	case !r.ReadOnly:
		return "MySQL says that it may write its keyring"
	case !r.MountReadOnly:
		return "the keyring is not mounted read-only"
	}
	return ""
}

// unsealedYet says why a site is not sealed; empty if it is.
func unsealedYet(g Group, s Site) string {
	for _, missing := range seals {
		if why := missing(g, s); why != "" {
			return why
		}
	}
	return ""
}

// workDone is true once no work is left that writes the keyring.
func workDone(s Site) bool {
	return s.Provisioned && !s.Busy && s.Clone == CloneNone && !s.Job.Running
}

// readyToSeal is true if the site may be sealed with the version that status names.
func readyToSeal(s Site) bool {
	_, have := s.current()
	return have && !s.outlived() && workDone(s) && s.live() == s.Status.KeyringDigest && s.Calm >= calmBeforeSealing
}
