// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

func TestPodIsRestricted(t *testing.T) { restricted(t, pod(input(everything))) }

func restricted(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	yes := func(b *bool) bool { return b != nil && *b }
	no := func(b *bool) bool { return b != nil && !*b }
	s := spec.SecurityContext
	if s == nil || !yes(s.RunAsNonRoot) || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context %+v", s)
	}
	if !no(spec.AutomountServiceAccountToken) {
		t.Error("the pod gets a service account token")
	}
	if spec.HostNetwork || spec.HostPID || spec.HostIPC {
		t.Error("the pod uses a namespace of the host")
	}
	for name, c := range containers(spec) {
		s := c.SecurityContext
		if s == nil || !no(s.AllowPrivilegeEscalation) || !yes(s.ReadOnlyRootFilesystem) || !yes(s.RunAsNonRoot) ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
			len(s.Capabilities.Add) > 0 || yes(s.Privileged) || s.SeccompProfile != nil {
			t.Errorf("container %s has security context %+v", name, s)
		}
	}
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is a path of the host", v.Name)
		}
	}
}

// secretsOf lists "secret/key" of every key that a container can read.
func secretsOf(spec corev1.PodSpec, c corev1.Container) []string {
	var out []string
	add := func(secret string, items []corev1.KeyToPath) {
		if len(items) == 0 {
			out = append(out, secret+"/*")
		}
		for _, i := range items {
			out = append(out, secret+"/"+i.Key)
		}
	}
	for _, m := range c.VolumeMounts {
		for _, v := range spec.Volumes {
			switch {
			case v.Name != m.Name:
			case v.Secret != nil:
				add(v.Secret.SecretName, v.Secret.Items)
			case v.Projected != nil:
				for _, p := range v.Projected.Sources {
					add(p.Secret.Name, p.Secret.Items)
				}
			}
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			out = append(out, "env:"+e.Name)
		}
	}
	slices.Sort(out)
	return out
}

func TestWhoReadsWhichSecret(t *testing.T) {
	certificate := []string{"orders-tls/ca.crt", "orders-tls/tls.crt", "orders-tls/tls.key"}
	want := map[string][]string{
		render.ContainerInstall: nil,
		render.ContainerMySQL:   certificate,
		render.ContainerSidecar: append([]string{
			"mysql-orders-accounts/serial", "mysql-orders-accounts/sidecar", "mysql-orders-accounts/sidecar-known", "mysql-orders-accounts/sidecar-next",
			"mysql-orders-accounts/sidecar-previous", "mysql-orders-paris-report/key",
		}, certificate...),
		render.ContainerBootstrap: append([]string{
			"mysql-orders-accounts/clone", "mysql-orders-accounts/operator", "mysql-orders-accounts/replication",
			"mysql-orders-accounts/sidecar", "mysql-orders-root/password",
		}, certificate...),
	}
	spec := pod(input(tls))
	got := map[string][]string{}
	for name, c := range containers(spec) {
		got[name] = secretsOf(spec, c)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, o := range objects(input(everything)) {
		body, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(body, []byte("keyring")) {
			t.Errorf("a keyring is in\n%s", body)
		}
	}
}

// The kubelet counts the hook, the end of mysqld and that of the sidecar together.
// TestOnlyBootstrapReadsTheSecretOfTheApplication: it makes the account with the data. A pod comes up without that Secret too.
func TestOnlyBootstrapReadsTheSecretOfTheApplication(t *testing.T) {
	const key = "mysql-orders-app/password"
	spec := pod(input(func(in *render.Input) { in.Group.Spec.Application = &v1alpha1.ApplicationSpec{Database: "shop"} }))
	for name, c := range containers(spec) {
		if got := slices.Contains(secretsOf(spec, c), key); got != (name == render.ContainerBootstrap) {
			t.Errorf("%s reads it: %v", name, got)
		}
	}
	for _, v := range spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.Secret != nil && s.Secret.Name == "mysql-orders-app" && (s.Secret.Optional == nil || !*s.Secret.Optional) {
				t.Error("without that Secret no pod would come up, and nothing fail over")
			}
		}
	}
}

// TestAPodComesUpWithoutTheSecretOfRoot: that of the operator's own accounts it waits for.
func TestAPodComesUpWithoutTheSecretOfRoot(t *testing.T) {
	optional := map[string]bool{}
	for _, v := range pod(input()).Volumes {
		if v.Name != "accounts" {
			continue
		}
		for _, s := range v.Projected.Sources {
			optional[s.Secret.Name] = s.Secret.Optional != nil && *s.Secret.Optional
		}
	}
	if diff := cmp.Diff(map[string]bool{"mysql-orders-accounts": false, "mysql-orders-root": true}, optional); diff != "" {
		t.Errorf("optional (-want +got):\n%s", diff)
	}
}

func TestMysqldEndsAfterTheRoleHasMoved(t *testing.T) {
	spec := pod(input())
	mysqld := containers(spec)[render.ContainerMySQL]
	if mysqld.Lifecycle == nil || mysqld.Lifecycle.PreStop == nil || mysqld.Lifecycle.PreStop.Exec == nil {
		t.Fatalf("lifecycle %+v", mysqld.Lifecycle)
	}
	if diff := cmp.Diff([]string{"/opt/mfg/sidecar", "leave"}, mysqld.Lifecycle.PreStop.Exec.Command); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	waits := map[string]time.Duration{}
	for name, c := range containers(spec) {
		for _, e := range c.Env {
			if e.Name == "MFG_LEAVE_TIMEOUT" {
				var err error
				if waits[name], err = time.ParseDuration(e.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if waits[render.ContainerMySQL] == 0 || waits[render.ContainerMySQL] != waits[render.ContainerSidecar] {
		t.Errorf("hook and sidecar wait for %v", waits)
	}
	if left := time.Duration(*spec.TerminationGracePeriodSeconds)*time.Second - waits[render.ContainerMySQL]; left < time.Minute {
		t.Errorf("mysqld has %v to write its pages back", left)
	}
	for name, c := range containers(spec) {
		if name != render.ContainerMySQL && c.Lifecycle != nil {
			t.Errorf("container %s has a hook", name)
		}
	}
}

func TestPodLayout(t *testing.T) {
	d := render.Deployment(input(), input().Group.Spec.Sites[0])
	spec := d.Spec.Template.Spec
	var order []string
	for _, c := range spec.InitContainers {
		order = append(order, c.Name)
	}
	if diff := cmp.Diff([]string{"install", "bootstrap", "sidecar"}, order); diff != "" {
		t.Errorf("init containers (-want +got):\n%s", diff)
	}
	if d.Spec.Strategy.Type != "Recreate" || d.Spec.Strategy.RollingUpdate != nil || *d.Spec.Replicas != 1 {
		t.Errorf("strategy %+v, replicas %d", d.Spec.Strategy, *d.Spec.Replicas)
	}
	if !*spec.ShareProcessNamespace {
		t.Error("the sidecar cannot see mysqld")
	}
	cs := containers(spec)
	side := cs[render.ContainerSidecar]
	if side.RestartPolicy == nil || *side.RestartPolicy != corev1.ContainerRestartPolicyAlways || side.StartupProbe == nil {
		t.Error("the sidecar is not a native sidecar that mysqld waits for")
	}
	if len(side.Resources.Requests) == 0 {
		t.Error("the sidecar has no resources of its own")
	}
	live := cs[render.ContainerMySQL].LivenessProbe
	if live == nil || live.HTTPGet.Path != "/healthz/mysqld" || live.HTTPGet.Port.IntValue() != 8090 || live.PeriodSeconds != 2 ||
		live.FailureThreshold != 3 || *live.TerminationGracePeriodSeconds != 5 {
		t.Errorf("mysqld does not die with its sidecar: %+v", live)
	}
	if p := side.LivenessProbe; p == nil || p.TerminationGracePeriodSeconds == nil || *p.TerminationGracePeriodSeconds != 5 {
		t.Errorf("a sidecar that hangs keeps the grace of the whole pod: %+v", p)
	}
	run := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "run" })
	if run < 0 || spec.Volumes[run].EmptyDir == nil || spec.Volumes[run].EmptyDir.Medium != corev1.StorageMediumMemory {
		t.Error("I4: the deadline that sidecar and supervisor share is on a disk, which can keep both waiting")
	}
	ready := cs[render.ContainerMySQL].ReadinessProbe
	if ready == nil || ready.HTTPGet.Path != "/readyz" || ready.PeriodSeconds != 1 {
		t.Errorf("readiness %+v", ready)
	}
	env := map[string]string{}
	for _, e := range side.Env {
		env[e.Name] = e.Value
	}
	if got, want := env["MFG_PEERS"], "mysql-orders-frankfurt.shop.svc:8090,mysql-orders-madrid.shop.svc:8090"; got != want {
		t.Errorf("peers %s, want %s", got, want)
	}
	if !slices.Contains(cs[render.ContainerMySQL].Command, "--report-host=mysql-orders-paris.shop.svc") {
		t.Errorf("command %v", cs[render.ContainerMySQL].Command)
	}
}

// Whoever may change ConfigMaps must not be able to have a site trust another key (I3): it is in the pod template, of the sidecar alone.
func TestTheKeyThatIsTrustedIsInTheTemplateI3(t *testing.T) {
	in := input(everything)
	site := in.Group.Spec.Sites[0]
	for name, c := range containers(pod(in)) {
		trusts := ""
		for _, e := range c.Env {
			if e.Name == v1alpha1.EnvAuthorityKey {
				trusts = e.Value
			}
		}
		if want := in.Anchors[site.Name]; (trusts == want) != (name == render.ContainerSidecar) || want == "" {
			t.Errorf("I3: %s trusts %q", name, trusts)
		}
	}
	if d := render.Deployment(in, site); d.Annotations[v1alpha1.AnnotationAuthority] != in.Anchors[site.Name] {
		t.Errorf("the Deployment says %q", d.Annotations[v1alpha1.AnnotationAuthority])
	}
	for key := range render.ConfigMap(in, site).Data {
		if strings.Contains(key, "authority") || strings.HasSuffix(key, ".pub") {
			t.Errorf("I3: the ConfigMap has %s", key)
		}
	}
}

// TestWhatASidecarIsToldI4: how long it may vouch, and who vouches for it. A site that is new and has no data is asked by nobody.
func TestWhatASidecarIsToldI4(t *testing.T) {
	told := func(change option) map[string]string {
		return envOf(containers(pod(input(change)))[render.ContainerSidecar])
	}
	lease := func(d time.Duration) option {
		return func(in *render.Input) { in.Group.Spec.Sidecar.LeaseTimeout.Duration = d }
	}
	for d, want := range map[time.Duration]string{0: "20s", -1: "20s", 7 * time.Second: "7s"} {
		if got := told(lease(d))[v1alpha1.EnvLeaseTimeout]; got != want {
			t.Errorf("I4: of a lease of %s it is told %s", d, got)
		}
	}
	unlisted := func(in *render.Input) { in.Unlisted = map[string]bool{"frankfurt": true} }
	if got := told(unlisted)[v1alpha1.EnvPeers]; got != "mysql-orders-madrid.shop.svc:8090" {
		t.Errorf("I4: it asks %s", got)
	}
}

// A container without a request has next to no weight beside its sidecar, which strangers can keep busy.
func TestMysqldOutweighsItsSidecar(t *testing.T) {
	cpu := func(s string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s)}
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	for name, tt := range map[string]struct{ own, want corev1.ResourceRequirements }{
		"nothing named":     {want: corev1.ResourceRequirements{Requests: cpu("250m")}},
		"a request":         {own: corev1.ResourceRequirements{Requests: cpu("100m")}, want: corev1.ResourceRequirements{Requests: cpu("100m")}},
		"a limit":           {own: corev1.ResourceRequirements{Limits: cpu("100m")}, want: corev1.ResourceRequirements{Limits: cpu("100m")}},
		"memory named":      {own: corev1.ResourceRequirements{Requests: memory}, want: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: memory[corev1.ResourceMemory], corev1.ResourceCPU: cpu("250m")[corev1.ResourceCPU]}}},
		"a limit of memory": {own: corev1.ResourceRequirements{Limits: memory}, want: corev1.ResourceRequirements{Requests: cpu("250m"), Limits: memory}},
	} {
		spec := pod(input(func(in *render.Input) { in.Group.Spec.Sites[0].Resources = tt.own }))
		got := containers(spec)
		for _, c := range []string{render.ContainerMySQL, render.ContainerBootstrap} {
			if diff := cmp.Diff(tt.want, got[c].Resources); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", name, c, diff)
			}
		}
		mysql, side := got[render.ContainerMySQL].Resources.Requests[corev1.ResourceCPU], got[render.ContainerSidecar].Resources.Requests[corev1.ResourceCPU]
		if name == "nothing named" && mysql.MilliValue() < 5*side.MilliValue() {
			t.Errorf("mysqld asks for %s, its sidecar for %s", mysql.String(), side.String())
		}
	}
}

// TestResourcesOfTheSidecar: all of them are the user's once any is.
func TestResourcesOfTheSidecar(t *testing.T) {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7m")}
	for name, want := range map[string]corev1.ResourceRequirements{
		"requests": {Requests: list}, "limits": {Limits: list}, "claims": {Claims: []corev1.ResourceClaim{{Name: "device"}}},
	} {
		spec := pod(input(func(in *render.Input) { in.Group.Spec.Sidecar.Resources = want }))
		if diff := cmp.Diff(want, containers(spec)[render.ContainerSidecar].Resources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
