// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Persist writes the keyrings' part of status, under its own field manager: it must be durable before anything is done,
// and the rest of status is not known by then.
func (r *Encryption) Persist(ctx context.Context, s *scope.Scope, d keyring.Decision, campaign *v1alpha1.CampaignStatus) error {
	want := keyringsStatus(d)
	if want != nil {
		want.Sites = append(want.Sites, gone(s)...)
		want.Campaign = campaign
	}
	if equality.Semantic.DeepEqual(s.Group.Status.EncryptionAtRest, want) {
		return nil
	}
	status := applyv1alpha1.MysqlFailoverGroupStatus()
	if want != nil {
		at := applyv1alpha1.EncryptionAtRestStatus().WithSealed(want.Sealed)
		for _, site := range want.Sites {
			at.WithSites(keyringApply(site))
		}
		if want.Campaign != nil {
			at.WithCampaign(campaignApply(want.Campaign))
		}
		status.WithEncryptionAtRest(at)
	}
	// The resource version protects what a person patched since this group was read.
	config := applyv1alpha1.MysqlFailoverGroup(s.Key.Name, s.Key.Namespace).WithUID(s.Group.UID).
		WithResourceVersion(s.Group.ResourceVersion).WithStatus(status)
	err := r.Client.Status().Apply(ctx, config, client.FieldOwner(v1alpha1.ManagerKeyringStatus), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write status of keyrings: %w", err)
	}
	if campaign != nil && want != nil && !keeps(config) {
		return errors.New("the CustomResourceDefinition of groups does not know status.encryptionAtRest.campaign: it is older than the operator")
	}
	if config.ResourceVersion != nil {
		s.Group.ResourceVersion = *config.ResourceVersion
	}
	s.Group.Status.EncryptionAtRest = want
	return nil
}

// keeps is true if the API server stored the campaign. Otherwise every look would begin another one.
func keeps(written *applyv1alpha1.MysqlFailoverGroupApplyConfiguration) bool {
	return written.Status != nil && written.Status.EncryptionAtRest != nil && written.Status.EncryptionAtRest.Campaign != nil
}

// keyringsStatus is what status says of the keyrings; nil for a group that is not encrypted yet.
func keyringsStatus(d keyring.Decision) *v1alpha1.EncryptionAtRestStatus {
	if d.Refused != "" {
		return nil
	}
	out := &v1alpha1.EncryptionAtRestStatus{Sealed: len(d.Sites) > 0}
	for _, n := range d.Sites {
		st := n.Status
		st.Message, st.RotationRefused = cut(st.Message, maxKeyringMessage), cut(st.RotationRefused, maxKeyringMessage)
		out.Sealed = out.Sealed && st.Phase == v1alpha1.KeyringSealed
		out.Sites = append(out.Sites, st)
	}
	return out
}

// maxKeyringMessage is the longest message that the API allows.
const maxKeyringMessage = 1024

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

func keyringApply(st v1alpha1.SiteKeyringStatus) *applyv1alpha1.SiteKeyringStatusApplyConfiguration {
	c := st.Coverage
	out := applyv1alpha1.SiteKeyringStatus().WithName(st.Name).WithCoverage(applyv1alpha1.CoverageStatus().
		WithKeyringComponent(c.KeyringComponent).WithKeyringReadOnly(c.KeyringReadOnly).
		WithSystemTablespaceEncrypted(c.SystemTablespaceEncrypted).WithUnencryptedTablespaces(c.UnencryptedTablespaces).
		WithRedoLogEncrypted(c.RedoLogEncrypted).WithUndoLogEncrypted(c.UndoLogEncrypted).WithBinlogEncrypted(c.BinlogEncrypted))
	if st.Phase != "" {
		out.WithPhase(st.Phase)
	}
	if st.KeyringSecret != "" {
		out.WithKeyringSecret(st.KeyringSecret).WithKeyringVersion(st.KeyringVersion).WithKeyringDigest(st.KeyringDigest)
	}
	if st.Work != "" {
		out.WithWork(st.Work)
	}
	if st.Since != nil {
		out.WithSince(*st.Since)
	}
	if st.Rotated {
		out.WithRotated(true)
	}
	if st.Request != "" {
		out.WithRequest(st.Request)
	}
	if st.Stage != "" {
		out.WithStage(st.Stage)
	}
	if st.Round != 0 {
		out.WithRound(st.Round)
	}
	if st.FloorVersion != 0 {
		out.WithFloorVersion(st.FloorVersion)
	}
	if st.SeedVersion != 0 {
		out.WithSeedVersion(st.SeedVersion)
	}
	if st.SeedDigest != "" {
		out.WithSeedDigest(st.SeedDigest)
	}
	if st.RotationPod != "" {
		out.WithRotationPod(st.RotationPod)
	}
	if st.RotatedVersion != 0 {
		out.WithRotatedVersion(st.RotatedVersion)
	}
	if st.PlainAccepted {
		out.WithPlainAccepted(true)
	}
	if st.Message != "" {
		out.WithMessage(st.Message)
	}
	if st.RotationRefused != "" {
		out.WithRotationRefused(st.RotationRefused)
	}
	return out
}

// reportKeyrings sets the condition and the metrics.
func (r *Encryption) reportKeyrings(s *scope.Scope, d keyring.Decision) {
	s.Condition(encryptionCondition(s.Group, d))
	if d.Refused != "" {
		return
	}
	for _, n := range d.Sites {
		showKeyring(s.Key.Namespace, s.Key.Name, n.Status)
	}
}

// encryptionCondition summarises the group. It says what is not covered, whether intended or not.
func encryptionCondition(group *v1alpha1.MysqlFailoverGroup, d keyring.Decision) conditions.Condition {
	if d.Refused != "" {
		return conditions.False(v1alpha1.ConditionEncryptionReady, v1alpha1.ReasonEncryptionAdoptionRefused, d.Refused)
	}
	coverage := group.Spec.EncryptionAtRest.Coverage
	narrowed := ""
	if off := switchedOff(coverage); len(off) > 0 {
		narrowed = "; by specification not encrypted: " + strings.Join(off, ", ")
	}
	no := func(reason v1alpha1.Reason, message string) conditions.Condition {
		return conditions.False(v1alpha1.ConditionEncryptionReady, reason, message+narrowed)
	}
	var missing, late, open, plain []string
	rebuild := ""
	for _, n := range d.Sites {
		st := n.Status
		switch {
		case n.Missing:
			missing = append(missing, n.Name+": "+st.Message)
		case st.Phase == v1alpha1.KeyringFailed:
			late = append(late, n.Name+": "+st.Message)
		case st.Phase != v1alpha1.KeyringSealed:
			open = append(open, n.Name+" is "+string(st.Phase)+": "+st.Message)
		default:
			if tables := st.Coverage.UnencryptedTablespaces; tables > 0 {
				plain = append(plain, fmt.Sprintf("%d tablespaces of %s", tables, n.Name))
				rebuild = "; rebuild each table with ALTER TABLE ... ENCRYPTION='Y' (kubectl mfg adopt GROUP --tables lists them)"
			}
			plain = append(plain, uncovered(coverage, st)...)
		}
	}
	switch {
	case len(missing) > 0:
		return no(v1alpha1.ReasonKeyringEscrowMissing, strings.Join(missing, "; "))
	case len(late) > 0:
		return no(v1alpha1.ReasonKeyringNotEscrowed, strings.Join(late, "; "))
	case len(open) > 0:
		return no(v1alpha1.ReasonNotSealed, strings.Join(open, "; "))
	case len(plain) > 0:
		return no(v1alpha1.ReasonPartialCoverage, "still in the clear: "+strings.Join(plain, ", ")+rebuild)
	}
	return conditions.True(v1alpha1.ConditionEncryptionReady, v1alpha1.ReasonAllSealed, "the keyring of every site is sealed"+narrowed)
}

// uncovered lists what should be encrypted on a site and is not, according to its MySQL. Of tablespaces it gives the number.
func uncovered(wish v1alpha1.CoverageSpec, st v1alpha1.SiteKeyringStatus) []string {
	is := st.Coverage
	if is.KeyringComponent == "" {
		return nil // MySQL has reported nothing yet
	}
	var out []string
	for _, aspect := range []struct {
		wished  *bool
		covered bool
		what    string
	}{
		{wish.RedoLog, is.RedoLogEncrypted, "the redo log of " + st.Name},
		{wish.UndoLog, is.UndoLogEncrypted, "the undo log of " + st.Name},
		{wish.BinaryLog, is.BinlogEncrypted, "binary or relay logs of " + st.Name + " (old ones until they are purged)"},
		{wish.SystemTablespace, is.SystemTablespaceEncrypted, "names of schemas, tables and columns of " + st.Name},
	} {
		if !isOff(aspect.wished) && !aspect.covered {
			out = append(out, aspect.what)
		}
	}
	return out
}

// isOff is true if a flag of coverage is off: an unset flag means on.
func isOff(flag *bool) bool { return flag != nil && !*flag }

// switchedOff lists what spec.encryptionAtRest.coverage leaves in the clear.
func switchedOff(c v1alpha1.CoverageSpec) []string {
	var out []string
	for _, flag := range []struct {
		set  *bool
		what string
	}{
		{c.Tables, "new tables, unless they say so themselves"}, {c.PrivilegeCheck, "tables that a person makes in the clear"},
		{c.RedoLog, "the redo log"}, {c.UndoLog, "the undo log"}, {c.BinaryLog, "binary and relay logs"},
		{c.SystemTablespace, "names of schemas, tables and columns"},
	} {
		if isOff(flag.set) {
			out = append(out, flag.what)
		}
	}
	return out
}
