// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// written is a group as a user writes it.
func written(t *testing.T, groupName, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	text := "apiVersion: mysql-mfg.io/v1alpha1\nkind: MysqlFailoverGroup\nmetadata: {name: " + groupName + ", namespace: default}\nspec:\n"
	for line := range strings.Lines(spec) {
		text += "  " + line
	}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("read %s: %v", text, err)
	}
	return u
}

const twoSites = "sites: [{name: a, role: primary-candidate}, {name: b, role: primary-candidate}]\n"

func TestAPITakesASmallGroup(t *testing.T) {
	if err := lab.Kube.Create(t.Context(), written(t, "small", twoSites), client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// What the API server itself must refuse, with a message that tells what to do.
func TestAPIRefuses(t *testing.T) {
	encrypted := func(keyring string) string {
		return twoSites + "tls: {secretName: t}\nencryptionAtRest: {enabled: true, keyring: {dataFileDir: " + keyring + "}}\n"
	}
	for name, tt := range map[string]struct {
		group, spec string
		says        string
	}{
		"one site":                    {spec: "sites: [{name: a, role: primary-candidate}]", says: "sites"},
		"one candidate":               {spec: "sites: [{name: a, role: primary-candidate}, {name: b, role: dr-only}]", says: "at least two sites need the role primary-candidate"},
		"unknown role":                {spec: "sites: [{name: a, role: primary}, {name: b, role: primary-candidate}]", says: "Unsupported value"},
		"duplicate site":              {spec: "sites: [{name: a, role: primary-candidate}, {name: a, role: primary-candidate}]", says: "Duplicate value"},
		"site name too long":          {spec: "sites: [{name: abcdefghijklmnopqrstu, role: primary-candidate}, {name: b, role: primary-candidate}]", says: "20"},
		"group name too long":         {group: "abcdefghijklmnopqrstuvwxyzabcde", spec: twoSites, says: "at most 30 characters"},
		"names too long together":     {group: "abcdefghijklmnopqrstuvwxyz", spec: "sites: [{name: abcdefghijklmnopqrst, role: primary-candidate}, {name: b, role: primary-candidate}]", says: "42 characters"},
		"site named as a Service":     {spec: "sites: [{name: primary, role: primary-candidate}, {name: b, role: primary-candidate}]", says: "choose another name"},
		"encryption without tls":      {spec: twoSites + "encryptionAtRest: {enabled: true}", says: "set spec.tls, {} has the operator make a certificate"},
		"keyring in the datadir":      {spec: encrypted("/var/lib/mysql"), says: "dataFileDir"},
		"keyring below the datadir":   {spec: encrypted("/var/lib/mysql/keyring"), says: "dataFileDir"},
		"keyring by a trailing slash": {spec: encrypted("/var/lib/mysql/"), says: "dataFileDir"},
		"keyring by a detour":         {spec: encrypted("/run/../var/lib/mysql/x"), says: "dataFileDir"},
		"keyring at a relative path":  {spec: encrypted("keyring"), says: "dataFileDir"},
		"lease too short":             {spec: twoSites + "sidecar: {leaseTimeout: 20s, peerCheckInterval: 10s}", says: "leaseTimeout must be at least"},
		"lease out of range":          {spec: twoSites + "sidecar: {leaseTimeout: 1h}", says: "leaseTimeout is between"},
		"lease below the least":       {spec: twoSites + "sidecar: {leaseTimeout: 4s, peerCheckInterval: 500ms, fenceTimeout: 500ms}", says: "leaseTimeout is between"},
		"poll interval out of range":  {spec: twoSites + "failover: {pollInterval: 1ms}", says: "pollInterval is between"},
		"volume too small":            {spec: "sites: [{name: a, role: primary-candidate, storage: {size: 1Mi}}, {name: b, role: primary-candidate}]", says: "raise the size"},
		"setting with a line break":   {spec: twoSites + "mysqlConf: {max_connections: \"5\\nsuper_read_only=OFF\"}", says: "mysqlConf"},
		"setting with a strange name": {spec: twoSites + "mysqlConf: {\"a b\": x}", says: "mysqlConf"},
		"negative loss budget":        {spec: twoSites + "failover: {maxLostTransactions: -1}", says: "maxLostTransactions"},
		"unknown deletion policy":     {spec: twoSites + "deletionPolicy: Keep", says: "Unsupported value"},
		"issuer without a Secret":     {spec: twoSites + "tls: {issuerRef: {name: ca}}", says: "name it in spec.tls.secretName"},
	} {
		t.Run(name, func(t *testing.T) {
			groupName := tt.group
			if groupName == "" {
				groupName = "refused"
			}
			err := lab.Kube.Create(t.Context(), written(t, groupName, tt.spec), client.DryRunAll)
			if !apierrors.IsInvalid(err) {
				t.Fatalf("error = %v, want it refused as invalid", err)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it says %q, which does not tell %q", err, tt.says)
			}
		})
	}
}

// Changes that a group which lives must not take.
func TestAPIRefusesChanges(t *testing.T) {
	g, group := whole(t)
	key := client.ObjectKeyFromObject(group)
	for name, tt := range map[string]struct{ patch, says string }{
		"active site removed": {
			patch: `[{"op":"test","path":"/spec/sites/0/name","value":"east"},{"op":"replace","path":"/spec/sites","value":[{"name":"x","role":"primary-candidate"},{"name":"y","role":"primary-candidate"}]}]`,
			says:  "planned failover",
		},
		"tls taken off":         {patch: `[{"op":"remove","path":"/spec/tls"}]`, says: "make a new group"},
		"another secret":        {patch: `[{"op":"replace","path":"/spec/tls/secretName","value":"other"}]`, says: "into the Secret that is named"},
		"storage class changed": {patch: `[{"op":"add","path":"/spec/sites/0/storage/storageClassName","value":"other"}]`, says: "storage class"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("mysql-mfg.io/v1alpha1")
			u.SetKind("MysqlFailoverGroup")
			u.SetNamespace(key.Namespace)
			u.SetName(key.Name)
			err := g.Kube.Patch(t.Context(), u, client.RawPatch("application/json-patch+json", []byte(tt.patch)), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %v, want it refused, telling %q", err, tt.says)
			}
		})
	}
}
