// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// LiveView is the operator's answer, or why there is none.
type LiveView struct {
	Status wire.StatusList
	// Missing says why there is no answer; empty if there is one.
	Missing string
	// Down is true if it is certain that no operator looks after groups now.
	Down bool
	// Denied is true if this user may not ask. That says nothing about the operator, which keeps the custom resource true.
	Denied bool
	// Now is the time of the look, by this machine's clock. What the operator tells has a time of its own, which counts for more.
	Now time.Time
}

// clock is the time of what is seen; zero if it is not known.
func (v LiveView) clock() time.Time {
	if !v.Status.IssuedAt.IsZero() {
		return v.Status.IssuedAt
	}
	return v.Now
}

// group finds the live state of a group.
func (v LiveView) group(namespace, name string) *wire.GroupStatus {
	for i, g := range v.Status.Groups {
		if g.Namespace == namespace && g.Group == name {
			return &v.Status.Groups[i]
		}
	}
	return nil
}

// Build makes the report of one group.
func Build(cr *v1alpha1.MysqlFailoverGroup, view LiveView) MysqlFailoverGroupReport {
	live := view.group(cr.Namespace, cr.Name)
	r := MysqlFailoverGroupReport{
		APIVersion: APIVersion, Kind: Kind,
		Metadata: Metadata{
			Name: cr.Name, Namespace: cr.Namespace,
			CreationTimestamp: timeOf(&cr.CreationTimestamp), DeletionTimestamp: timeOf(cr.DeletionTimestamp),
		},
		Facts:           factsOf(cr, view, live),
		Phase:           string(cr.Status.Phase),
		ActiveSite:      cr.Status.ActiveSite,
		ActiveSiteSince: timeOf(cr.Status.ActiveSiteSince),
		Epoch:           cr.Status.Epoch,
		Transition:      transitionOf(cr.Status.Transition),
		LastFailover:    lastFailover(cr.Status.Failovers, cr.Status.PlannedFailover),
		Planned:         plannedOf(cr.Status.PlannedFailover),
		OrderedTo:       cr.Annotations[v1alpha1.AnnotationForceFailover],
		Forecast:        forecastOf(cr, view, live),
		PausedUntil:     pausedUntil(cr),
		Conditions:      conditionsOf(cr.Status.Conditions),
	}
	if live != nil {
		// The greater epoch is the newer word; at the same epoch both say the same.
		if live.Epoch > r.Epoch {
			r.Epoch, r.ActiveSite, r.ActiveSiteSince = live.Epoch, live.ActiveSite, nil
		}
		if live.Epoch == r.Epoch { // else the decision is about a former active site
			r.Hold = live.Hold
			r.Decision = &Decision{
				Topology: live.Topology, Verdict: live.Verdict, Reason: live.Reason, Message: live.Message,
			}
		}
	}
	r.Sites = sitesOf(cr, live, r.ActiveSite)
	r.Encryption = encryptionOf(cr, r.Sites)
	r.Certificate = CertificateOf(cr)
	r.Cache = CacheOf(cr, r.ActiveSite, r.Forecast)
	r.Backups, r.Restore, r.PITR = BackupsOf(cr), RestoreOf(cr), PITROf(cr)
	r.MySQL = versionOf(r.Sites)
	r.Endpoints = endpointsOf(r)
	r.Problems = problemsOf(cr, view, live, r)
	r.Health, r.Summary = judge(r)
	r.Notes = notesOf(cr, r, view.clock())
	r.Hints = hintsOf(cr, r)
	return r
}

func factsOf(cr *v1alpha1.MysqlFailoverGroup, view LiveView, live *wire.GroupStatus) Facts {
	f := Facts{Source: LastKnown, Operator: view.Status.Operator, Message: view.Missing}
	if live != nil {
		f.Source, f.ObservedAt = Live, &live.ObservedAt
		return f
	}
	if f.Message == "" {
		f.Message = "it does not look after this group (yet)"
	}
	for _, entry := range cr.ManagedFields {
		if entry.Manager == v1alpha1.ManagerMonitorStatus && entry.Subresource == "status" {
			f.ObservedAt = timeOf(entry.Time)
		}
	}
	return f
}

func timeOf(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	utc := t.UTC()
	return &utc
}

func transitionOf(t *v1alpha1.Transition) *Transition {
	if t == nil {
		return nil
	}
	return &Transition{
		Kind: string(t.Kind), Step: string(t.Step), From: t.From, To: t.To, Reason: t.Reason,
		StartedAt: t.StartedAt.UTC(),
	}
}

func plannedOf(p *v1alpha1.PlannedFailoverStatus) *Planned {
	if p == nil {
		return nil
	}
	out := &Planned{From: p.From, To: p.To, Cause: p.Cause, Phase: string(p.Phase), Reason: p.Reason, Message: p.Message, WritePauseMillis: p.WritePauseMillis}
	for into, at := range map[**time.Time]*metav1.MicroTime{&out.StartedAt: p.StartedAt, &out.FinishedAt: p.FinishedAt} {
		if at != nil && !at.IsZero() {
			utc := at.UTC()
			*into = &utc
		}
	}
	return out
}

// pausedUntil trusts the operator's condition, and takes the time from the annotation behind it.
func pausedUntil(cr *v1alpha1.MysqlFailoverGroup) *time.Time {
	until, err := time.Parse(time.RFC3339, cr.Annotations[v1alpha1.AnnotationPauseUntil])
	if err != nil || !meta.IsStatusConditionTrue(cr.Status.Conditions, v1alpha1.ConditionPaused) {
		return nil
	}
	until = until.UTC()
	return &until
}

// lastFailover returns the newest record; the first choice of an active site does not count.
func lastFailover(records []v1alpha1.FailoverRecord, planned *v1alpha1.PlannedFailoverStatus) *Failover {
	for _, f := range records {
		if f.Kind == v1alpha1.FailoverBootstrap {
			continue
		}
		from := f.DetectedAt.Time
		if from.IsZero() {
			from = f.StartedAt.Time
		}
		reverted, intended := revertedFrom(f, planned)
		return &Failover{
			Reverted: reverted, IntendedTo: intended,
			Epoch: f.Epoch, Kind: string(f.Kind), From: f.From, To: f.To, Reason: f.Reason,
			OpenedAt: f.OpenedAt.UTC(), DurationMillis: f.OpenedAt.Sub(from).Milliseconds(),
			LostTransactions: f.LostTransactions, LossExact: f.LossExact, WritePauseMillis: f.WritePauseMillis,
		}
	}
	return nil
}

// revertedFrom recognises a planned failover that ended where it began, and names its intended target. The record does not
// hold it: the last planned failover does, if that record is the newest of its kind.
func revertedFrom(f v1alpha1.FailoverRecord, last *v1alpha1.PlannedFailoverStatus) (reverted bool, intended string) {
	if f.Kind != v1alpha1.FailoverPlanned || f.From != f.To {
		return false, ""
	}
	if last != nil && last.From == f.From && last.FinishedAt != nil &&
		!last.FinishedAt.Time.Before(f.StartedAt.Time) && !last.FinishedAt.After(f.OpenedAt.Time) {
		return true, last.To
	}
	return true, ""
}

func conditionsOf(conditions []metav1.Condition) []Condition {
	out := make([]Condition, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, Condition{Type: c.Type, Status: string(c.Status), Reason: v1alpha1.Reason(c.Reason), Message: c.Message})
	}
	return out
}

// sitesOf lists the sites of the spec in their order, then those that only the operator still sees.
func sitesOf(cr *v1alpha1.MysqlFailoverGroup, live *wire.GroupStatus, active string) []Site {
	known := map[string]v1alpha1.SiteStatus{}
	for _, s := range cr.Status.Sites {
		known[s.Name] = s
	}
	seen := map[string]wire.SiteStatus{}
	var extra []string
	if live != nil {
		for _, s := range live.Sites {
			seen[s.Name] = s
			extra = append(extra, s.Name)
		}
	}
	sites := make([]Site, 0, len(cr.Spec.Sites))
	for _, s := range cr.Spec.Sites {
		site := Site{Name: s.Name, Role: string(s.Role), Active: s.Name == active}
		site.addKnown(known[s.Name])
		if l, ok := seen[s.Name]; ok {
			site.addLive(l)
		}
		sites = append(sites, site)
		extra = slices.DeleteFunc(extra, func(name string) bool { return name == s.Name })
	}
	for _, name := range extra {
		site := Site{Name: name, Role: seen[name].Role, Active: name == active}
		site.addKnown(known[name])
		site.addLive(seen[name])
		sites = append(sites, site)
	}
	return sites
}

func (s *Site) addKnown(k v1alpha1.SiteStatus) {
	s.State, s.Reason, s.Message, s.ErrantSet = string(k.State), k.Reason, k.Message, k.Errant
	s.Foreign = k.Reason == v1alpha1.ReasonForeignWriter && !s.Active
	s.KeptFenced = k.KeptFenced
	s.Provisioned, s.Version, s.Node = k.Provisioned, k.Version, k.Node
	if c := k.Clone; c != nil {
		s.Clone = &Clone{Source: c.Source, Stage: c.Stage, Percent: c.Percent, ETASeconds: c.ETASeconds}
	}
}

func (s *Site) addLive(l wire.SiteStatus) {
	s.Reachable, s.SidecarReachable = &l.Reachable, &l.SidecarReachable
	if l.Reachable { // whether a silent site accepts writes is unknown
		s.Writable = &l.Writable
	}
	s.LagSeconds, s.Behind, s.Errant = l.LagSeconds, l.Behind, l.Errant
	s.ReplicatingFrom, s.Fence = l.ReplicatingFrom, l.Fence
	s.Message, s.Volume = l.Message, l.Volume
	if l.State != "" && l.State != s.State {
		s.Reason = "" // it was noted for the state before
	}
	for into, value := range map[*string]string{&s.State: l.State, &s.Version: l.Version, &s.Node: l.Node} {
		if value != "" {
			*into = value
		}
	}
	// As the operator counts: a site at work (Cloning) is writable behind offline_mode, which keeps clients out.
	s.Foreign = l.Reachable && l.Writable && !s.Active && s.State != string(v1alpha1.SiteCloning)
	if !l.LastSeen.IsZero() {
		s.LastSeen = &l.LastSeen
	}
}

// encryptionOf also adds to each site what is known of its keyring.
func encryptionOf(cr *v1alpha1.MysqlFailoverGroup, sites []Site) *Encryption {
	if e := cr.Spec.EncryptionAtRest; e == nil || !e.Enabled {
		return nil
	}
	out := &Encryption{}
	at := cr.Status.EncryptionAtRest
	if at == nil {
		return out
	}
	out.Sealed = at.Sealed
	out.Campaign = CampaignOf(cr)
	for _, k := range at.Sites {
		out.UnencryptedTablespaces = max(out.UnencryptedTablespaces, k.Coverage.UnencryptedTablespaces)
		for i := range sites {
			if sites[i].Name == k.Name {
				sites[i].Keyring = &Keyring{Phase: string(k.Phase), Version: k.KeyringVersion, Work: string(k.Work), Stage: string(k.Stage), Message: k.Message}
			}
		}
	}
	return out
}

// versionOf names every version in use, the active site's first.
func versionOf(sites []Site) string {
	var versions []string
	for _, active := range []bool{true, false} {
		for _, s := range sites {
			if s.Active == active && s.Version != "" && !slices.Contains(versions, s.Version) {
				versions = append(versions, s.Version)
			}
		}
	}
	return strings.Join(versions, ", ")
}

func endpointsOf(r MysqlFailoverGroupReport) Endpoints {
	e := Endpoints{
		Writes: endpoint(v1alpha1.PrimaryService(r.Metadata.Name), r.Metadata.Namespace),
		Reads:  endpoint(v1alpha1.ReplicasService(r.Metadata.Name), r.Metadata.Namespace),
	}
	for _, s := range r.Sites {
		if !s.Active && s.Fit() {
			e.HealthyReplicas++
		}
	}
	return e
}

func endpoint(service, namespace string) string {
	return fmt.Sprintf("%s.%s:%d", service, namespace, wire.PortMySQL)
}
