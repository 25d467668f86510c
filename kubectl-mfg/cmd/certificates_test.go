// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestRenewACertificate: what the operator would refuse is refused before it is asked.
func TestRenewACertificate(t *testing.T) {
	const key = v1alpha1.AnnotationRotateCertificate
	asked := func(value string) []map[string]any { return []map[string]any{{key: value}} }
	made := &v1alpha1.TLSSpec{}
	tests := map[string]struct {
		args, stdin string
		tls         *v1alpha1.TLSSpec
		before      string
		answer      string
		code        int
		patched     []map[string]any
		want        string
	}{
		"Server":         {"", "y\n", made, "", "a new certificate was made", cli.ExitHealthy, asked("server"), "done: a new certificate was made"},
		"Authority":      {"--authority --yes", "", made, "", "", cli.ExitHealthy, asked("ca"), "asked for; see how far it is: kubectl mfg certificates orders -n shop"},
		"Grace":          {"--authority --grace 2h --yes", "", made, "", "", cli.ExitHealthy, asked("ca=2h0m0s"), "and 2h0m0s have passed"},
		"WaitedFor":      {"--authority --yes --wait", "", made, "", "the authority was replaced", cli.ExitHealthy, asked("ca"), "MySQL of paris trusts it"},
		"Refused":        {"--yes", "", made, "", "no: not now", cli.ExitRefused, asked("server"), "not now"},
		"Joined":         {"--yes", "", made, "server", "x", cli.ExitHealthy, asked("server"), "done: x"},
		"Another":        {"--yes", "", made, "ca=1h", "", cli.ExitRefused, nil, "not answered yet (ca=1h)"},
		"NoTLS":          {"--yes", "", nil, "", "", cli.ExitRefused, nil, "has no TLS"},
		"OfSomebody":     {"--yes", "", &v1alpha1.TLSSpec{SecretName: "x"}, "", "", cli.ExitRefused, nil, "renew it in Secret x"},
		"OfCertManager":  {"--yes", "", &v1alpha1.TLSSpec{SecretName: "x", IssuerRef: &v1alpha1.IssuerRef{Name: "i"}}, "", "", cli.ExitRefused, nil, "cmctl renew -n shop mysql-orders"},
		"GraceOfNothing": {"--grace 2h --yes", "", made, "", "", cli.ExitUsage, nil, "--grace goes with --authority"},
		"GraceTooShort":  {"--authority --grace 1m --yes", "", made, "", "", cli.ExitUsage, nil, "--grace must be from 2m0s to 720h0m0s"},
		"GraceTooLong":   {"--authority --grace 721h --yes", "", made, "", "", cli.ExitUsage, nil, "--grace must be from"},
		"NotSure":        {"", "n\n", made, "", "", cli.ExitUsage, nil, "not confirmed"},
		"Dry":            {"--dry-run=client", "", made, "", "", cli.ExitHealthy, nil, "Would     set annotation " + key + "=server"},
		"JSON":           {"--yes -o json", "", made, "", "x", cli.ExitHealthy, asked("server"), `"outcome": "Succeeded"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			f.groups[0].Spec.TLS = tc.tls
			if tc.before != "" {
				f.groups[0].Annotations = map[string]string{key: tc.before}
			}
			ticks := 0
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(int) {
				g := &f.groups[0]
				_, is := g.Annotations[key]
				if ticks++; !is || tc.answer == "" {
					return
				}
				g.Status.Conditions = append(g.Status.Conditions[:0:0], metav1.Condition{
					Type: v1alpha1.ConditionTLSReady, Reason: string(v1alpha1.ReasonCertificateAuthorityChanging), Message: "it signs once MySQL of paris trusts it"})
				if ticks < 10 {
					return
				}
				if message, refused := strings.CutPrefix(tc.answer, "no: "); refused {
					f.answer(v1alpha1.RequestRotateCertificate, v1alpha1.RequestRefused, "Because", message)
				}
				f.answer(v1alpha1.RequestRotateCertificate, v1alpha1.RequestDone, v1alpha1.AnswerCompleted, tc.answer)
			}}, append([]string{"certificates", "renew", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCertificatesAreListed: what cannot be seen is unknown, and what is wrong ends with exit code 3.
func TestCertificatesAreListed(t *testing.T) {
	const secretPath, podsPath = "/api/v1/namespaces/shop/secrets/mysql-orders-tls", "/api/v1/namespaces/shop/pods"
	for name, tc := range map[string]struct {
		tls  *v1alpha1.TLSSpec
		data map[string][]byte // of the Secret; nil is none
		args string
		deny bool
		code int
		want string
	}{
		"NoTLS":   {nil, nil, "", false, cli.ExitError, "has no TLS"},
		"Missing": {&v1alpha1.TLSSpec{}, nil, "", false, cli.ExitDegraded, "Secret mysql-orders-tls does not exist"},
		"Rubbish": {&v1alpha1.TLSSpec{}, map[string][]byte{"tls.key": []byte("hunter2"), "tls.crt": []byte("hunter2")}, "", false, cli.ExitDegraded, "tls.crt holds no certificate"},
		"JSON":    {&v1alpha1.TLSSpec{}, map[string][]byte{"tls.key": []byte("hunter2")}, "-o json", false, cli.ExitDegraded, `"kind": "MfgCertificatesReport"`},
		"Denied":  {&v1alpha1.TLSSpec{}, nil, "", true, cli.ExitHealthy, "kubectl auth can-i get secret/mysql-orders-tls -n shop"},
		"NoPods":  {&v1alpha1.TLSSpec{}, nil, "", true, cli.ExitHealthy, "the site has no pod that runs"},
		"Alias":   {&v1alpha1.TLSSpec{}, nil, "-o yaml", true, cli.ExitHealthy, "madeBy: Operator"},
		"Colour":  {&v1alpha1.TLSSpec{}, nil, "--color pink", true, cli.ExitUsage, "--color must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			f.groups[0].Spec.TLS = tc.tls
			f.objects = map[string]any{podsPath: corev1.PodList{}}
			if tc.data != nil {
				f.objects[secretPath] = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-tls"}, Data: tc.data}
			} else {
				f.answers[secretPath] = status(404, metav1.StatusReasonNotFound, "no such secret")
			}
			if tc.deny {
				f.answers[secretPath] = status(403, metav1.StatusReasonForbidden, "you may not")
			}
			verb := "certificates"
			if name == "Alias" {
				verb = "certs"
			}
			got := run(t, f, runOptions{}, append([]string{verb, "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) || strings.Contains(got.out+got.errOut, "hunter2") {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
		})
	}
}
