// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A new group has TLS unless somebody says otherwise.
func TestAGroupHasTLSByDefault(t *testing.T) {
	for values, want := range map[string]string{"{}": "  tls: {}\n", "tls: {secretName: a}": "  tls:\n    secretName: a\n", "tls: null": ""} {
		out := render(t, groupChart, values)
		if group := only[v1alpha1.MysqlFailoverGroup](t, objects(t, out)); (group.Spec.TLS != nil) != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%s:\n%s", values, out)
		}
	}
}

// clusterWith answers helm's questions as a cluster does that has one group, with this spec.
func clusterWith(t *testing.T, spec string) string {
	t.Helper()
	const group = `{"groupVersion":"mysql-mfg.io/v1alpha1","version":"v1alpha1"}`
	answers := map[string]string{
		"/version": `{"major":"1","minor":"34","gitVersion":"v1.34.0"}`,
		"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":  `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"mysql-mfg.io","versions":[` + group + `],"preferredVersion":` +
			group + `}]}`,
		"/apis/mysql-mfg.io/v1alpha1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"mysql-mfg.io/v1alpha1","resources":[` +
			`{"name":"mysqlfailovergroups","singularName":"","namespaced":true,"kind":"MysqlFailoverGroup","verbs":["get","list"]}]}`,
		"/apis/mysql-mfg.io/v1alpha1/namespaces/shop/mysqlfailovergroups/orders": `{"apiVersion":"mysql-mfg.io/v1alpha1",` +
			`"kind":"MysqlFailoverGroup","metadata":{"name":"orders","namespace":"shop",` +
			`"labels":{"app.kubernetes.io/managed-by":"Helm"},` +
			`"annotations":{"meta.helm.sh/release-name":"orders","meta.helm.sh/release-namespace":"shop"}},"spec":` + spec + `}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !known {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TLS comes to a group that runs without it in steps, with updates of its pods: an upgrade of the chart does not begin them unless
// somebody asks for it.
func TestAnUpgradeLeavesAGroupWithoutTLS(t *testing.T) {
	for _, tc := range []struct {
		there, values string
		tls           bool
	}{
		{`{"sites":[]}`, "{}", false},
		{`{"sites":[]}`, "tls: {secretName: a}", true},
		{`{"sites":[]}`, "tls: {plainConnections: Allow}", true},
		{`{"sites":[],"tls":{}}`, "{}", true},
		{`{"sites":[],"tls":{"secretName":"a"}}`, "tls: {secretName: a}", true},
	} {
		out := render(t, groupChart, tc.values, "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", clusterWith(t, tc.there))
		if group := only[v1alpha1.MysqlFailoverGroup](t, objects(t, out)); (group.Spec.TLS != nil) != tc.tls {
			t.Errorf("with %s and %s:\n%s", tc.there, tc.values, out)
		}
	}
	// Another group of another name does not matter.
	out := render(t, groupChart, "name: bills", "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", clusterWith(t, `{"sites":[]}`))
	if only[v1alpha1.MysqlFailoverGroup](t, objects(t, out)).Spec.TLS == nil {
		t.Error("a new group beside one without TLS:\n" + out)
	}
}
