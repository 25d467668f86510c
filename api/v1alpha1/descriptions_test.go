// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// describes is what the definition of groups says of a field, such as kubectl explain shows it.
func describes(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(groupFile)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}
	field := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		if field.Items != nil {
			field = *field.Items.Schema
		}
		next, is := field.Properties[name]
		if !is {
			t.Fatalf("no field %s in %v", name, path)
		}
		field = next
	}
	return field.Description
}

// TestEveryKindOfRequestIsDescribed: a person who reads of an answer looks here for what it answers.
func TestEveryKindOfRequestIsDescribed(t *testing.T) {
	said := describes(t, "status", "lastRequests", "kind")
	for _, kind := range v1alpha1.RequestKinds() {
		if !strings.Contains(said, string(kind)) {
			t.Errorf("%s is missing in %q", kind, said)
		}
	}
}

// TestTheDescriptionOfTLSSaysThatItCanBeAdded: TestTLSComesOnlyToAGroupThatIsReadyForIt shows when the API takes it.
func TestTheDescriptionOfTLSSaysThatItCanBeAdded(t *testing.T) {
	if said := describes(t, "spec", "tls"); !strings.Contains(said, "can be added to a group that runs") || !strings.Contains(said, "docs/tls.md") {
		t.Errorf("it says %q", said)
	}
}
