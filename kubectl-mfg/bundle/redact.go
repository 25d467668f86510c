// SPDX-License-Identifier: Apache-2.0

// Package bundle collects what a helper needs to know about a group, without anything secret. It never asks for a
// Secret, and it removes secrets that appear elsewhere from all that it writes.
package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
)

// redacted replaces what was removed.
const redacted = "REDACTED"

// quoted is a value in quotes: plain, or as YAML and JSON have it inside a text that they quote themselves.
const quoted = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"|''(?:\\+''|''''|[^'\\\n]|\\[^'])+''|'(?:[^'\\]|''|\\+.)*'`

// names are the ends of names of what is secret. A word may end in pwd by chance, so that is looked for as a word: DB_PWD, bind-pwd, rootPwd.
const names = `(?:password|passwd|(?:\b|_|\\[nrt])pwd|(?-i:Pwd)|secret[_-]?key|secret[_-]?access[_-]?key|private[_-]?key|token|credential)s?`

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
	// Identities of age: they open backups.
	{regexp.MustCompile(`AGE-SECRET-KEY-[A-Z0-9-]+`), redacted},
	// A line that is only a setting: its value goes to the end of the line, whatever is in it.
	{regexp.MustCompile(`(?im)^([ \t]*[a-z0-9_./-]*` + names + `[ \t]*[:=][ \t]*)([^\s"'\\|>{\[].*)$`), "${1}" + redacted},
	// password=x, "token": "x", secretKey: x, MYSQL_PWD=x. A comma inside of a value does not end it, one at its end does.
	{regexp.MustCompile(`(?i)(["']?[a-z0-9_.-]*` + names + `[\\"']*\s*[:=]\s*)(` + quoted + `|(?:[^\s,;}"']|[,;}][^\s,;}"'\\])+)`), "${1}" + redacted},
}

// harmless are words that the last form would remove although they are no secrets: names of files and Secrets, and what
// Kubernetes says about tokens.
var harmless = regexp.MustCompile(`(?i)^\s*["']?[a-z0-9_./-]*(?:secret_?name|password_?file|token_?file|private_?key_?file|automountserviceaccounttoken)[\\"']*\s*[:=]`)

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

// secretKey is a key of an object under which a secret stands.
var secretKey = regexp.MustCompile(`(?i)` + names + `$`)

// plainYAML returns an object, given as JSON, as YAML without secrets. In the text of an object it cannot be seen where a value ends: it may hold
// spaces, commas and line ends. So they are taken out before there is a text.
func plainYAML(object []byte) ([]byte, error) {
	var parsed any
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber() // a float64 would lose digits
	if err := decoder.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return escape.YAML(plain(parsed))
}

// plain takes secrets out of all strings below a value.
func plain(value any) any {
	switch v := value.(type) {
	case string:
		return Redact(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		// A variable of a container, wherever there is one.
		name, _ := v["name"].(string)
		for key, below := range v {
			if secretKey.MatchString(key) || key == "value" && secretName.MatchString(name) {
				v[key] = hidden(below)
			} else {
				v[key] = plain(below)
			}
		}
	}
	return value
}

// hidden removes what stands under the name of a secret. That nothing stands there is no secret.
func hidden(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return v
		}
		return redacted
	case json.Number:
		return redacted
	case []any:
		for i := range v {
			v[i] = hidden(v[i])
		}
		return v
	}
	return plain(value)
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
