// SPDX-License-Identifier: Apache-2.0

// Package bundle collects what a helper needs to know about a group, without anything secret. It never asks for a
// Secret, and it removes secrets that appear elsewhere from all that it writes.
package bundle

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// redacted replaces what was removed.
const redacted = "REDACTED"

// quoted is a value in quotes: plain, or as YAML and JSON have it inside a text that they quote themselves.
const quoted = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"|''(?:\\+''|''''|[^'\\\n]|\\[^'])+''|'(?:[^'\\]|''|\\+.)*'`

// secrets are the forms in which secrets appear in text. Each keeps the name and removes the value.
var secrets = []struct {
	form    *regexp.Regexp
	instead string
}{
	// PEM blocks of keys, as they are and escaped into one line.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`), redacted},
	// JSON web tokens: those of service accounts, and statements, which only look like them.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), redacted},
	{regexp.MustCompile(`(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + redacted},
	// SQL: IDENTIFIED BY 'x', IDENTIFIED WITH p AS 'x', SOURCE_PASSWORD='x'.
	{regexp.MustCompile(`(?i)(identified\s+(?:with\s+\S+\s+)?(?:by|as)\s*)(` + quoted + `|\S+)`), "${1}" + redacted},
	// DSNs: user:password@tcp(…), scheme://user:password@host.
	{regexp.MustCompile(`([A-Za-z0-9_.-]+):([^\s:@/'"]+)@(tcp|unix)\(`), "${1}:" + redacted + "@${3}("},
	{regexp.MustCompile(`(://[^\s:/@]+):[^\s@/]+@`), "${1}:" + redacted + "@"},
	// password=x, "token": "x", secretKey: x, MYSQL_PWD=x.
	{regexp.MustCompile(`(?i)(["']?[a-z0-9_.-]*(?:password|passwd|mysql_pwd|secret_?key|secret_?access_?key|private_?key|token|credential)s?[\\"']*\s*[:=]\s*)(` + quoted + `|[^\s,;}"']+)`), "${1}" + redacted},
}

// harmless are words that the last form would remove although they are no secrets: names of files and Secrets, and what
// Kubernetes says about tokens.
var harmless = regexp.MustCompile(`(?i)^["']?[a-z0-9_.-]*(?:secret_?name|password_?file|token_?file|private_?key_?file|automountserviceaccounttoken)[\\"']*\s*[:=]`)

// Redact removes secrets from text.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.form.ReplaceAllStringFunc(text, func(found string) string {
			if harmless.MatchString(found) {
				return found
			}
			return s.form.ReplaceAllString(found, s.instead)
		})
	}
	return text
}

// secretName tells by the name of a variable that its value is secret.
var secretName = regexp.MustCompile(`(?i)password|passwd|pwd|secret|token|private|credential|key`)

// plainPod returns a pod without what may be secret: values of variables whose names sound secret, and annotations of others.
func plainPod(pod corev1.Pod) corev1.Pod {
	pod = *pod.DeepCopy()
	pod.ObjectMeta = plainMeta(pod.ObjectMeta)
	hideVariables(pod.Spec)
	return pod
}

// hideVariables removes values of variables that sound secret from a pod, or from what pods are made from.
func hideVariables(spec corev1.PodSpec) {
	hide := func(env []corev1.EnvVar) {
		for i, v := range env {
			if v.Value != "" && secretName.MatchString(v.Name) {
				env[i].Value = redacted
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			hide(c.Env)
		}
	}
	for _, c := range spec.EphemeralContainers {
		hide(c.Env)
	}
}

// plainList treats each object of a list as plainPod treats a pod. The list is the caller's own.
func plainList(list runtime.Object) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		if d, is := o.(*appsv1.Deployment); is {
			hideVariables(d.Spec.Template.Spec)
			d.Spec.Template.ObjectMeta = plainMeta(d.Spec.Template.ObjectMeta)
		}
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		plain := plainMeta(metav1.ObjectMeta{Annotations: m.GetAnnotations()})
		m.SetManagedFields(nil)
		m.SetAnnotations(plain.Annotations)
		return nil
	})
}

// plainMeta drops what is long but says nothing, and the copy of the object as it was applied: it may hold anything.
func plainMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	m = *m.DeepCopy()
	m.ManagedFields = nil
	for key := range m.Annotations {
		if strings.HasSuffix(key, "last-applied-configuration") {
			delete(m.Annotations, key)
		}
	}
	return m
}
