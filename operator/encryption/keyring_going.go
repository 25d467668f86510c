// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	// EventSiteRemovalRefused says why a site stays although the specification no longer has it.
	EventSiteRemovalRefused = events.Warning(v1alpha1.ReasonSiteRemovalRefused, "Refuse")
	eventDeletionWaits      = events.Warning(v1alpha1.ReasonDeletionWaits, "Hold")
	eventKeyringLeftBehind  = events.Warning(v1alpha1.ReasonKeyringLeftBehind, "Remove")
)

// KeepsKeyrings is true for a group of which a volume outlives its pod and then still needs its keyring.
func (r *Encryption) KeepsKeyrings(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (bool, error) {
	if !scope.Encrypted(group) || r.Escrow == nil {
		return false, nil
	}
	sites := slices.Clone(group.Spec.Sites)
	if at := group.Status.EncryptionAtRest; at != nil {
		for _, st := range at.Sites {
			sites = append(sites, v1alpha1.Site{Name: st.Name}) // one that left the specification may still have its pod
		}
	}
	for _, site := range sites {
		if stays, err := r.volumeStays(ctx, group, site.Name); err != nil || stays {
			return stays, err
		}
	}
	return false, nil
}

// volumeStays is true for a site whose volume outlives its pod: all of a group whose data stays, and one that people prepared with any
// deletion policy. It is read live, since what is missed here is data that may never be readable again.
func (r *Encryption) volumeStays(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) (bool, error) {
	if scope.Keeps(group) {
		return true, nil
	}
	volume := &corev1.PersistentVolumeClaim{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.DataVolumeName(group.Name, site)}, volume)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the volume of %s: %w", site, err)
	}
	return apply.IsPrepared(volume), nil
}

// escrowPatience bounds how long a pod that must go is kept for its keyring: whatever keeps the keyring out of escrow, a
// deletion must end.
func escrowPatience(group *v1alpha1.MysqlFailoverGroup) time.Duration {
	return time.Duration(group.Spec.EncryptionAtRest.Keyring.EscrowTimeoutSeconds) * time.Second
}

// inPodAlone says why the pod of a site should not go yet: the keyring that reads its volume is, or may be, in its memory alone.
// Empty if the pod may go.
func (r *Encryption) inPodAlone(ctx context.Context, s *scope.Scope, name string) (string, error) {
	pod := s.Pods[name]
	if pod == nil || pod.Spec.NodeName == "" {
		return "", nil // no pod has anything in memory
	}
	site, err := r.Site(ctx, s, name)
	if err != nil {
		return "", fmt.Errorf("look at the keyring of %s: %w", name, err)
	}
	if !site.Provisioned && len(site.Versions) == 0 {
		return "", nil // it holds no data that counts, and a new group of the same name makes it again
	}
	// A site that was just cloned has no mark yet, and a new group of the same name would start it from what is in escrow.
	site.Provisioned = true
	if keyring.EscrowIsGone(site) {
		site.Status.Phase = v1alpha1.KeyringFailed // for a group that is being deleted the operator decides no more phases
	}
	// A pod in which keys were made is kept until it is sealed with them, since the next pod must start from them. Here there is no next
	// pod: it is enough that the keys are in escrow.
	site.Status.Rotated = false
	nothing := site.Pod.Lost || site.Pod.Current && site.Pod.Unborn
	unsealed := pod.Annotations[v1alpha1.AnnotationKeyringRound] != ""
	switch why := keyring.WishOf(s.Key.Name, site).Kept; {
	case site.Report == nil && !nothing && (unsealed || why != ""):
		return "its sidecar has not said yet which keyring its pod has", nil
	case site.Report == nil:
		return "", nil // a sealed pod that reports nothing has nothing to give: its keyring is in escrow
	default:
		return why, nil
	}
}

// keepsPod says the same of a site whose volume stays; a volume that goes needs no keyring.
func (r *Encryption) keepsPod(ctx context.Context, s *scope.Scope, name string) (string, error) {
	if stays, err := r.volumeStays(ctx, s.Group, name); err != nil || !stays {
		return "", err
	}
	return r.inPodAlone(ctx, s, name)
}

// AwaitEscrow is true while the deletion of a group must wait, since the volume of a site stays and its keyring would go with its
// pod. The poll loop runs meanwhile: it vouches for the pods that push keyrings, and reads what they have.
func (r *Encryption) AwaitEscrow(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (bool, error) {
	s := r.Port.NewScope(group)
	// Not since the deletion was ordered: an operator that was down then, or whose clock differs from the API server's, would not wait at all (I9).
	left := escrowPatience(group) - r.Waits.SinceFirst(s, waitForKeyrings)
	alone, err := r.allInPodAlone(ctx, s)
	if left <= 0 {
		for _, site := range scope.Sorted(alone) {
			r.leaveBehind(s, site, alone[site])
		}
		if err != nil {
			r.Say(s, "", eventKeyringLeftBehind, fmt.Sprintf("Within %s the operator could not see which keyrings are in escrow, and the pods end now: the data on a "+
				"volume that stays may be unreadable (%v)", escrowPatience(group), err))
		}
		return false, nil // whatever is wrong, even with the look itself
	}
	if err != nil {
		if r.Changed(s.Key, string(eventDeletionWaits.Reason), lookFails) {
			r.Recorder.Emit(group, nil, eventDeletionWaits, "Volumes stay, and nobody can see which of their keyrings are in escrow: the deletion waits until %s "+
				"at the latest (%v)", s.Now.Add(left).UTC().Format(time.RFC3339), err)
		}
		return false, err
	}
	if len(alone) == 0 || r.RefusesSecrets(ctx, group) {
		return false, nil
	}
	r.Port.Ensure(s.Key)
	names := strings.Join(scope.Sorted(alone), ", ")
	if r.Changed(s.Key, string(eventDeletionWaits.Reason), names) {
		var lines []string
		for _, site := range scope.Sorted(alone) {
			lines = append(lines, site+": "+alone[site])
		}
		r.Recorder.Emit(group, nil, eventDeletionWaits, "Volumes stay, and the keyring of %s is not known to be in escrow yet: the deletion waits for it, until %s "+
			"at the latest (%s)", names, s.Now.Add(left).UTC().Format(time.RFC3339), strings.Join(lines, "; "))
	}
	log.FromContext(ctx).Info("the deletion waits for keyrings", "sites", alone)
	return true, nil
}

// allInPodAlone calls keepsPod for every site that has a pod, also for sites that left the specification.
func (r *Encryption) allInPodAlone(ctx context.Context, s *scope.Scope) (map[string]string, error) {
	if err := r.Port.Observe(ctx, s); err != nil {
		return nil, err
	}
	alone := map[string]string{}
	for _, site := range scope.Sorted(s.Pods) {
		why, err := r.keepsPod(ctx, s, site)
		if err != nil {
			return nil, err
		}
		if why != "" {
			alone[site] = why
		}
	}
	return alone, nil
}

// RefusesSecrets is true for a namespace that is being deleted: no keyring comes into escrow there any more, and the volumes go too. The
// operator may not read namespaces, so it asks whether a Secret could be made. Any other error may be temporary, and does not count.
func (r *Encryption) RefusesSecrets(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) bool {
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, GenerateName: v1alpha1.AccountsSecret(group.Name) + "-",
		Labels: render.GroupLabels(group.Name)}}
	err := r.Client.Create(ctx, probe, client.DryRunAll, client.FieldOwner(v1alpha1.ManagerController))
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}

// lookFails stands for the sites that the operator could not look at.
const lookFails = "the look fails"

// waitForKeyrings names how long a group that is being deleted has been kept.
const waitForKeyrings = "keyrings"

// WaitForKeyring names how long a site that left the specification has been kept.
func WaitForKeyring(site string) string { return "keyring of " + site }

// RemovalWaits is true while a site that left the specification keeps its pod for its keyring.
func (r *Encryption) RemovalWaits(ctx context.Context, s *scope.Scope, site string) (bool, error) {
	if !scope.Encrypted(s.Group) || r.Escrow == nil {
		return false, nil
	}
	why, err := r.keepsPod(ctx, s, site)
	if err != nil || why == "" {
		return false, err
	}
	if r.Waits.SinceFirst(s, WaitForKeyring(site)) >= escrowPatience(s.Group) {
		r.leaveBehind(s, site, why)
		return false, nil
	}
	text := fmt.Sprintf("site %s left the specification, and its volume stays: its pod is kept until its keyring is in escrow: %s", site, why)
	s.Progress(scope.Moving(v1alpha1.ReasonWaitingForKeyring, text), scope.WhenMoving)
	r.Say(s, site, EventSiteRemovalRefused, fmt.Sprintf("site %s left the specification, and is kept until its keyring is in escrow", site))
	return true, nil
}

// leaveBehind reports a volume that stays although it may never be readable again.
func (r *Encryption) leaveBehind(s *scope.Scope, site, why string) {
	r.Say(s, site, eventKeyringLeftBehind, fmt.Sprintf("The keyring of site %s did not come into escrow within %s, and its pod goes: what is on its volume %s "+
		"may not be readable any more (%s)", site, escrowPatience(s.Group), v1alpha1.DataVolumeName(s.Key.Name, site), why))
}

// gone returns the keyrings' status of sites that left the specification and are still there: without it the operator would not
// take what their pods push.
func gone(s *scope.Scope) []v1alpha1.SiteKeyringStatus {
	var out []v1alpha1.SiteKeyringStatus
	at := s.Group.Status.EncryptionAtRest
	if at == nil {
		return nil
	}
	wanted := s.Sites()
	for _, st := range at.Sites {
		if _, stays := wanted[st.Name]; !stays && s.Deployments[st.Name] != nil {
			out = append(out, st)
		}
	}
	return out
}
