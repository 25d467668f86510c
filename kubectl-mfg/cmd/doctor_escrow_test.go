// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cluster"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// What nobody vouches for is shown all the same: the doctor is to say why it is not believed.
func TestPeerChain(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	chain, err := cluster.PeerChain(t.Context(), s.Listener.Addr().String())
	if err != nil || len(chain) != 1 || !chain[0].Equal(s.Certificate()) {
		t.Errorf("%v: %v", err, chain)
	}
	s.Close()
	if _, err := cluster.PeerChain(t.Context(), s.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "shake hands") {
		t.Errorf("got %v", err)
	}
}

// TestDoctorWithoutRights: what a person has no right to see is unknown, and no failure: neither the endpoint behind a port-forward that
// is refused, nor a forecast that only the operator has. What the custom resource tells is told.
func TestDoctorWithoutRights(t *testing.T) {
	const forwardPath = "/api/v1/namespaces/mfg-system/pods/mfg-operator-0/portforward"
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroupStatus)
		// level and says are those of the check failover.
		level doctor.Level
		says  string
	}{
		"Well": {func(*v1alpha1.MysqlFailoverGroupStatus) {}, doctor.Unknown, "the operator was not asked"},
		"Ill": {func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.Sites[2].State = v1alpha1.SiteUnreachable
		}, doctor.Fail, "madrid does not answer [SiteUnreachable]"},
	} {
		f := loadHealthy(t)
		f.groups[0].Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
		tc.change(&f.groups[0].Status)
		f.answers[livePath] = status(403, metav1.StatusReasonForbidden, "no services/proxy")
		f.answers[forwardPath] = status(403, metav1.StatusReasonForbidden, `pods "mfg-operator-0" is forbidden: User "dba" cannot create resource "pods/portforward"`)
		f.objects = map[string]any{"/api/v1/namespaces/mfg-system/pods": corev1.PodList{Items: []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: "mfg-operator-0"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}}}
		got := run(t, f, runOptions{}, strings.Fields("doctor orders -n shop -o json")...)
		var rep doctor.Report
		if err := json.Unmarshal([]byte(got.out), &rep); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		found := map[string]doctor.Finding{}
		for _, x := range rep.Findings {
			found[x.Check] = x
		}
		if x := found["escrow"]; x.Level != doctor.Unknown || x.Message != "you may not create pods/portforward" {
			t.Errorf("%s: %+v", name, x)
		}
		if x := found["failover"]; x.Level != tc.level || !strings.Contains(x.Message, tc.says) || strings.Contains(x.Message, "OperatorSilent") {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestExecRefused: a refused exec is told as what it is, so that the missing right is named.
func TestExecRefused(t *testing.T) {
	f := loadHealthy(t)
	f.answers["/api/v1/namespaces/shop/pods/mysql-orders-paris-0/exec"] = status(403, metav1.StatusReasonForbidden, "no pods/exec")
	err := clusterAt(t, f).Exec(t.Context(), pods.Execution{Namespace: "shop", Pod: "mysql-orders-paris-0", Container: "mysql", Command: []string{"true"}, Out: io.Discard})
	if !apierrors.IsForbidden(err) {
		t.Errorf("%T %v", err, err)
	}
}

// TestDoctorExitCode: what the exit code says of a warning is what the pages and the help say.
func TestDoctorExitCode(t *testing.T) {
	for level, want := range map[doctor.Level]int{doctor.OK: cli.ExitHealthy, doctor.Unknown: cli.ExitHealthy, doctor.Warn: cli.ExitHealthy, doctor.Fail: cli.ExitDegraded} {
		if got := doctor.Code(doctor.Report{Findings: []doctor.Finding{{Level: doctor.OK}, {Level: level}}}); got != want {
			t.Errorf("%s: exit code %d, want %d", level, got, want)
		}
	}
	said := strings.ReplaceAll(newApp(cli.Environment{IOStreams: discarded()}).doctorCommand().Long, "\n", " ")
	if !strings.Contains(said, "with WARN and UNKNOWN alone it is 0") {
		t.Errorf("the help does not say it: %s", said)
	}
	for _, name := range []string{"kubectl-mfg.md", "kubectl-mfg-session.md"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "with `WARN` and `UNKNOWN` alone it is 0") || strings.Contains(string(raw), "hence exit code 3") {
			t.Errorf("%s does not say it", name)
		}
	}
}
