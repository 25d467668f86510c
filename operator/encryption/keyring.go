// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventKeyringUnsealed           = events.Normal(v1alpha1.ReasonKeyringUnsealed, "Unseal")
	eventKeyringEscrowed           = events.Normal(v1alpha1.ReasonKeyringEscrowed, "Escrow")
	eventKeyringSealed             = events.Normal(v1alpha1.ReasonKeyringSealed, "Seal")
	eventKeyringEscrowMissing      = events.Warning(v1alpha1.ReasonKeyringEscrowMissing, "Hold")
	eventKeyringEscrowRestored     = events.Normal(v1alpha1.ReasonKeyringEscrowRestored, "Observe")
	eventKeyringNotEscrowed        = events.Warning(v1alpha1.ReasonKeyringNotEscrowed, "Retry")
	eventKeyringLost               = events.Warning(v1alpha1.ReasonKeyringLost, "Clone")
	eventKeyringFound              = events.Normal(v1alpha1.ReasonKeyringFound, "Seal")
	eventKeyringRotated            = events.Normal(v1alpha1.ReasonKeyringRotated, "Rotate")
	eventKeyringRotationRefused    = events.Warning(v1alpha1.ReasonKeyringRotationRefused, "Refuse")
	eventKeyringCampaignBegan      = events.Normal(v1alpha1.ReasonKeyringCampaignBegan, "Rotate")
	eventKeyringCampaignWaits      = events.Warning(v1alpha1.ReasonKeyringCampaignWaits, "Hold")
	eventKeyringCampaignDone       = events.Normal(v1alpha1.ReasonKeyringCampaignDone, "Rotate")
	eventKeyringCampaignStopped    = events.Warning(v1alpha1.ReasonKeyringCampaignStopped, "Stop")
	eventEncryptionAdopted         = events.Normal(v1alpha1.ReasonEncryptionAdopted, "Adopt")
	eventEncryptionAdoptionRefused = events.Warning(v1alpha1.ReasonEncryptionAdoptionRefused, "Refuse")
)

// Keep takes a step with the keyring of each site, before anything is rendered. It persists each decision before it carries
// it out, with the resource version of the group that it decided on: a person may have patched the group meanwhile.
func (r *Encryption) Keep(ctx context.Context, s *scope.Scope) error {
	if !scope.Encrypted(s.Group) {
		return r.refuseWithoutEncryption(ctx, s)
	}
	if r.Escrow == nil || r.EscrowURL == "" {
		return r.withoutListener(s)
	}
	g, err := r.keyringGroup(ctx, s)
	if err != nil {
		return err
	}
	c, d := decide(s, g)
	if err := r.Persist(ctx, s, d, c.Status); err != nil {
		if apierrors.IsConflict(err) {
			s.Again = min(s.Again, scope.WhenOvertaken)
			return scope.ErrStop // the group was written meanwhile: begin again with its present state
		}
		return err
	}
	r.wishKeyrings(s, d)
	r.reportKeyrings(s, d) // report what is persisted even while an effect fails: alerts depend on it
	if err := r.performKeyrings(ctx, s, d); err != nil {
		return err
	}
	if err := r.performCampaign(ctx, s, c); err != nil {
		return err
	}
	if err := r.keepTrust(ctx, s); err != nil {
		return err
	}
	r.Port.TellIgnoredKeys(s)
	return nil
}

// EscrowIsGone is true if a pod that is about to be replaced is sealed with a keyring that is no longer in escrow: then its memory has the
// only copy. It reads escrow now, since what Keep read may be minutes old, and no watch reports a Secret that lost its labels first (I17).
func (r *Encryption) EscrowIsGone(ctx context.Context, s *scope.Scope, name string) (bool, error) {
	if r.Escrow == nil || !scope.Encrypted(s.Group) {
		return false, nil
	}
	r.escrows.forget(s.SiteKey(name))
	site, err := r.Site(ctx, s, name)
	if err != nil {
		return false, fmt.Errorf("look at the keyring of %s: %w", name, err)
	}
	return keyring.EscrowIsGone(site), nil
}

// keepTrust lets the pods that push keyrings trust the endpoint when its authority is replaced. A sealed pod asks for nothing.
func (r *Encryption) keepTrust(ctx context.Context, s *scope.Scope) error {
	if r.KeepTrust == nil {
		return nil
	}
	for _, site := range scope.Sorted(s.In.Keyrings) {
		if s.In.Keyrings[site].Token == "" {
			continue
		}
		if err := r.KeepTrust(ctx, s.Group, site); err != nil {
			return fmt.Errorf("give %s the authorities of the escrow endpoint: %w", site, err)
		}
	}
	return nil
}

// withoutListener keeps a new group from running: its keyrings could not come into escrow. A running group continues
// unchanged: none of its pods is replaced, since the operator cannot know what their memory holds.
func (r *Encryption) withoutListener(s *scope.Scope) error {
	message := "the operator was installed without its escrow listener: set auxiliary.escrowTLS.enabled in the chart mfg"
	s.Condition(conditions.False(v1alpha1.ConditionEncryptionReady, v1alpha1.ReasonEscrowListenerMissing, message))
	s.Progress(scope.Stuck(v1alpha1.ReasonEscrowListenerMissing, "no pods are made or replaced: "+message), scope.WhenWaiting)
	if len(s.Deployments) == 0 {
		return scope.ErrStop
	}
	s.In.Keyrings, s.Keyrings.Kept = map[string]render.Keyring{}, map[string]string{}
	for _, site := range s.Group.Spec.Sites {
		status := scope.KeyringStatus(s.Group, site.Name)
		showKeyring(s.Key.Namespace, s.Key.Name, status)
		w := keyring.WishOf(s.Key.Name, keyring.Site{Name: site.Name, Status: status})
		if w.Encrypted {
			s.In.Keyrings[site.Name] = renderKeyring(s.Key.Name, site.Name, w)
		}
		s.Keyrings.Kept[site.Name] = message
	}
	return nil
}

// refuseWithoutEncryption answers an order for a group that has no keyrings.
func (r *Encryption) refuseWithoutEncryption(ctx context.Context, s *scope.Scope) error {
	site, set := s.Group.Annotations[v1alpha1.AnnotationRotateKeyring]
	if !set {
		return nil
	}
	return r.performKeyring(ctx, s, keyring.Answer{Site: site, Reason: v1alpha1.AnswerNotEncrypted, Why: "the group is not encrypted (spec.encryptionAtRest.enabled)"})
}

// wishKeyrings passes on how the pods must be made.
func (r *Encryption) wishKeyrings(s *scope.Scope, d keyring.Decision) {
	s.In.Keyrings = map[string]render.Keyring{}
	s.Keyrings = scope.Keyrings{Kept: map[string]string{}, Unreadable: map[string]bool{}, Missing: map[string]bool{}}
	for _, n := range d.Sites {
		s.Keyrings.Kept[n.Name] = n.Wish.Kept
		s.Keyrings.Unreadable[n.Name] = n.Lost || n.Missing
		s.Keyrings.Missing[n.Name] = n.Missing
		if n.Wish.Encrypted {
			s.In.Keyrings[n.Name] = renderKeyring(s.Key.Name, n.Name, n.Wish)
		}
		if n.Status.Rotated || n.Status.Work != v1alpha1.KeyringRotation {
			r.Work.EndRotation(s.SiteKey(n.Name)) // status records it, or it is over
		}
		switch {
		case d.Refused != "" || !n.Moved && n.Status.Phase == v1alpha1.KeyringSealed:
		case n.Missing:
			s.Again = min(s.Again, scope.WhenWaiting) // it waits for a person; the watch sees what they restore
		default:
			s.Again = min(s.Again, scope.WhenMoving)
		}
	}
}

// renderKeyring translates a wish for render. I18: only an unsealed pod has a token.
func renderKeyring(group, site string, w keyring.Wish) render.Keyring {
	k := render.Keyring{Sealed: w.Sealed, Work: w.Work, Secret: w.Secret, Version: w.Version, Digest: w.Digest}
	if !w.Sealed {
		k.AcceptPlain = w.AcceptPlain
		k.Token, k.Round = v1alpha1.KeyringTokenSecret(group, site), strconv.FormatInt(w.Round, 10)
	}
	return k
}

// performKeyrings carries out the effects in order, and stops at the first error: the next decision brings the rest again.
func (r *Encryption) performKeyrings(ctx context.Context, s *scope.Scope, d keyring.Decision) error {
	for _, e := range d.All() {
		if err := r.performKeyring(ctx, s, e); err != nil {
			return fmt.Errorf("%s: %w", e, err)
		}
	}
	return nil
}

func (r *Encryption) performKeyring(ctx context.Context, s *scope.Scope, e keyring.Effect) error {
	switch e := e.(type) {
	case keyring.MakeToken:
		r.escrows.forget(s.SiteKey(e.Site))
		return r.Escrow.RenewToken(ctx, s.Group, e.Site, e.Round)
	case keyring.DropToken:
		r.escrows.forget(s.SiteKey(e.Site))
		return r.Escrow.DropToken(ctx, s.Group, e.Site)
	case keyring.Prune:
		r.escrows.forget(s.SiteKey(e.Site))
		var errs []error
		for _, name := range e.Names {
			errs = append(errs, r.Escrow.Prune(ctx, s.Group, e.Site, name))
		}
		return errors.Join(errs...)
	case keyring.Rotate:
		r.rotator.begin(s.Group, e.Site)
	case keyring.Unprovision:
		// The controller's part of status persists it; what follows from it waits for that (I15).
		s.Provisioned[e.Site] = false
		s.Again = min(s.Again, scope.WhenMoving)
	case keyring.Answer:
		return r.answerRotation(ctx, s, e)
	case keyring.Say:
		r.sayKeyring(s, e)
	}
	return nil
}

func (r *Encryption) answerRotation(ctx context.Context, s *scope.Scope, e keyring.Answer) error {
	answer := asks.Refused(e.Reason, e.Why)
	if e.Done {
		answer = asks.Done(e.Why)
	}
	if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRotateKeyring, e.Site, answer); err != nil {
		return err
	}
	if !e.Done {
		countRotation(s.Key, RotationRefused)
	}
	return nil
}

// keyringEvents are the events of the phase machine as people see them.
var keyringEvents = map[keyring.Event]events.Event{
	keyring.EventUnsealed: eventKeyringUnsealed, keyring.EventEscrowed: eventKeyringEscrowed, keyring.EventSealed: eventKeyringSealed,
	keyring.EventEscrowMissing: eventKeyringEscrowMissing, keyring.EventEscrowBack: eventKeyringEscrowRestored,
	keyring.EventNotEscrowed: eventKeyringNotEscrowed, keyring.EventKeyringLost: eventKeyringLost, keyring.EventFound: eventKeyringFound,
	keyring.EventRotated: eventKeyringRotated, keyring.EventRotationRefused: eventKeyringRotationRefused,
	keyring.EventAdopted: eventEncryptionAdopted, keyring.EventAdoptionRefused: eventEncryptionAdoptionRefused,
}

func (r *Encryption) sayKeyring(s *scope.Scope, e keyring.Say) {
	if e.What == keyring.EventAdoptionRefused {
		r.Say(s, "", keyringEvents[e.What], e.Text) // it is said at every look
		return
	}
	r.Recorder.Emit(s.Group, r.Related(s, e.Site), keyringEvents[e.What], "%s", e.Text)
}
