// SPDX-License-Identifier: Apache-2.0

package keyrings

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Level is how bad a finding is.
type Level string

// The levels, like those of kubectl mfg doctor.
const (
	OK      Level = "OK"
	Warn    Level = "WARN"
	Fail    Level = "FAIL"
	Unknown Level = "UNKNOWN"
)

// Finding is the result of one check.
type Finding struct {
	Level   Level  `json:"level"`
	Site    string `json:"site"`
	Check   string `json:"check"`
	Message string `json:"message"`
	// Remedies are what to do next, and Remedy the same as words in one line.
	Remedies []wire.Remedy `json:"remedies,omitempty"`
	Remedy   string        `json:"remedy,omitempty"`
}

// Names of checks.
const (
	checkPhase      = "phase"
	checkContent    = "content"
	checkProtection = "protection"
	checkPod        = "pod"
	checkOlder      = "other versions"
)

// Fits is false if a finding says that something does not fit.
func (r Report) Fits() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == Fail })
}

// Lost is true if a Secret that status names is missing.
func (r Report) Lost() bool {
	return slices.ContainsFunc(r.Sites, func(s Site) bool {
		return slices.ContainsFunc(s.Versions, func(v Version) bool { return v.State == Missing })
	})
}

// examine checks each site on its own.
func examine(f Facts, sites []Site) []Finding {
	out := []Finding{}
	for _, s := range sites {
		for _, check := range []func(Facts, Site) []Finding{phase, content, protection, pod, older} {
			for _, found := range check(f, s) {
				found.Site = s.Name
				out = append(out, found)
			}
		}
	}
	return out
}

func one(level Level, check string, remedy wire.Remedy, format string, args ...any) []Finding {
	f := Finding{Level: level, Check: check, Message: fmt.Sprintf(format, args...)}
	if remedy != (wire.Remedy{}) {
		f.Remedies, f.Remedy = []wire.Remedy{remedy}, remedy.String()
	}
	return []Finding{f}
}

func recoverWith(f Facts, s Site) wire.Remedy {
	return wire.Remedy{Text: "put it right", Command: fmt.Sprintf("kubectl mfg recover-keyring %s %s -n %s", f.Group.Name, s.Name, f.Group.Namespace)}
}

// phase tells how the keyring is by status.
func phase(f Facts, s Site) []Finding {
	known := slices.ContainsFunc(f.Group.Spec.Sites, func(x v1alpha1.Site) bool { return x.Name == s.Name })
	switch {
	case !known:
		return one(Warn, checkPhase, wire.Remedy{}, "the site left the group; its keyrings are kept for the data on its volume")
	case s.Phase == "":
		return one(Warn, checkPhase, wire.Remedy{Text: "see how it is", Command: "kubectl mfg status " + f.Group.Name + " -n " + f.Group.Namespace}, "status knows no keyring of it yet")
	case s.Phase == string(v1alpha1.KeyringSealed):
		return one(OK, checkPhase, wire.Remedy{}, "Sealed with version %d", s.Version)
	case s.Phase == string(v1alpha1.KeyringFailed) && s.current() == nil && s.Secret != "":
		return nil // the next check says what is missing
	case s.Phase == string(v1alpha1.KeyringFailed):
		return one(Fail, checkPhase, wire.Remedy{Text: "see why", Command: "kubectl mfg events " + f.Group.Name + " -n " + f.Group.Namespace}, "Failed: %s", s.Message)
	}
	why := s.Phase
	if s.Work != "" {
		why += " for a " + strings.ToLower(s.Work)
	}
	return one(Warn, checkPhase, wire.Remedy{}, "%s: %s", why, s.Message)
}

// content compares what is in escrow with what status says that the site is sealed with.
func content(f Facts, s Site) []Finding {
	v := s.current()
	switch {
	case s.Secret == "":
		return nil
	case v == nil:
		return one(Fail, checkContent, recoverWith(f, s), "%s is missing: do not delete, restart, evict or drain the pod of %s, its memory holds the only copy", s.Secret, s.Name)
	case v.Content == "":
		return one(Fail, checkContent, recoverWith(f, s), "%s holds no keyring", s.Secret)
	case v.Content != s.Digest:
		return one(Fail, checkContent, recoverWith(f, s), "%s holds %s, and status says %s: a new pod could not read its data. Do not delete or restart the pod of %s", s.Secret, v.Content, s.Digest, s.Name)
	}
	return one(OK, checkContent, wire.Remedy{}, "%s holds %s, as status says", s.Secret, v.Content)
}

// protection checks all that keeps the Secret from being deleted, changed or overlooked.
func protection(f Facts, s Site) []Finding {
	i := slices.IndexFunc(f.Secrets, func(x corev1.Secret) bool { return x.Name == s.Secret })
	v := s.current()
	if i < 0 || v == nil || v.Content != s.Digest {
		return nil // another check says what is worse
	}
	st, _, _ := StatusOf(f.Group, s.Name)
	if f.Secrets[i].DeletionTimestamp != nil {
		return one(Fail, checkProtection, recoverWith(f, s), "%s is being deleted", s.Secret)
	}
	if lacks := Lacks(Secret(f.Group, st, nil), &f.Secrets[i]); len(lacks) > 0 {
		return one(Fail, checkProtection, recoverWith(f, s), "%s lacks: %s", s.Secret, strings.Join(lacks, ", "))
	}
	return one(OK, checkProtection, wire.Remedy{}, "immutable, labelled, and owned by the group")
}

// pod checks what the running pod has.
func pod(f Facts, s Site) []Finding {
	st, _, _ := StatusOf(f.Group, s.Name)
	switch {
	case s.Phase == "" || Writable(st):
		return nil
	case f.PodsUnseen != "":
		return one(Unknown, checkPod, wire.Remedy{}, "which Secret its pod has cannot be seen: %s", f.PodsUnseen)
	case s.PodSecret == "":
		return one(Warn, checkPod, wire.Remedy{Text: "see how it is", Command: "kubectl mfg status " + f.Group.Name + " -n " + f.Group.Namespace}, "no pod of it has a keyring from escrow mounted")
	case s.PodSecret != s.Secret:
		return one(Warn, checkPod, wire.Remedy{Text: "see how it is", Command: "kubectl mfg status " + f.Group.Name + " -n " + f.Group.Namespace + " -w"}, "its pod has %s, and is to be replaced by one with %s", s.PodSecret, s.Secret)
	}
	return one(OK, checkPod, wire.Remedy{}, "its pod has %s mounted", s.PodSecret)
}

// older checks the versions that status does not name.
func older(f Facts, s Site) []Finding {
	whole, out := 0, []Finding{}
	for _, v := range s.Versions {
		switch {
		case v.State == Current || v.State == Missing || v.State == Deleting:
		case v.Content == "" || v.Content != v.Digest:
			remedy := wire.Remedy{Text: "see who changed it", Command: fmt.Sprintf("kubectl get secret %s -n %s -o jsonpath='{.metadata.managedFields[*].manager}' --show-managed-fields",
				v.Secret, f.Group.Namespace)}
			out = append(out, one(Fail, checkOlder, remedy, "%s holds %s and was stored with %s: it is no version to roll back to", v.Secret, orNothing(v.Content), orNothing(v.Digest))...)
		default:
			whole++
		}
	}
	if whole > 0 && len(out) == 0 {
		return one(OK, checkOlder, wire.Remedy{}, "%d, each with the content that it was stored with", whole)
	}
	return out
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
