// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestWhatATaintProvesI1: a person taints the node that is down. The volume may be on another one by then, and status says so
// only later.
func TestWhatATaintProvesI1(t *testing.T) {
	const down, up, off = "node-1", "node-2", "node-3"
	pod := func(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
		p.Status.PodIP = "10.0.0.1"
		for _, do := range change {
			do(p)
		}
		return p
	}
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	begins := func(p *corev1.Pod) { p.Status.PodIP = "" }
	newer := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Now() }
	locked := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerBootstrap,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	}
	node := func(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		recorded        string
		pods            []*corev1.Pod
		proof, unplaced bool
	}{
		"its pod is there":                      {down, []*corev1.Pod{pod("a", down)}, true, false},
		"no pod is left":                        {down, nil, true, false},
		"its next pod waits for a node":         {down, []*corev1.Pod{pod("b", ""), pod("a", down)}, true, false},
		"its next pod is on another node":       {down, []*corev1.Pod{pod("b", up), pod("a", down)}, false, false},
		"it moved before status knew":           {down, []*corev1.Pod{pod("b", up)}, false, false},
		"its next pod has no address yet":       {down, []*corev1.Pod{pod("b", up, begins), pod("a", down)}, true, false},
		"an older one has ended on another":     {down, []*corev1.Pod{pod("a", down), pod("old", up, over)}, true, false},
		"an older one may run on another":       {down, []*corev1.Pod{pod("a", down, newer), pod("old", up)}, false, false},
		"a lock on another machine is no proof": {down, []*corev1.Pod{pod("a", down, newer, locked), pod("old", off, over)}, false, false},
		"a newer one is where nobody sees it":   {down, []*corev1.Pod{pod("b", off, newer, over), pod("a", down, locked)}, false, false},
		"it waits on a node, and never ran":     {"", []*corev1.Pod{pod("a", up, begins)}, false, false},
		"it is on a node that is up":            {up, []*corev1.Pod{pod("a", up)}, false, false},
		"it never was on a node":                {"", []*corev1.Pod{pod("a", "")}, false, true},
		"it never was on a node, has no pod":    {"", nil, false, true},
		"it is on a node that status knows not": {"", []*corev1.Pod{pod("b", ""), pod("a", up)}, false, false},
		"its node cannot be asked for":          {"gone", []*corev1.Pod{pod("a", "gone")}, false, false},
	} {
		c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
		c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects([]client.Object{
			node(down, corev1.ConditionUnknown, corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}), node(up, corev1.ConditionTrue),
			node(off, corev1.ConditionUnknown),
		}...).Build()
		group := &v1alpha1.MysqlFailoverGroup{Status: v1alpha1.MysqlFailoverGroupStatus{Sites: []v1alpha1.SiteStatus{{Name: "east", Node: tc.recorded}}}}
		got := c.Of(t.Context(), group, "east", tc.pods)
		if got.OutOfService != tc.proof || got.Unplaced != tc.unplaced {
			t.Errorf("I1, I4: %s: cannot run: %t, never ran: %t", name, got.OutOfService, got.Unplaced)
		}
	}
}

// TestWhoseEndIsProvenI1: that of the only pod, which had the lock of the volume, told by the kubelet of a Ready node.
func TestWhoseEndIsProvenI1(t *testing.T) {
	pod := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		p := podOf("east", name, node, "10.0.0.1")
		p.Status.Phase = phase
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerBootstrap,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		return &p
	}
	unready := readyNode("unready")
	unready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	ready := readyNode("ready")
	ready.Status.Conditions = append([]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}, ready.Status.Conditions...)
	unlocked := pod("unlocked", "ready", corev1.PodFailed)
	unlocked.Status.InitContainerStatuses = nil
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want bool
	}{
		"its only pod has ended":       {[]*corev1.Pod{pod("a", "ready", corev1.PodFailed)}, true},
		"it has ended well":            {[]*corev1.Pod{pod("b", "ready", corev1.PodSucceeded)}, true},
		"it runs":                      {[]*corev1.Pod{pod("c", "ready", corev1.PodRunning)}, false},
		"another one is there":         {[]*corev1.Pod{pod("d", "ready", corev1.PodFailed), pod("e", "ready", corev1.PodRunning)}, false},
		"it never had the lock":        {[]*corev1.Pod{unlocked}, false},
		"its node is not Ready":        {[]*corev1.Pod{pod("f", "unready", corev1.PodFailed)}, false},
		"its node cannot be asked for": {[]*corev1.Pod{pod("g", "gone", corev1.PodFailed)}, false},
		"there is none, and never was": {nil, false},
	} {
		c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
		c.Client = apiServer{nodes: map[string]*corev1.Node{"ready": ready, "unready": unready}}
		group := &v1alpha1.MysqlFailoverGroup{Status: v1alpha1.MysqlFailoverGroupStatus{Sites: []v1alpha1.SiteStatus{{Name: "west", Node: "n9"}}}}
		got := c.Of(t.Context(), group, "east", tc.pods)
		if got.Ended != tc.want || got.Exists != (tc.pods != nil) || got.Node == "n9" {
			t.Errorf("I1: %s: %+v", name, got)
		}
	}
}

// TestWhySitesLeave: their role is moved before.
func TestWhySitesLeave(t *testing.T) {
	now := metav1.Now()
	stays, goes, drained := podOf("east", "stays", "n1", "1"), podOf("east", "goes", "n1", "1"), podOf("east", "drained", "n2", "1")
	goes.DeletionTimestamp = &now
	cordoned := readyNode("n2")
	cordoned.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		pods   []*corev1.Pod
		wanted string
		want   string
	}{
		"nothing":              {[]*corev1.Pod{&stays}, "", ""},
		"its pod is deleted":   {[]*corev1.Pod{&goes}, "", "pod goes is being deleted"},
		"its node is cordoned": {[]*corev1.Pod{&drained}, "", "node n2 is cordoned"},
		"an update":            {[]*corev1.Pod{&stays}, "an update waits", "an update waits"},
		"it has no pod":        {nil, "an update waits", ""},
	} {
		c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
		c.Client = apiServer{nodes: map[string]*corev1.Node{"n1": readyNode("n1"), "n2": cordoned}}
		if of := c.Of(t.Context(), &v1alpha1.MysqlFailoverGroup{}, "east", tc.pods); of.Deleted != (name == "its pod is deleted") {
			t.Errorf("%s: deleted %t", name, of.Deleted)
		}
		c.LongWork = wanted{"east": tc.wanted}
		if got := c.Leaving(t.Context(), &v1alpha1.MysqlFailoverGroup{}, "east", tc.pods); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
	c.LongWork = reasoned{}
	c.Client = apiServer{}
	if got := c.Leaving(t.Context(), &v1alpha1.MysqlFailoverGroup{}, "east", []*corev1.Pod{&stays}); got != "" {
		t.Errorf("nobody wants it away: %q", got)
	}
}

// reasoned is a LongWork that has a reason and wants nothing.
type reasoned struct{}

func (reasoned) Leaving(string, string, string) (string, bool) { return "one of before", false }

// TestWhichPodIsTheSitesI12: the one that has the volume, else one that stays, else the newest, in whatever order they come.
func TestWhichPodIsTheSitesI12(t *testing.T) {
	now := metav1.Now()
	pod := func(name string, change ...func(*corev1.Pod)) corev1.Pod {
		p := podOf("east", name, "n1", "1")
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		for _, do := range change {
			do(&p)
		}
		return p
	}
	goes := func(p *corev1.Pod) { p.DeletionTimestamp = &now }
	young := func(p *corev1.Pod) { p.CreationTimestamp = now }
	over := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
	begins := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append([]corev1.ContainerStatus{{Name: v1alpha1.ContainerBootstrap,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}, p.Status.InitContainerStatuses...)
		p.Status.InitContainerStatuses[1].State = corev1.ContainerState{}
	}
	for name, pair := range map[string][2]corev1.Pod{
		"it has the volume, and goes": {pod("a", goes), pod("b", over, young)},
		"it has the volume":           {pod("a"), pod("b", begins, young)},
		"none has it, one stays":      {pod("a", over), pod("b", over, goes, young)},
		"none has it, both stay":      {pod("a", over, young), pod("b", over)},
		"both go":                     {pod("a", over, goes, young), pod("b", over, goes)},
		"both seem to have it":        {pod("a"), pod("b", goes, young)},
	} {
		for _, order := range [][]corev1.Pod{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
			c.Client = apiServer{pods: order}
			if got := c.Newest(t.Context(), &v1alpha1.MysqlFailoverGroup{})["east"]; got == nil || got.Name != "a" {
				t.Errorf("I12: %s: %v is asked", name, got)
			}
		}
	}
}

// TestWhatAPodWasStartedWithI4: its lease counts for as long as it runs, whatever the spec says by then.
func TestWhatAPodWasStartedWithI4(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	env := func(pairs ...string) (out []corev1.EnvVar) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for name, tc := range map[string]struct {
		containers []corev1.Container
		want       time.Duration
	}{
		"lease and fence": {[]corev1.Container{{Env: env(v1alpha1.EnvLeaseTimeout, "1h")},
			{RestartPolicy: &always, Env: env("OTHER", "1h", v1alpha1.EnvLeaseTimeout, "20s", v1alpha1.EnvFenceTimeout, "2s")}}, 22 * time.Second},
		"a value that is none": {[]corev1.Container{{RestartPolicy: &always, Env: env(v1alpha1.EnvLeaseTimeout, "20s", v1alpha1.EnvFenceTimeout, "2 s")}}, 20 * time.Second},
		"no sidecar":           {[]corev1.Container{{Env: env(v1alpha1.EnvLeaseTimeout, "20s")}}, 0},
	} {
		if got := leaseOf(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.containers}}); got != tc.want {
			t.Errorf("I4: %s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestWhichTaintSaysThatANodeIsDownI1: a person's word that nothing runs there, and no other.
func TestWhichTaintSaysThatANodeIsDownI1(t *testing.T) {
	for name, tc := range map[string]struct {
		taint corev1.Taint
		want  bool
	}{
		"out of service":         {corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute}, true},
		"only if it is no worse": {corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectPreferNoSchedule}, false},
		"unreachable":            {corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}, false},
	} {
		if got := outOfService(&corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{tc.taint}}}); got != tc.want {
			t.Errorf("I1: %s: %t", name, got)
		}
	}
}

// TestTheVolumesHolderIsAsked covers I12: while a pod that is being deleted still runs, its successor has nothing to say.
func TestTheVolumesHolderIsAsked(t *testing.T) {
	running := []corev1.ContainerStatus{{Name: v1alpha1.ContainerSidecar, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	now := metav1.Now()
	going := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now},
		Status: corev1.PodStatus{InitContainerStatuses: running}}
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gone", DeletionTimestamp: &now}}
	waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits", CreationTimestamp: now}}
	serves := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "serves", CreationTimestamp: now}, Status: corev1.PodStatus{InitContainerStatuses: running}}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"the old pod still runs":            {[]*corev1.Pod{waits, going}, "going"},
		"the old pod has ended":             {[]*corev1.Pod{gone, waits}, "waits"},
		"the kubelet of the old one is old": {[]*corev1.Pod{going, serves}, "serves"},
	} {
		slices.SortFunc(tc.pods, newestFirst)
		if got := tc.pods[0].Name; got != tc.want {
			t.Errorf("I12: %s: %s is asked, want %s", name, got, tc.want)
		}
	}
}

// TestAPodThatNeverHeldTheVolumeProvesNothing covers I2: one before it may still run.
func TestAPodThatNeverHeldTheVolumeProvesNothing(t *testing.T) {
	locked := corev1.ContainerStatus{Name: v1alpha1.ContainerBootstrap,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	failed := locked
	failed.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	for name, c := range map[string]struct {
		phase corev1.PodPhase
		init  []corev1.ContainerStatus
		want  bool
	}{
		"ended after it held the volume":   {corev1.PodFailed, []corev1.ContainerStatus{locked}, true},
		"still running":                    {corev1.PodRunning, []corev1.ContainerStatus{locked}, false},
		"rejected by the kubelet":          {corev1.PodFailed, nil, false},
		"ended while it waited for a lock": {corev1.PodFailed, []corev1.ContainerStatus{failed}, false},
		"ended before it had told of it":   {corev1.PodFailed, []corev1.ContainerStatus{{Name: v1alpha1.ContainerBootstrap}}, false},
		"another container ended well":     {corev1.PodFailed, []corev1.ContainerStatus{{Name: "other", State: locked.State}, failed}, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: c.phase, InitContainerStatuses: c.init}}
		if got := ended(pod); got != c.want {
			t.Errorf("I2: %s: ended %t, want %t", name, got, c.want)
		}
	}
}

// TestWhoseVolumeGoes: that of a pod whose claim is being deleted. Nothing is held against a claim that cannot be read.
func TestWhoseVolumeGoes(t *testing.T) {
	pod, now := podOf("east", "a", "n1", "1"), metav1.Now()
	claim := func(namespace, site string, deleted *metav1.Time) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DataVolumeName("orders", site),
			DeletionTimestamp: deleted, Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	}
	for name, tc := range map[string]struct {
		pods  []*corev1.Pod
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"its claim is being deleted":     {[]*corev1.Pod{&pod}, claim("shop", "east", &now), true},
		"its claim stays":                {[]*corev1.Pod{&pod}, claim("shop", "east", nil), false},
		"another site's is":              {[]*corev1.Pod{&pod}, claim("shop", "west", &now), false},
		"one in another namespace is":    {[]*corev1.Pod{&pod}, claim("other", "east", &now), false},
		"it is, and no pod is on it any": {nil, claim("shop", "east", &now), false},
	} {
		c := Cluster{Ends: &EndedPods{}, LongWork: wanted(nil), Log: slog.New(slog.DiscardHandler)}
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.claim).Build()
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
		if got := c.Of(t.Context(), group, "east", tc.pods).VolumeGoes; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
