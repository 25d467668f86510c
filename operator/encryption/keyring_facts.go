// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/recipients"
	"github.com/mysql-mfg/mfg/operator/render"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// keyringGroup collects the facts that the phases rest on.
func (r *Encryption) keyringGroup(ctx context.Context, s *scope.Scope) (keyring.Group, error) {
	spec := s.Group.Spec.EncryptionAtRest.Keyring
	g := keyring.Group{
		Name: s.Key.Name, Now: s.Now, RetainVersions: int(spec.RetainVersions),
		EscrowTimeout: time.Duration(spec.EscrowTimeoutSeconds) * time.Second, DataFile: spec.DataFileDir + "/" + render.KeyringFile,
		Adopt: s.Group.Annotations[v1alpha1.AnnotationEncryptionAdopt] == adoptConfirm,
		Known: s.Known && steadyFacts(s), Transition: s.Group.Status.Transition != nil, Donor: donorWhole(s),
	}
	if p := s.Group.Status.PlannedFailover; p != nil && (p.Phase == v1alpha1.PlannedWaiting || p.Phase == v1alpha1.PlannedMoving) {
		g.PlannedTo = p.To
	}
	order, set := asks.Open(s.Group, v1alpha1.RequestRotateKeyring)
	campaign := v1alpha1.AsksForCampaign(order.Value) // the campaign names the site once it has decided
	g.Rotate, g.RotateID, g.RotateSet = order.Value, order.ID, set && !campaign
	if s.Group.IsNew() && s.Restore != nil {
		g.EscrowTimeout = 0 // no one can say how long loading a backup takes, and no site opens before its keyring is in escrow (I16)
	}
	for _, site := range s.Group.Spec.Sites {
		if s.RestorePending && site.Name != s.RestoreSite && s.Deployments[site.Name] == nil {
			continue // it has no pod yet, and its time has not begun; it has one if a restore that was complete begins again
		}
		if s.Refused[site.Name] && !s.Group.IsNew() && scope.KeyringStatus(s.Group, site.Name).Phase == "" {
			continue // neither has that of a site that cannot be made, which must not hold up the keyrings of the others
		}
		one, err := r.Site(ctx, s, site.Name)
		if err != nil {
			return keyring.Group{}, fmt.Errorf("look at the keyring of %s: %w", site.Name, err)
		}
		g.Sites = append(g.Sites, one)
	}
	if set {
		g.Update = r.updateInFlight(s, g)
	}
	if keyring.AdoptsNext(g) {
		g.EscrowTrouble = r.EscrowTrouble(ctx, s)
	}
	return g, nil
}

// adoptConfirm is the value of the annotation encryption-adopt that accepts partial coverage.
const adoptConfirm = "confirm"

// steadyFacts is true if the facts and status name the same active site.
func steadyFacts(s *scope.Scope) bool { return s.Facts.ActiveSite == s.ActiveSite() }

// donorWhole is true if the active site is open on the volume that holds the group's data.
func donorWhole(s *scope.Scope) bool {
	active := s.ActiveSite()
	return scope.Steady(s) && s.Facts.Open && s.Provisioned[active] && !scope.Replaced(s, active)
}

// Site is one site as it is now.
func (r *Encryption) Site(ctx context.Context, s *scope.Scope, name string) (keyring.Site, error) {
	moving := s.Group.Status.Transition
	_, busy := r.Work.Busy(s.Key.Namespace, s.Key.Name, name)
	site := keyring.Site{
		Name: name, Status: scope.KeyringStatus(s.Group, name), Provisioned: s.Provisioned[name], Busy: busy,
		Active:   name == s.ActiveSite() || moving != nil && (moving.To == name || moving.From == name),
		Diverged: mayDiffer(s, name), Alone: alone(s, name),
		Report: reportOf(s, name), Passive: passive(s, name),
	}
	look, err := r.escrowLook(ctx, s, site)
	if err != nil {
		return keyring.Site{}, err
	}
	site.Versions, site.Rendered, site.InUse, site.TokenRound = look.versions, look.rendered, look.inUse, look.tokenRound
	site.Pod = PodOf(s, name)
	site.Pod.Projects = look.projects
	site.Job = r.Work.Rotation(s.SiteKey(name), site.Pod.UID)
	site.Clone = r.Port.CloneWish(s, name)
	// A person has durably given up the data: the site starts from a fresh keyring, not from one with which mysqld does not start.
	site.Pod.Lost = site.Pod.Lost || site.Clone == keyring.CloneConfirmed && site.Pod.Round == 0 && site.Pod.Silent
	// It takes the time of this moment: what was read of the work may be newer than the beginning of the reconcile.
	site.Calm = r.escrows.calm(s.SiteKey(name), calmKey(s, site), time.Now(), s.Facts.Sites[name].ReportedAt)
	return site, nil
}

// passive is true for a site that is never promoted.
func passive(s *scope.Scope, name string) bool {
	return slices.ContainsFunc(s.Group.Spec.Sites, func(site v1alpha1.Site) bool {
		return site.Name == name && site.Role == v1alpha1.DROnly
	})
}

// reportOf is what the sidecar says of the keyring, if it is the sidecar of the very pod that this look found.
func reportOf(s *scope.Scope, name string) *wire.KeyringReport {
	pod, f := s.Pods[name], s.Facts.Sites[name]
	if pod == nil || !s.Known || f.PodUID != string(pod.UID) {
		return nil
	}
	return f.Keyring
}

// PodOf returns the facts about the pod of a site that matter for its keyring.
func PodOf(s *scope.Scope, name string) keyring.Pod {
	pod := s.Pods[name]
	if pod == nil || s.Deployments[name] == nil {
		return keyring.Pod{}
	}
	out := keyring.Pod{
		UID: string(pod.UID), Current: scope.IsCurrent(s, name),
		Ready: scope.PodReady(pod), Settled: scope.Settled(s, name),
	}
	if round := pod.Annotations[v1alpha1.AnnotationKeyringRound]; round != "" {
		out.Round = roundOf(round)
	}
	if !out.Current {
		return out
	}
	why := bootstrapEnded(pod)
	out.Empty = strings.Contains(why, wire.MarkNoData)
	out.Lost = out.Empty || strings.Contains(why, wire.MarkKeyringLost)
	out.Plain = strings.Contains(why, wire.MarkPlainData)
	out.Unborn = neverBegan(pod) || out.Plain || strings.Contains(why, wire.MarkNoSeed)
	out.Silent = scope.Silent(s, name)
	return out
}

// neverBegan is true while the init container that starts from the keyring has never run in a pod: the keyring is not in memory. If a
// pod says nothing of that container, it may have run.
func neverBegan(pod *corev1.Pod) bool {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == render.ContainerBootstrap {
			return c.RestartCount == 0 && c.State.Waiting != nil && c.LastTerminationState == (corev1.ContainerState{})
		}
	}
	return false
}

// mayDiffer is true if a site has, or may have, transactions that no other site has. If the data of an old active site was
// replaced before it was compared, all of it came from its successor.
func mayDiffer(s *scope.Scope, name string) bool {
	record := scope.ReplacedBy(s.Group, name)
	return s.Facts.Sites[name].Diverged || record != nil && !record.LossExact && record.FromServerUUID != lineage.ServerReplaced
}

// alone is true if no other site but the active one is a healthy copy that lasts.
func alone(s *scope.Scope, name string) bool {
	return !slices.ContainsFunc(s.Group.Spec.Sites, func(other v1alpha1.Site) bool {
		return other.Name != name && other.Name != s.ActiveSite() && scope.LastingCopy(s, other.Name)
	})
}

// bootstrapEnded says why the init container that starts from the keyring failed; empty if it did not.
func bootstrapEnded(pod *corev1.Pod) string {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name != render.ContainerBootstrap || c.Ready {
			continue
		}
		for _, state := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if state != nil && state.ExitCode != 0 {
				return state.Message
			}
		}
	}
	return ""
}

// updateInFlight names a site that is not yet as the status persisted before this look asks; empty if all are.
func (r *Encryption) updateInFlight(s *scope.Scope, g keyring.Group) string {
	in := s.In
	// The pods are made of what can be used of such a specification, and differ from it for as long as it stands.
	unusable := recipients.Refusal(&s.Group.Spec) != ""
	in.Keyrings = map[string]render.Keyring{}
	for _, site := range g.Sites {
		if w := keyring.WishOf(g.Name, site); w.Encrypted {
			in.Keyrings[site.Name] = renderKeyring(g.Name, site.Name, w)
		}
	}
	for _, site := range s.Group.Spec.Sites {
		if s.Refused[site.Name] {
			continue // it has no pod, and gets none by this look
		}
		d := s.Deployments[site.Name]
		if d == nil || scope.BeingReplaced(s, site.Name) {
			return "the pod of " + site.Name + " is replaced"
		}
		// A site that waits for its turn with a new version of the operator may wait for days, and must not hold up keyrings.
		if want := scope.SpecHash(render.Deployment(in, site)); !unusable && scope.SpecHash(d) != want && !s.Upgrade.Held(site.Name, want) {
			return "the pod of " + site.Name + " is replaced"
		}
	}
	return ""
}

// calmKey is all that must stay unchanged for a while before a site is sealed, or before a pod is replaced whose keyring could be
// written. Each end of a rotation counts, since each may have left new keys.
func calmKey(s *scope.Scope, site keyring.Site) string {
	digest, pod := "", ""
	if site.Report != nil {
		digest = site.Report.Digest
	}
	if p := s.Pods[site.Name]; p != nil {
		pod = string(p.UID)
	}
	return fmt.Sprint(digest, pod, site.Provisioned, site.Busy, site.Clone, site.Status.Rotated, site.Job)
}

// escrowNamed returns the escrow Secrets that a pod refers to.
func escrowNamed(group, site string, spec corev1.PodSpec) []string {
	prefix := strings.TrimSuffix(v1alpha1.KeyringSecret(group, site, 0), "0")
	var out []string
	for _, v := range spec.Volumes {
		if v.Secret != nil && strings.HasPrefix(v.Secret.SecretName, prefix) {
			out = append(out, v.Secret.SecretName)
		}
	}
	return out
}

// projected is the Secret that the mysqld of a pod has mounted read-only at the keyring's directory; empty if anything else
// is mounted there too, or if the mount is writable.
func projected(spec corev1.PodSpec, dir string) string {
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == render.ContainerMySQL })
	if i < 0 {
		return ""
	}
	volume := ""
	for _, m := range spec.Containers[i].VolumeMounts {
		switch {
		case m.MountPath != dir && !strings.HasPrefix(m.MountPath, dir+"/"):
		case volume != "" || m.MountPath != dir || !m.ReadOnly || m.SubPath != "":
			return ""
		default:
			volume = m.Name
		}
	}
	for _, v := range spec.Volumes {
		if v.Name == volume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}
