// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// bound is a limit for which controller-gen has no marker.
type bound struct {
	path      []string // properties from the root; "[]" steps into the items of a list, "{}" into the values of a map
	maxLength int64
	pattern   string
	text      bool // turns an int-or-string into a string
}

// One setting in my.cnf is one line: a line break in a value would add another setting.
const confValue = `^[^\x00-\x1f\x7f]*$`

// labelValue is what Kubernetes takes as the value of a label.
const labelValue = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`

var groupBounds = []bound{
	{path: []string{"metadata", "name"}, maxLength: 253},
	{path: []string{"spec", "mysqlConf", "{}"}, maxLength: 1024, pattern: confValue},
	{path: []string{"spec", "sites", "[]", "nodeSelector", "{}"}, maxLength: 63},
	{path: []string{"spec", "podLabels", "{}"}, maxLength: 63, pattern: labelValue},
	// Kubernetes takes 256 KiB of annotations in all. A character has up to four bytes.
	{path: []string{"spec", "podAnnotations", "{}"}, maxLength: 2048},
	// Kubernetes 1.33 takes an int-or-string for unbounded and refuses the rules about it as too expensive.
	{path: []string{"spec", "sites", "[]", "storage", "size"}, maxLength: 32, text: true},
	{path: []string{"spec", "encryptionAtRest", "temporaryFiles", "sizeLimit"}, maxLength: 32, text: true},
	{path: []string{"spec", "cache", "maxMemory"}, maxLength: 32, text: true},
	{path: []string{"spec", "cache", "storage", "size"}, maxLength: 32, text: true},
	{path: []string{"spec", "backup", "profiles", "[]", "scratch", "size"}, maxLength: 32, text: true},
	{path: []string{"spec", "backup", "profiles", "[]", "verification", "scratch", "size"}, maxLength: 32, text: true},
}

var backupBounds = []bound{{path: []string{"metadata", "name"}, maxLength: 253}}

func addBounds(crd *apiextensionsv1.CustomResourceDefinition, bounds []bound) error {
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	// The name is in the schema so that a rule about it can point at it.
	root.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}},
	}
	for _, b := range bounds {
		if err := apply(root, b.path, b); err != nil {
			return fmt.Errorf("bound %v: %w", b.path, err)
		}
	}
	return nil
}

// apply walks down and writes the changed schemas back on the way up: properties are values in a map.
func apply(schema *apiextensionsv1.JSONSchemaProps, path []string, b bound) error {
	if len(path) == 0 {
		schema.MaxLength = &b.maxLength
		if b.pattern != "" {
			schema.Pattern = b.pattern
		}
		if b.text {
			schema.Type, schema.AnyOf, schema.XIntOrString = "string", nil, false
		}
		return nil
	}
	switch step := path[0]; step {
	case "[]":
		if schema.Items == nil || schema.Items.Schema == nil {
			return fmt.Errorf("no items")
		}
		return apply(schema.Items.Schema, path[1:], b)
	case "{}":
		if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
			return fmt.Errorf("no values")
		}
		return apply(schema.AdditionalProperties.Schema, path[1:], b)
	default:
		property, ok := schema.Properties[step]
		if !ok {
			return fmt.Errorf("no property %q", step)
		}
		if err := apply(&property, path[1:], b); err != nil {
			return err
		}
		schema.Properties[step] = property
		return nil
	}
}
