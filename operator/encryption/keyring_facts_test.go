// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// errLost is what the bootstrap of a pod ends with that has lost its keyring.
const errLost = wire.MarkKeyringLost + " is lost"

// I12: an address may answer that is another pod's by now; what it says of a keyring is not that of this one.
func TestReportIsThatOfThePodI12(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "new"}}
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		known bool
		uid   string
		want  bool
	}{
		"this pod":             {pod, true, "new", true},
		"the pod before":       {pod, true, "old", false},
		"nobody says which":    {pod, true, "", false},
		"facts of another day": {pod, false, "new", false},
		"no pod":               {nil, true, "", false},
	} {
		s := &scope.Scope{
			Pods: map[string]*corev1.Pod{"c": tt.pod}, Known: tt.known,
			Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"c": {PodUID: tt.uid, Keyring: &wire.KeyringReport{Digest: "d"}}}},
		}
		if got := reportOf(s, "c"); (got != nil) != tt.want {
			t.Errorf("I12: %s: %+v", name, got)
		}
	}
}

// I14: data is given up on what a pod says of its keyring, so only the pod counts that is the one to be, and silence only where
// mysqld does not start at all.
func TestWhatAPodSaysOfItsKeyringI14(t *testing.T) {
	now := time.Now()
	lost := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name:  render.ContainerBootstrap,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: errLost}},
		}}
	}
	both := func(all ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, change := range all {
				change(p)
			}
		}
	}
	for name, tt := range map[string]struct {
		change        func(*corev1.Pod)
		facts         scope.SiteFacts
		unknown       bool
		seen          time.Duration
		lost, silence bool
	}{
		"its mysqld ends at every start": {change: func(*corev1.Pod) {}, silence: true},
		"a moment ago":                   {change: func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now) }},
		"seen for the first time":        {change: func(*corev1.Pod) {}, seen: time.Second},
		"it is ready":                    {change: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }},
		"it answers":                     {change: func(*corev1.Pod) {}, facts: scope.SiteFacts{MysqlUp: true}},
		"nobody has looked":              {change: func(*corev1.Pod) {}, unknown: true},
		"it starts slowly":               {change: func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }},
		"bootstrap found it lost":        {change: lost, lost: true, silence: true},
		"of the Deployment before":       {change: both(lost, func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationSpecHash] = "old" })},
		"it is being deleted":            {change: both(lost, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				UID: "u", Annotations: map[string]string{v1alpha1.AnnotationSpecHash: "h"}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			},
			Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: render.ContainerMySQL, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
				}},
			},
		}
		tt.change(pod)
		if tt.seen == 0 {
			tt.seen = scope.LostAfter
		}
		s := &scope.Scope{
			Group: scopetest.Group(scopetest.Running), Now: now, Known: !tt.unknown, Pods: map[string]*corev1.Pod{"c": pod},
			SilentFor: map[string]time.Duration{"c": tt.seen},
			Deployments: map[string]*appsv1.Deployment{"c": {ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{v1alpha1.AnnotationSpecHash: "h"},
			}}},
			Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"c": tt.facts}},
		}
		if got := PodOf(s, "c"); got.Lost != tt.lost || got.Silent != tt.silence {
			t.Errorf("I14: %s: %+v", name, got)
		}
	}
}

// I14: a site is given up for what the active site has, so that one must be open, and on the volume that holds the group's data.
func TestWholeDonorI14(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*scope.Scope)
		want   bool
	}{
		"as it should be":         {func(*scope.Scope) {}, true},
		"not open":                {func(s *scope.Scope) { s.Facts.Open = false }, false},
		"without the mark":        {func(s *scope.Scope) { s.Provisioned["a"] = false }, false},
		"on another volume":       {func(s *scope.Scope) { s.Volumes["a"] = "another" }, false},
		"in a transition":         {func(s *scope.Scope) { s.Group.Status.Transition = &v1alpha1.Transition{To: "b"} }, false},
		"facts of another leader": {func(s *scope.Scope) { s.Facts.ActiveSite = "b" }, false},
	} {
		s := &scope.Scope{
			Group: scopetest.Group(scopetest.Running), Provisioned: map[string]bool{"a": true}, Volumes: map[string]string{"a": "v"},
			Facts: scope.GroupFacts{ActiveSite: "a", Open: true, Sites: map[string]scope.SiteFacts{"a": {VolumeID: "v"}}},
		}
		tt.change(s)
		if got := donorWhole(s); got != tt.want {
			t.Errorf("I14: %s: %t", name, got)
		}
	}
}

// I16: a pod whose bootstrap has never begun has nothing in its memory; one that may have begun may have the only copy of a keyring.
func TestAPodThatNeverBeganI16(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	ended := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
	}
	for name, tt := range map[string]struct {
		container string
		status    corev1.ContainerStatus
		want      bool
	}{
		"waits for a volume":        {render.ContainerBootstrap, corev1.ContainerStatus{State: waiting}, true},
		"runs":                      {render.ContainerBootstrap, corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, false},
		"has run":                   {render.ContainerBootstrap, corev1.ContainerStatus{State: waiting, LastTerminationState: ended("")}, false},
		"has run, as the count":     {render.ContainerBootstrap, corev1.ContainerStatus{State: waiting, RestartCount: 1}, false},
		"refused data in the clear": {render.ContainerBootstrap, corev1.ContainerStatus{State: ended(wire.MarkPlainData + ", and")}, true},
		"did not start from it":     {render.ContainerBootstrap, corev1.ContainerStatus{State: ended(wire.MarkNoSeed + " is missing")}, true},
		"again and again":           {render.ContainerBootstrap, corev1.ContainerStatus{State: waiting, RestartCount: 3, LastTerminationState: ended(wire.MarkNoSeed + " has another digest")}, true},
		"failed for another cause":  {render.ContainerBootstrap, corev1.ContainerStatus{State: ended("no space left")}, false},
		"another container":         {"other", corev1.ContainerStatus{State: waiting}, false},
	} {
		tt.status.Name = tt.container
		d := &appsv1.Deployment{}
		d.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: "h"}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{v1alpha1.AnnotationSpecHash: "h"}}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{tt.status}
		s := &scope.Scope{Pods: map[string]*corev1.Pod{"c": pod}, Deployments: map[string]*appsv1.Deployment{"c": d}, Now: time.Now(), Group: &v1alpha1.MysqlFailoverGroup{}}
		if got := PodOf(s, "c"); got.Unborn != tt.want || got.Plain != strings.Contains(name, "in the clear") {
			t.Errorf("I16: %s: %+v", name, got)
		}
	}
}

func TestProjectedSeesWhatCoversTheKeyring(t *testing.T) {
	const dir = "/run/mysql-keyring"
	mounts := func(all ...corev1.VolumeMount) corev1.PodSpec {
		return corev1.PodSpec{
			Containers: []corev1.Container{{Name: render.ContainerMySQL, VolumeMounts: all}},
			Volumes: []corev1.Volume{
				{Name: "k", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "v3"}}},
				{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		}
	}
	ro := corev1.VolumeMount{Name: "k", MountPath: dir, ReadOnly: true}
	tests := map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"sealed":    {mounts(ro), "v3"},
		"writable":  {mounts(corev1.VolumeMount{Name: "k", MountPath: dir}), ""},
		"covered":   {mounts(ro, corev1.VolumeMount{Name: "e", MountPath: dir + "/keyring"}), ""},
		"twice":     {mounts(ro, corev1.VolumeMount{Name: "e", MountPath: dir, ReadOnly: true}), ""},
		"below":     {mounts(corev1.VolumeMount{Name: "k", MountPath: dir + "/x", ReadOnly: true}), ""},
		"emptyDir":  {mounts(corev1.VolumeMount{Name: "e", MountPath: dir, ReadOnly: true}), ""},
		"elsewhere": {mounts(corev1.VolumeMount{Name: "k", MountPath: dir + "-too", ReadOnly: true}), ""},
		"no mysqld": {corev1.PodSpec{}, ""},
	}
	for name, tt := range tests {
		if got := projected(tt.spec, dir); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestMayDiffer(t *testing.T) {
	for name, tt := range map[string]struct {
		diverged bool
		record   v1alpha1.FailoverRecord
		want     bool
	}{
		"follows":                  {false, v1alpha1.FailoverRecord{From: "x", To: "a"}, false},
		"diverged":                 {true, v1alpha1.FailoverRecord{From: "x", To: "a"}, true},
		"replaced, not compared":   {false, v1alpha1.FailoverRecord{From: "c", To: "a", FromServerUUID: "u"}, true},
		"replaced, compared":       {false, v1alpha1.FailoverRecord{From: "c", To: "a", FromServerUUID: "u", LossExact: true}, false},
		"replaced, recloned since": {false, v1alpha1.FailoverRecord{From: "c", To: "a", FromServerUUID: lineage.ServerReplaced}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := scopetest.Group()
			g.Status.Failovers = []v1alpha1.FailoverRecord{tt.record}
			s := &scope.Scope{Group: g, Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{"c": {Diverged: tt.diverged}}}}
			if got := mayDiffer(s, "c"); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCalmIsThatOfTheReport(t *testing.T) {
	start, site := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), scope.SiteKey{Group: scopetest.Key, Site: "b"}
	var e escrows
	for i, step := range []struct {
		key      string
		at, made time.Duration
		want     time.Duration
	}{
		{"one", 0, -20 * time.Second, 0},
		{"one", 30 * time.Second, -20 * time.Second, 0}, // the same report, looked at again
		{"one", 31 * time.Second, 4 * time.Second, 4 * time.Second},
		{"one", 60 * time.Second, 59 * time.Second, 59 * time.Second},
		{"two", 61 * time.Second, 60 * time.Second, 0},
		{"two", 70 * time.Second, 70 * time.Second, 9 * time.Second},
	} {
		if got := e.calm(site, step.key, start.Add(step.at), start.Add(step.made)); got != step.want {
			t.Errorf("step %d: calm for %s, want %s", i, got, step.want)
		}
	}
	if got := e.calm(site, "two", start.Add(time.Hour), time.Time{}); got != 0 {
		t.Errorf("nobody reports, and it is calm for %s", got)
	}
}

// A group whose keyrings are sealed is not covered for that alone.
func TestConditionTellsWhatIsNotCovered(t *testing.T) {
	off := false
	group := scopetest.Group(scopetest.WithEncryption)
	site := func(name string, change func(*v1alpha1.SiteKeyringStatus)) keyring.Next {
		st := v1alpha1.SiteKeyringStatus{Name: name, Phase: v1alpha1.KeyringSealed, Coverage: v1alpha1.CoverageStatus{
			KeyringComponent: "component_keyring_file", KeyringReadOnly: true, SystemTablespaceEncrypted: true, RedoLogEncrypted: true,
			UndoLogEncrypted: true, BinlogEncrypted: true,
		}}
		change(&st)
		return keyring.Next{Name: name, Status: st}
	}
	tests := map[string]struct {
		reason string
		wish   v1alpha1.CoverageSpec
		given  func(*v1alpha1.SiteKeyringStatus)
		want   v1alpha1.Reason
		says   []string
	}{
		"all":             {"nothing is in the clear", v1alpha1.CoverageSpec{}, func(*v1alpha1.SiteKeyringStatus) {}, v1alpha1.ReasonAllSealed, nil},
		"redo log":        {"", v1alpha1.CoverageSpec{}, func(s *v1alpha1.SiteKeyringStatus) { s.Coverage.RedoLogEncrypted = false }, v1alpha1.ReasonPartialCoverage, []string{"the redo log of b"}},
		"undo log":        {"", v1alpha1.CoverageSpec{}, func(s *v1alpha1.SiteKeyringStatus) { s.Coverage.UndoLogEncrypted = false }, v1alpha1.ReasonPartialCoverage, []string{"the undo log of b"}},
		"old binary logs": {"as after an adoption", v1alpha1.CoverageSpec{}, func(s *v1alpha1.SiteKeyringStatus) { s.Coverage.BinlogEncrypted = false }, v1alpha1.ReasonPartialCoverage, []string{"binary or relay logs of b", "purged"}},
		"names":           {"", v1alpha1.CoverageSpec{}, func(s *v1alpha1.SiteKeyringStatus) { s.Coverage.SystemTablespaceEncrypted = false }, v1alpha1.ReasonPartialCoverage, []string{"columns of b"}},
		"not wished": {"what the specification leaves out is said, and no fault", v1alpha1.CoverageSpec{BinaryLog: &off},
			func(s *v1alpha1.SiteKeyringStatus) { s.Coverage.BinlogEncrypted = false }, v1alpha1.ReasonAllSealed, []string{"by specification not encrypted: binary and relay logs"}},
		"tables, and not wished": {"both are said", v1alpha1.CoverageSpec{BinaryLog: &off},
			func(s *v1alpha1.SiteKeyringStatus) {
				s.Coverage.UnencryptedTablespaces, s.Coverage.BinlogEncrypted = 2, false
			}, v1alpha1.ReasonPartialCoverage,
			[]string{"2 tablespaces of b", "ENCRYPTION='Y'", "by specification not encrypted: binary and relay logs"}},
		"silent": {"0 would be a claim", v1alpha1.CoverageSpec{}, func(s *v1alpha1.SiteKeyringStatus) { s.Coverage = v1alpha1.CoverageStatus{} }, v1alpha1.ReasonAllSealed, nil},
		"not sealed": {"that comes first", v1alpha1.CoverageSpec{RedoLog: &off}, func(s *v1alpha1.SiteKeyringStatus) {
			s.Phase, s.Coverage.UndoLogEncrypted = v1alpha1.KeyringUnsealed, false
		}, v1alpha1.ReasonNotSealed, []string{"b is Unsealed", "by specification not encrypted: the redo log"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			group.Spec.EncryptionAtRest.Coverage = tt.wish
			whole := site("a", func(*v1alpha1.SiteKeyringStatus) {})
			c := encryptionCondition(group, keyring.Decision{Sites: []keyring.Next{whole, site("b", tt.given)}})
			if c.Reason != tt.want || (c.Status == metav1.ConditionTrue) != (tt.want == v1alpha1.ReasonAllSealed) {
				t.Errorf("%s: %+v, want %s", tt.reason, c, tt.want)
			}
			for _, words := range tt.says {
				if !strings.Contains(c.Message, words) {
					t.Errorf("%q does not say %q", c.Message, words)
				}
			}
			if strings.Contains(c.Message, " of a") {
				t.Errorf("%q speaks of a", c.Message)
			}
		})
	}
}
