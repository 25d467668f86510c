// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestCollectedSecrets: I11, a secret leaves by none of the ways by which one can get into what is collected: what programs
// have logged, what was said in an event, what somebody put into a ConfigMap, and variables of every kind of container.
func TestCollectedSecrets(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.LabelGroup: "orders"}}
	}
	env := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: name, Value: "hunter2"}, {Name: "KEPT", Value: "kept-" + name}}
	}
	pod := &corev1.Pod{ObjectMeta: meta("p"), Spec: corev1.PodSpec{
		InitContainers:      []corev1.Container{{Name: "init", Env: env("API_KEY")}},
		Containers:          []corev1.Container{{Name: "mysql", Env: env("MASTER_KEY")}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Env: env("ROOT_PASSWORD")}}},
	}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql"}}}}
	kube := fake.NewClientset(pod,
		&corev1.ConfigMap{ObjectMeta: meta("c"), Data: map[string]string{"dsn": "app:hunter2@tcp(10.0.0.1:3306)/kept",
			"my.cnf": "[mysqld]\nldap_bind_pwd = correct hunter2\t \nkept-line = 1\n", "admin-password": "line\nhunter2"}},
		&appsv1.StatefulSet{ObjectMeta: meta("s"), Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "cache", Env: env("CACHE_KEY")}}}}}},
		&corev1.Event{ObjectMeta: meta("e"), Message: "kept: dial app:hunter2@tcp(10.0.0.1:3306)/"},
		&corev1.Event{ObjectMeta: meta("f"), Message: "syntax error: CREATE USER 'kept' IDENTIFIED BY 'hunter2'"},
	)
	kube.PrependReactor("get", "pods/log", func(clienttest.Action) (bool, runtime.Object, error) {
		return true, &runtime.Unknown{Raw: []byte("kept: CREATE USER 'a'@'%' IDENTIFIED BY 'hunter2' REQUIRE SSL\n")}, nil
	})
	b := Collect(t.Context(), Options{Group: &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: v1alpha1.MysqlFailoverGroupSpec{
		PodAnnotations: map[string]string{"example.com/db-password": "correct hunter2, battery", "example.com/kept": "kept-annotation"},
		MysqlConf:      map[string]string{"authentication_ldap_simple_bind_root_pwd": "pa,ss;hunter2", "kept": "kept-setting"},
		Cache:          &v1alpha1.CacheSpec{},
	}}, Kube: kube, Extra: map[string][]byte{"doctor.yaml": []byte("token: \"a: hunter2\"\nkept: kept-extra 9007199254740993\n"), "other.error.txt": []byte("kept-error: password: hunter2\n")}})
	for name, content := range b.files {
		if strings.Contains(string(content), "hunter2") {
			t.Errorf("%s holds a secret:\n%s", name, content)
		}
		var parsed any
		if err := yaml.Unmarshal(content, &parsed); err != nil && strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s cannot be read any more: %v\n%s", name, err, content)
		}
	}
	for name, kept := range map[string][]string{
		"pods/shop/p/mysql.log": {"kept: CREATE USER"},
		"configmaps.yaml":       {"/kept", "kept-line = 1"},
		"statefulsets.yaml":     {"kept-CACHE_KEY"},
		"group.yaml":            {"kept-annotation", "kept-setting"},
		"doctor.yaml":           {"kept-extra 9007199254740993"},
		"other.error.txt":       {"kept-error: password: "},
		"events.yaml":           {"kept: dial app:", "'kept'' IDENTIFIED BY"},
		"pods/shop/p/pod.yaml":  {"kept-API_KEY", "kept-MASTER_KEY", "kept-ROOT_PASSWORD"},
	} {
		text := string(b.files[name])
		for _, want := range kept {
			if !strings.Contains(text, want) || !strings.Contains(text, redacted) {
				t.Errorf("%s lacks %q beside what was taken out:\n%s", name, want, text)
			}
		}
	}
}

// TestRedactQuoted: a secret is found also inside of a text that another text quotes: as YAML does it, and JSON.
func TestRedactQuoted(t *testing.T) {
	const planted = "hunter2xyz"
	for name, said := range map[string]string{
		"SQL":       "error: IDENTIFIED BY '" + planted + "' kept",
		"SQLDouble": `error: IDENTIFIED BY "` + planted + `" kept`,
		"Spaces":    `error: IDENTIFIED BY "a ` + planted + `" kept`,
		"Quote":     `error: IDENTIFIED BY 'a''` + planted + `' kept`,
		"Escaped":   `error: IDENTIFIED BY 'a\'` + planted + `' kept`,
		"Source":    "error: SOURCE_PASSWORD='" + planted + "', kept",
		"JSON":      `error: {"password":"` + planted + `"} kept`,
		"JSONSpace": `error: {"password": "a ` + planted + `"} kept`,
	} {
		asYAML, err := yaml.Marshal(map[string]string{"message": said})
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.YAMLToJSON(asYAML)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{said, string(asYAML), string(asJSON)} {
			if got := Redact(text); strings.Contains(got, planted) || !strings.Contains(got, "kept") || !strings.Contains(got, "error: ") {
				t.Errorf("%s: %s became %s", name, text, got)
			}
		}
	}
}

// TestUnpackedForOneself: what is unpacked is for whoever unpacks it.
func TestUnpackedForOneself(t *testing.T) {
	var packed bytes.Buffer
	b := &Bundle{root: "r", files: map[string][]byte{"a": nil, "b/c": []byte("x")}}
	if err := b.Write(&packed); err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	archive, n := tar.NewReader(plain), 0
	for ; ; n++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode != 0o600 {
			t.Errorf("%s: mode %o", header.Name, header.Mode)
		}
	}
	if n != 2 {
		t.Errorf("%d files", n)
	}
}
