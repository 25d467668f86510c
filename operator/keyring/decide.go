// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Decision says what to do with the keyrings of a group.
type Decision struct {
	// Sites are in the order of Group.Sites.
	Sites []Next
	// Refused says why the group is not encrypted although its specification asks for it; normally empty.
	Refused string
	// Effects are those that belong to no single site.
	Effects []Effect
}

// Next says what to do with the keyring of one site.
type Next struct {
	Name string
	// Status must be persisted before the effects are carried out.
	Status v1alpha1.SiteKeyringStatus
	// Moved is true if the decision took a row of the table.
	Moved bool
	// Missing is true while the escrow Secret that status names is gone, or its content is not what was stored.
	Missing bool
	// Lost is true if neither the site's pod nor another one like it can read the site's data.
	Lost    bool
	Wish    Wish
	Effects []Effect

	site Site
	now  metav1.MicroTime
}

// All returns the effects of all sites and of the group, in order.
func (d Decision) All() []Effect {
	var out []Effect
	for _, n := range d.Sites {
		out = append(out, n.Effects...)
	}
	return append(out, d.Effects...)
}

// Decide takes at most one step with each site.
func Decide(g Group) Decision {
	d := Decision{Refused: adoptionRefused(g)}
	if d.Refused != "" {
		d.Effects = append(d.Effects, Say{What: EventAdoptionRefused, Text: d.Refused})
	}
	for _, s := range g.Sites {
		d.Sites = append(d.Sites, next(g, s, d.Refused))
	}
	if why := noSuchSite(g); why != "" {
		d.Effects = append(d.Effects, refused(g.Rotate, v1alpha1.AnswerUnknownSite, why)...)
	}
	return d
}

// adoptionRefused says why a group that serves without encryption is not encrypted: its data would stay in the clear, and
// no one would learn of it.
func adoptionRefused(g Group) string {
	if g.Adopt {
		return ""
	}
	plain := false
	for _, s := range g.Sites {
		if s.Status.Phase != "" || s.Rendered.Keyring {
			return "" // the group is encrypted, and so is an added site
		}
		plain = plain || s.plain() || s.Provisioned && len(s.Versions) == 0
	}
	if !plain {
		return ""
	}
	return "spec.encryptionAtRest.enabled was turned on for a group that already serves: existing tablespaces would stay plaintext. Nothing " +
		"was changed. Load a new encrypted group instead, or accept it with the annotation " + v1alpha1.AnnotationEncryptionAdopt + "=confirm"
}

func next(g Group, s Site, plain string) Next {
	s.Pod.proven = s.Pod.Lost
	s.Pod.Lost = s.Pod.Lost || lostSilently(s)
	n := Next{Name: s.Name, Lost: s.Pod.Lost || s.starved(), Status: *s.Status.DeepCopy(), site: s, now: metav1.NewMicroTime(g.Now)}
	n.Status.Name = s.Name
	if g.RotateSet {
		n.Status.RotationRefused = "" // it was for an earlier order
	}
	if plain == "" {
		n.step(g)
	}
	if ordered(g, s) && n.Status.Work == v1alpha1.KeyringRotation && !onlyFound(n.Status) {
		n.Status.Request = g.RotateID // also if the order was withdrawn and given again meanwhile
	}
	n.learn()
	n.note()
	n.site.Status = n.Status
	n.level(g)
	n.Status.Coverage = coverage(s)
	n.Status.Message = message(g, n.site)
	_, have := n.site.current()
	n.Missing = n.Status.Phase == failed && n.Status.KeyringSecret != "" && !have
	n.Wish = WishOf(g.Name, n.site)
	return n
}

// step takes the first row that fits.
func (n *Next) step(g Group) {
	s := n.site
	for _, row := range Table {
		if !slices.Contains(row.From, s.Status.Phase) || !row.when(g, s) {
			continue
		}
		n.Moved = true
		row.then(g, n)
		if row.To != "" && (row.To != n.Status.Phase || n.Status.Round != s.Status.Round) {
			n.Status.Phase, n.Status.Since = row.To, &n.now
		}
		return
	}
}

// level adds the effects that are due as long as their facts hold, so that none is lost if an operator ends.
func (n *Next) level(g Group) {
	s := n.site
	st := s.Status
	add := func(e Effect) { n.Effects = append(n.Effects, e) }
	switch {
	case written(st) && s.TokenRound != st.Round:
		add(MakeToken{Site: s.Name, Round: st.Round})
	case st.Phase == sealed && s.TokenRound != 0:
		add(DropToken{Site: s.Name})
	}
	if names := prunable(s, g.RetainVersions); len(names) > 0 {
		add(Prune{Site: s.Name, Names: names})
	}
	if st.Stage == v1alpha1.KeyringRotating && !st.Rotated && !s.Job.Running && !s.Job.Done && !s.Pod.Lost && mayRotate(g, s) {
		add(Rotate{Site: s.Name})
	}
	if !n.Moved && lostKeys(s) && s.Provisioned && g.Donor && giveUpWaits(s) == "" {
		add(Unprovision{Site: s.Name, Why: "its pod was lost during a rotation, and the new master keys with it"})
		add(Say{Site: s.Name, What: EventKeyringLost,
			Text: fmt.Sprintf("Site %s lost its pod during a rotation, and the new master keys with it: it is cloned again from the active site", s.Name)})
	}
	if !n.Moved && s.Pod.Empty && s.Provisioned && !s.Active && g.Donor && st.Phase != "" {
		add(Unprovision{Site: s.Name, Why: "its data volume is empty"})
	}
	n.answer(g)
}

// answer answers an order that was carried out, or that cannot be.
func (n *Next) answer(g Group) {
	s := n.site
	switch {
	case !ordered(g, s):
	case s.Status.Phase == sealed && s.Status.Rotated && s.Status.Request == g.RotateID:
		n.Effects = append(n.Effects, done(s)) // an order that came while the pod was being sealed is another one: it gets its own rotation
	case s.Status.Work == v1alpha1.KeyringRotation || s.Status.Rotated || s.Status.Stage == v1alpha1.KeyringSealing:
		// It is under way, or about to be: a later step answers it.
	case g.Known && !n.Moved:
		n.refuse(g, s)
	}
}

func done(s Site) Answer {
	return Answer{Site: s.Name, Done: true, Why: "the keyring is sealed as " + s.Status.KeyringSecret}
}

// refuse answers an order that must not be carried out, if a guard has a reason.
func (n *Next) refuse(g Group, s Site) {
	if reason, why := refusal(g, s); why != "" {
		n.Status.RotationRefused = why
		n.Effects = append(n.Effects, refused(s.Name, reason, why)...)
	}
}

func refused(site, reason, why string) []Effect {
	return []Effect{
		Answer{Site: site, Reason: reason, Why: why},
		Say{Site: site, What: EventRotationRefused, Text: fmt.Sprintf("Rotation of the keyring of %s was refused: %s", site, why)},
	}
}

// unseal begins a new round.
func (n *Next) unseal(work v1alpha1.KeyringWork, seed Version) {
	st := &n.Status
	st.Work, st.Stage, st.Rotated = work, "", false
	st.PlainAccepted = false // it was given for the volume of an earlier round
	st.Round++
	st.SeedVersion, st.SeedDigest, st.FloorVersion, st.RotationPod = seed.Number, seed.Digest, seed.Number, ""
	for _, v := range n.site.Versions {
		st.FloorVersion = max(st.FloorVersion, v.Number)
	}
	from := "a fresh keyring"
	if seed.Number > 0 {
		from = seed.Name
	}
	n.say(EventUnsealed, fmt.Sprintf("The keyring of site %s is unsealed for %s, starting from %s", n.Name, work, from))
}

// endRound forgets what unseal noted of its round.
func (n *Next) endRound() {
	st := &n.Status
	st.Work, st.Stage, st.SeedVersion, st.SeedDigest, st.FloorVersion, st.RotationPod = "", "", 0, "", 0, ""
	st.PlainAccepted = false
}

// hold makes an escrow Secret the site's current one.
func (n *Next) hold(v Version) {
	st := &n.Status
	st.KeyringSecret, st.KeyringVersion, st.KeyringDigest = v.Name, v.Number, v.Digest
}

func (n *Next) say(what Event, text string) {
	n.Effects = append(n.Effects, Say{Site: n.Name, What: what, Text: text})
}
