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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// I11: key bytes, passwords and tokens never leave.
func TestRedact(t *testing.T) {
	const planted = "hunter2xyz"
	tests := map[string]string{
		"SQL":         "CREATE USER 'a'@'%' IDENTIFIED BY '" + planted + "' REQUIRE SSL",
		"SQLHash":     "IDENTIFIED WITH caching_sha2_password AS '" + planted + "'",
		"Source":      "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='" + planted + "', SOURCE_PORT=3306",
		"DSN":         "dial mfg_operator:" + planted + "@tcp(10.0.0.1:33062)/?x=y",
		"URL":         "https://user:" + planted + "@bucket.example.com/x",
		"Environment": "MYSQL_PWD=" + planted,
		"YAML":        "rootPassword: " + planted,
		"JSON":        `{"accessToken": "` + planted + `", "n": 1}`,
		"JSONEscaped": `{"password":"a\"` + planted + `"}`,
		"Bearer":      "Authorization: Bearer " + planted,
		"JWT":         "got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0." + planted,
		"PEM":         "-----BEGIN PRIVATE KEY-----\n" + planted + "\n-----END PRIVATE KEY-----",
		"RSA":         "x -----BEGIN RSA PRIVATE KEY-----\\n" + planted + "\\n-----END RSA PRIVATE KEY----- y",
		"S3":          "secret_access_key=" + planted,
		"Space":       "x: 1\nldap-password = correct " + planted + "\ny: 2",
		"Comma":       "connect password=pa,ss;w}" + planted + ", port=3306",
		"Pwd":         "env: DB_PWD=" + planted,
		"PwdOption":   "authentication_ldap_simple_bind_root_pwd: " + planted,
		"PwdCamel":    `{"rootPwd":"` + planted + `"}`,
		"PwdEscaped":  `said: "[client]\npwd=` + planted + `"`,
		"Age":         "identity AGE-SECRET-KEY-1" + "QQPQHUNTER",
	}
	for name, text := range tests {
		got := Redact(text)
		if strings.Contains(got, planted) || strings.Contains(got, "HUNTER") || !strings.Contains(got, redacted) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, text := range []string{
		"secretName: orders-tls", "automountServiceAccountToken: false", "--password-file=/etc/app/password",
		"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-8123", "paris -> frankfurt under epoch 8", "lastSeen: 2026-11-03T12:00:00Z",
		"  secretName: orders-tls # password", "OLDPWD=/root", "tokens are kept",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestCollect(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelGroup: "orders"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-paris-x", Labels: labels,
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mysql", Env: []corev1.EnvVar{
			{Name: "ROOT_PASSWORD", Value: "hunter2"}, {Name: "MFG_SITE", Value: "paris"},
			{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", RestartCount: 2}}},
	}
	kube := fake.NewClientset(pod,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-root", Labels: labels}, Data: map[string][]byte{"password": []byte("hunter2")}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-primary", Labels: labels}},
	)
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	b := Collect(t.Context(), Options{Group: g, Kube: kube, OperatorNamespace: "mfg-system", OperatorSelector: "app=mfg", Lines: 10,
		Now: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC), Extra: map[string][]byte{"status.yaml": []byte("password: hunter2")}})

	for _, a := range kube.Actions() {
		if a.GetResource().Resource == "secrets" || a.GetVerb() != "list" && a.GetVerb() != "get" {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	var packed bytes.Buffer
	if err := b.Write(&packed); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, &packed)
	for name, content := range files {
		if strings.Contains(content, "hunter2") {
			t.Errorf("%s holds a secret:\n%s", name, content)
		}
	}
	root := "mfg-report-shop-orders-20261103-120000/"
	for _, want := range []string{"group.yaml", "README.txt", "status.yaml", "services.yaml", "events.yaml", "nodes.yaml", "operator/leases.yaml",
		"pods/shop/mysql-orders-paris-x/pod.yaml", "pods/shop/mysql-orders-paris-x/mysql.log", "pods/shop/mysql-orders-paris-x/mysql.previous.log"} {
		if files[root+want] == "" {
			t.Errorf("%s is missing; there are %v", want, b.Names())
		}
	}
	if pod := files[root+"pods/shop/mysql-orders-paris-x/pod.yaml"]; !strings.Contains(pod, "paris") || !strings.Contains(pod, "MFG_SITE") {
		t.Errorf("too much was taken out:\n%s", pod)
	}
	if strings.Contains(files[root+"group.yaml"], "managedFields") {
		t.Error("managed fields are noise")
	}
}

// TestCollectLists: what is secret in a pod is secret in what it is made from, and in every object of a list.
func TestCollectLists(t *testing.T) {
	applied := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "kept": "yes"}
	deployment := func(ns string, labels map[string]string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "d", Labels: labels, Annotations: applied, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
		env := []corev1.EnvVar{{Name: "ROOT_PASSWORD", Value: "hunter2"}, {Name: "MFG_SITE", Value: "paris"}}
		d.Spec.Template.Annotations = applied
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Env: env}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "mysql", Env: env}}
		return d
	}
	kube := fake.NewClientset(deployment("shop", map[string]string{v1alpha1.LabelGroup: "orders"}), deployment("mfg-system", map[string]string{"app": "mfg"}),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", Labels: map[string]string{v1alpha1.LabelGroup: "orders"}, Annotations: applied}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: applied}})
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	b := Collect(t.Context(), Options{Group: g, Kube: kube, OperatorNamespace: "mfg-system", OperatorSelector: "app=mfg"})
	for _, name := range []string{"deployments.yaml", "operator/deployments.yaml", "services.yaml", "nodes.yaml"} {
		text := string(b.files[name])
		if strings.Contains(text, "hunter2") || strings.Contains(text, "managedFields") || !strings.Contains(text, "kept: \"yes\"") {
			t.Errorf("%s:\n%s", name, text)
		}
		if strings.Contains(name, "deployments") && (strings.Count(text, redacted) != 2 || !strings.Contains(text, "paris")) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// TestLogsThatAreGone: what a kubelet says instead of a log is no log, and is told as what is missing.
func TestLogsThatAreGone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{v1alpha1.LabelGroup: "orders"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "mysql", RestartCount: 1}}}}
	kube := fake.NewClientset(pod)
	kube.PrependReactor("get", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		options, is := a.(k8stesting.GenericAction)
		if !is || a.GetSubresource() != "log" {
			return false, nil, nil
		}
		if o, is := options.GetValue().(*corev1.PodLogOptions); is && o.Previous {
			return true, &runtime.Unknown{Raw: []byte("unable to retrieve container logs for containerd://6fc5")}, nil
		}
		return true, &runtime.Unknown{Raw: []byte("ready for connections")}, nil
	})
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	b := Collect(t.Context(), Options{Group: g, Kube: kube, OperatorNamespace: "mfg-system", OperatorSelector: "app=mfg"})
	const gone = "pods/shop/p/mysql.previous.log"
	if _, is := b.files[gone]; is || !strings.Contains(string(b.files["missing.txt"]), gone+": unable to retrieve") || string(b.files["pods/shop/p/mysql.log"]) == "" {
		t.Errorf("%v, missing:\n%s", b.Names(), b.files["missing.txt"])
	}
}

func unpack(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}
