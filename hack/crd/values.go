// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ownValues are the values of the group chart that are no fields of the spec.
var ownValues = []string{"name", "labels", "annotations", "networkPolicy", "global"}

// addSpec writes the fields of the group's spec into the properties of a chart's values.schema.json, so that the chart
// takes exactly what the definition takes.
func addSpec(path string, crd *apiextensionsv1.CustomResourceDefinition) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read values schema: %w", err)
	}
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf("parse values schema: %w", err)
	}
	properties, ok := values["properties"].(map[string]any)
	if !ok {
		return fmt.Errorf("values schema has no properties")
	}
	maps.DeleteFunc(properties, func(name string, _ any) bool { return !slices.Contains(ownValues, name) })
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for name, property := range spec.Properties {
		properties[name] = plain(name, &property)
	}
	out, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return fmt.Errorf("marshal values schema: %w", err)
	}
	if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil { //nolint:gosec // sources are for everybody to read
		return fmt.Errorf("write values schema: %w", err)
	}
	return nil
}

// plain makes plain JSON schema of a structural schema. Types that belong to Kubernetes are left to the API server.
func plain(name string, schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	out := map[string]any{"type": schema.Type}
	if schema.Description != "" {
		out["description"] = schema.Description
	}
	if _, known := foreignType(name); known {
		return out
	}
	if len(schema.Enum) > 0 {
		out["enum"] = schema.Enum
	}
	if schema.Pattern != "" {
		out["pattern"] = schema.Pattern
	}
	for key, limit := range map[string]*int64{
		"minLength": schema.MinLength, "maxLength": schema.MaxLength, "minItems": schema.MinItems,
		"maxItems": schema.MaxItems, "maxProperties": schema.MaxProperties,
	} {
		if limit != nil {
			out[key] = *limit
		}
	}
	for key, limit := range map[string]*float64{"minimum": schema.Minimum, "maximum": schema.Maximum} {
		if limit != nil {
			out[key] = *limit
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out["items"] = plain("", schema.Items.Schema)
	}
	if schema.Type == "object" {
		addFields(out, schema)
	}
	return out
}

func addFields(out map[string]any, schema *apiextensionsv1.JSONSchemaProps) {
	out["additionalProperties"] = false
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		out["additionalProperties"] = plain("", schema.AdditionalProperties.Schema)
		return
	}
	fields := map[string]any{}
	for name, property := range schema.Properties {
		fields[name] = plain(name, &property)
	}
	out["properties"] = fields
	if len(schema.Required) > 0 {
		out["required"] = schema.Required
	}
}
