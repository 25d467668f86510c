// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// The definitions of the two kinds.
const (
	groupFile  = "../../config/crd/mysql-mfg.io_mysqlfailovergroups.yaml"
	backupFile = "../../config/crd/mysql-mfg.io_mysqlbackups.yaml"
)

// The API server's limits on the cost of one rule and of all rules of one request.
const (
	perCallLimit  = 1000000
	requestBudget = 10000000
)

// minimal is the smallest group that a user can write.
const minimal = `
apiVersion: mysql-mfg.io/v1alpha1
kind: MysqlFailoverGroup
metadata:
  name: orders
  namespace: shop
spec:
  sites:
  - name: paris
    role: primary-candidate
  - name: frankfurt
    role: primary-candidate
`

// server does with an object what an API server does with it: default, prune and validate.
type server struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	cel        *schemacel.Validator
}

func loadCRD(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("read definition: %v", err)
	}
	// Client-side apply keeps the object as JSON in an annotation, for which there are 256 KiB.
	if applied, err := yaml.YAMLToJSON(raw); err != nil || len(applied) > 256<<10 {
		t.Errorf("the definition has %d bytes as JSON, more than the 256 KiB that client-side apply can hold (%v)", len(applied), err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, external); err != nil {
		t.Fatalf("parse definition: %v", err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(external)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, internal, nil); err != nil {
		t.Fatalf("convert definition: %v", err)
	}
	internal.Status.StoredVersions = []string{"v1alpha1"}
	return internal
}

func newServer(t *testing.T) *server {
	t.Helper()
	return serverOf(t, groupFile)
}

func serverOf(t *testing.T, file string) *server {
	t.Helper()
	crd := loadCRD(t, file)
	props := crd.Spec.Validation.OpenAPIV3Schema
	structural, err := schema.NewStructural(props)
	if err != nil {
		t.Fatalf("read structural schema: %v", err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatalf("build schema validator: %v", err)
	}
	return &server{
		structural: structural,
		schema:     validator,
		cel:        schemacel.NewValidator(structural, true, perCallLimit),
	}
}

// admit defaults object in place and says what is wrong with it; old is nil for a creation.
func (s *server) admit(object, old map[string]any) field.ErrorList {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	var errs field.ErrorList
	for _, path := range pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	var before any
	if old != nil {
		before = old
	}
	ruleErrs, _ := s.cel.Validate(context.Background(), nil, s.structural, object, before, requestBudget)
	return append(errs, ruleErrs...)
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return runtime.DeepCopyJSON(numbers(object).(map[string]any))
}

// numbers makes integers of the floats that the YAML parser leaves, as the API server's decoder does.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

// edit is a list of lines "path = YAML value"; a number in a path is an index, "append" adds to a list, and the value
// "remove" removes.
type edit string

func (e edit) apply(t *testing.T, object map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(e)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		path, text, found := strings.Cut(line, " = ")
		if !found {
			t.Fatalf("edit %q has no ' = '", line)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("parse edit %q: %v", line, err)
		}
		if _, err := set(object, strings.Split(path, "/"), numbers(value)); err != nil {
			t.Fatalf("edit %q: %v", line, err)
		}
	}
}

func set(node any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch n := node.(type) {
	case []any:
		if path[0] == "append" {
			return append(n, value), nil
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(n) {
			return nil, fmt.Errorf("no item %q", path[0])
		}
		if value == "remove" && len(path) == 1 {
			return append(n[:i:i], n[i+1:]...), nil
		}
		n[i], err = set(n[i], path[1:], value)
		return n, err
	case map[string]any:
		if value == "remove" && len(path) == 1 {
			delete(n, path[0])
			return n, nil
		}
		child, err := set(n[path[0]], path[1:], value)
		if err != nil {
			return nil, err
		}
		n[path[0]] = child
		return n, nil
	case nil:
		return set(map[string]any{}, path, value)
	default:
		return nil, fmt.Errorf("cannot step into %T", node)
	}
}

func TestDefinitionIsAccepted(t *testing.T) {
	// This is the check of the API server itself, with the limits on the estimated cost of every rule.
	for _, file := range []string{groupFile, backupFile} {
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), loadCRD(t, file)) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Every rule must tell its reader what to do next, and where.
func TestRulesExplainThemselves(t *testing.T) {
	var walk func(path string, props *apiextensions.JSONSchemaProps)
	count := 0
	walk = func(path string, props *apiextensions.JSONSchemaProps) {
		for _, rule := range props.XValidations {
			count++
			if !strings.Contains(rule.Message, ": ") {
				t.Errorf("%s: rule %q: its message must say what is wrong, a colon and the next step: %q", path, rule.Rule, rule.Message)
			}
			if rule.Reason == nil {
				t.Errorf("%s: rule %q has no reason", path, rule.Rule)
			}
		}
		for name, property := range props.Properties {
			walk(path+"."+name, &property)
		}
		if props.Items != nil && props.Items.Schema != nil {
			walk(path+"[]", props.Items.Schema)
		}
	}
	walk("", loadCRD(t, groupFile).Spec.Validation.OpenAPIV3Schema)
	walk("", loadCRD(t, backupFile).Spec.Validation.OpenAPIV3Schema)
	if count < 20 {
		t.Errorf("found %d rules; the walk misses some", count)
	}
}
