// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

func (f *escrowAPI) serveReview(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	decode(r, &review)
	a := review.Spec.ResourceAttributes
	what := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	review.Status.Allowed = f.quietRights || !slices.Contains(f.denied, what)
	respond(w, http.StatusCreated, review)
}

// decode reads what the typed client sends, which is no JSON.
func decode(r *http.Request, into runtime.Object) {
	raw, _ := io.ReadAll(r.Body)
	_, _, _ = scheme.Codecs.UniversalDeserializer().Decode(raw, nil, into)
}

func dry(r *http.Request) bool { return r.URL.Query().Get("dryRun") != "" }

func (f *escrowAPI) serveSecret(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method == http.MethodPost {
		f.createSecret(w, r)
		return
	}
	if name == "" {
		f.listSecrets(w, r)
		return
	}
	s := f.secrets[name]
	if s == nil {
		status(http.StatusNotFound, metav1.StatusReasonNotFound, `secrets "`+name+`" not found`)(w)
		return
	}
	switch r.Method {
	case http.MethodPatch:
		f.patchSecret(w, r, s)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		decode(r, &options)
		switch p := options.Preconditions; {
		case p != nil && (p.UID != nil && *p.UID != s.UID || p.ResourceVersion != nil && *p.ResourceVersion != s.ResourceVersion):
			status(http.StatusConflict, metav1.StatusReasonConflict, "the precondition does not hold")(w)
		case keyrings.InEscrow(s) && s.Labels[v1alpha1.LabelAllowDeletion] == "":
			status(http.StatusForbidden, metav1.StatusReasonForbidden, "it is a keyring in escrow")(w)
		case f.change("delete Secret"):
			delete(f.secrets, name)
			respond(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
		}
	default:
		respond(w, http.StatusOK, f.asAsked(r, *s))
	}
}

// asAsked leaves the content out where only metadata is asked for.
func (f *escrowAPI) asAsked(r *http.Request, s corev1.Secret) corev1.Secret {
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		s.Data, s.Immutable = nil, nil
	} else {
		f.contents++
	}
	return s
}

func (f *escrowAPI) listSecrets(w http.ResponseWriter, r *http.Request) {
	list := corev1.SecretList{}
	for _, name := range slices.Sorted(maps.Keys(f.secrets)) {
		if s := *f.secrets[name]; s.Labels[v1alpha1.LabelName] == v1alpha1.NameKeyring {
			list.Items = append(list.Items, f.asAsked(r, s))
		}
	}
	respond(w, http.StatusOK, list)
}

func (f *escrowAPI) createSecret(w http.ResponseWriter, r *http.Request) {
	var s corev1.Secret
	decode(r, &s)
	switch {
	case f.secrets[s.Name] != nil:
		status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists")(w)
		return
	case dry(r):
		f.dryRuns++
		respond(w, http.StatusCreated, s)
		return
	case !f.change("create Secret"):
		return
	}
	if f.corrupt {
		s.Data[v1alpha1.KeyringKey] = append(s.Data[v1alpha1.KeyringKey], '\n')
	}
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: r.URL.Query().Get("fieldManager"), Operation: metav1.ManagedFieldsOperationUpdate}}
	f.store(&s)
	respond(w, http.StatusCreated, s)
}

func (f *escrowAPI) patchSecret(w http.ResponseWriter, r *http.Request, s *corev1.Secret) {
	var patch struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
			OwnerReferences     []metav1.OwnerReference
		}
		Immutable *bool
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &patch)
	owners := patch.Metadata.OwnerReferences
	switch {
	case f.conflicts > 0 || patch.Metadata.ResourceVersion != s.ResourceVersion:
		f.conflicts--
		status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")(w)
		return
	case keyrings.InEscrow(s) && s.Labels[v1alpha1.LabelAllowDeletion] == "":
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "labels and owner of a keyring in escrow cannot be changed")(w)
		return
	case owners != nil && slices.Contains(f.denied, "update finalizers"):
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "cannot set blockOwnerDeletion")(w)
		return
	case dry(r):
		f.dryRuns++
		respond(w, http.StatusOK, s)
		return
	case !f.change("patch Secret"):
		return
	}
	merge := func(into *map[string]string, change map[string]*string) {
		for key, value := range change {
			if *into == nil {
				*into = map[string]string{}
			}
			if value == nil {
				delete(*into, key)
				continue
			}
			(*into)[key] = *value
		}
	}
	merge(&s.Labels, patch.Metadata.Labels)
	merge(&s.Annotations, patch.Metadata.Annotations)
	if owners != nil {
		s.OwnerReferences = owners
	}
	if patch.Immutable != nil {
		s.Immutable = patch.Immutable
	}
	s.ResourceVersion = f.next()
	respond(w, http.StatusOK, s)
}

func (f *escrowAPI) serveEvent(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method == http.MethodGet {
		e := f.events[name]
		if e == nil {
			status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")(w)
			return
		}
		respond(w, http.StatusOK, e)
		return
	}
	var e corev1.Event
	decode(r, &e)
	switch {
	case f.events[e.Name] != nil:
		status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists")(w)
	case dry(r):
		f.dryRuns++
		respond(w, http.StatusCreated, e)
	case f.change("create Event"):
		f.events[e.Name] = &e
		respond(w, http.StatusCreated, e)
	}
}

// serveStatusPatch knows the tests of a JSON patch, and the one change there is.
func (f *escrowAPI) serveStatusPatch(w http.ResponseWriter, r *http.Request) {
	var patch []struct{ Op, Path, Value string }
	_ = json.NewDecoder(r.Body).Decode(&patch)
	st := f.site()
	is := map[string]string{"name": st.Name, "phase": string(st.Phase), "keyringSecret": st.KeyringSecret, "keyringDigest": st.KeyringDigest}
	for _, op := range patch {
		field, ours := strings.CutPrefix(op.Path, "/status/encryptionAtRest/sites/1/")
		if !ours || op.Op == "test" && is[field] != op.Value {
			status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the test failed")(w)
			return
		}
		switch {
		case op.Op != "replace":
		case dry(r):
			f.dryRuns++
		case !f.change("patch status"):
			return
		default:
			st.Phase = v1alpha1.KeyringPhase(op.Value)
		}
	}
	respond(w, http.StatusOK, f.group())
}
