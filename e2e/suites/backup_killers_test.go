// SPDX-License-Identifier: Apache-2.0

//go:build lab && kills

package suites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/kills/backups"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// target is work on its way, as it is found at each look.
type target struct {
	g *stage.Group
	// pod is that of the work, and site the one that is copied or restored.
	pod  func(context.Context) (*corev1.Pod, error)
	site func(context.Context) (string, error)
	// step is where it is; empty if that is none of the steps. over is true once nothing can be killed any more.
	step func(context.Context) (step string, over bool, err error)
}

var errNothing = errors.New("there is nothing to kill")

// shoot waits for the step and kills, and takes back what does not pass without help. hit is false if the work was over before.
func (k *backupKilling) shoot(t *testing.T, c backups.Case, on target) (at time.Time, hit bool) {
	t.Helper()
	last := errors.New("the step was not seen")
	for deadline := time.Now().Add(killOutcome); ; time.Sleep(lookEvery) {
		step, over, err := on.step(t.Context())
		switch {
		case err != nil:
			last = err
		case step == c.Step:
			if c.Step == backups.StepRunning && c.Work != backups.Removal {
				sleep(t, rand.N(2*time.Second))
			}
			if last = k.kill(t.Context(), c, on); last == nil {
				at := time.Now()
				k.takeBack(t, c, on)
				return at, true
			}
			if errors.Is(last, errNothing) && over {
				return time.Now(), false
			}
		case over:
			t.Logf("missed %s: %v", c.Name(), last)
			return time.Now(), false
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("kill: %v", last)
		}
	}
}

func (k *backupKilling) kill(ctx context.Context, c backups.Case, on target) error {
	switch c.Kill {
	case backups.Operator:
		return on.g.KillOperator(ctx)
	case backups.Storage:
		return k.s3.Kill(ctx)
	case backups.Program, backups.Pod:
		pod, err := on.pod(ctx)
		if err != nil {
			return err
		}
		switch {
		case c.Kill == backups.Program && c.Work == backups.Restore:
			return stage.KillIn(pod, stage.LoadProgram)
		case c.Kill == backups.Program:
			return stage.KillIn(pod, stage.BackupProgram)
		}
		return on.g.Kube.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	}
	site, err := on.site(ctx)
	if err != nil {
		return err
	}
	switch c.Kill {
	case backups.Mysqld:
		return stage.KillProcess(ctx, on.g, site, stage.Mysqld)
	case backups.Site:
		return faultNamed("pod-force-delete").Break(ctx, on.g, site)
	case backups.Node:
		return faultNamed("node-kill").Break(ctx, on.g, site)
	}
	return fmt.Errorf("nobody knows how to kill %s", c.Kill)
}

func (k *backupKilling) takeBack(t *testing.T, c backups.Case, on target) {
	t.Helper()
	if c.Kill != backups.Node {
		return
	}
	sleep(t, 5*time.Second)
	site, err := on.site(t.Context())
	if err == nil {
		err = faultNamed("node-kill").Repair(t.Context(), on.g, site)
	}
	if err = errors.Join(err, lab.Restore(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// podOfTask is the newest pod of a backup for a task.
func (k *backupKilling) podOfTask(ctx context.Context, name, task string) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := k.g.Kube.List(ctx, &pods, client.InNamespace(killedNamespace), client.MatchingLabels{
		v1alpha1.LabelBackup: name, v1alpha1.LabelBackupTask: task,
	}); err != nil {
		return nil, err
	}
	if len(pods.Items) == 0 {
		return nil, errNothing
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest, nil
}

// running is true once the program of a backup runs in the pod.
func running(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

func (k *backupKilling) backupTarget(name string) target {
	site := ""
	return target{
		g:   k.g,
		pod: func(ctx context.Context) (*corev1.Pod, error) { return k.podOfTask(ctx, name, v1alpha1.TaskBackup) },
		site: func(ctx context.Context) (string, error) {
			b, err := k.g.Backup(ctx, name)
			if site == "" && err == nil {
				if site = b.Status.Site; site == "" {
					site = stage.Sites[2] // nobody was chosen yet: the one that is likely to be
				}
			}
			return site, err
		},
		step: func(ctx context.Context) (string, bool, error) {
			b, err := k.g.Backup(ctx, name)
			if err != nil {
				return "", false, err
			}
			over := b.Status.Phase == v1alpha1.BackupCompleted || b.Status.Phase == v1alpha1.BackupFailed
			if exists(filepath.Join(k.place, name, "manifest.json")) {
				return backups.StepStored, over, nil
			}
			pod, err := k.podOfTask(ctx, name, v1alpha1.TaskBackup)
			switch {
			case errors.Is(err, errNothing) && !over:
				return backups.StepPending, over, nil
			case err != nil:
				return "", over, err
			case !running(pod):
				return backups.StepStarting, over, nil
			case k.uploads(name) > 0:
				return backups.StepRunning, over, nil
			}
			return "", over, nil
		},
	}
}

func (k *backupKilling) removalTarget(name string) target {
	return target{
		g:   k.g,
		pod: func(ctx context.Context) (*corev1.Pod, error) { return k.podOfTask(ctx, name, v1alpha1.TaskDelete) },
		step: func(ctx context.Context) (string, bool, error) {
			if _, err := k.g.Backup(ctx, name); apierrors.IsNotFound(err) {
				return "", true, nil
			}
			_, err := k.podOfTask(ctx, name, v1alpha1.TaskDelete)
			if errors.Is(err, errNothing) {
				return backups.StepPending, false, nil
			}
			return backups.StepRunning, false, err
		},
	}
}

// restoreTarget is a group that is made of a backup. Its site is the first one.
func (k *backupKilling) restoreTarget(g *stage.Group, site string) target {
	return target{
		g:    g,
		pod:  func(ctx context.Context) (*corev1.Pod, error) { return g.Pod(ctx, site) },
		site: func(context.Context) (string, error) { return site, nil },
		step: func(ctx context.Context) (string, bool, error) {
			group, err := g.Get(ctx)
			if err != nil {
				return "", false, err
			}
			over := meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionAvailable)
			pod, err := g.Pod(ctx, site)
			if err != nil {
				return backups.StepPending, over, nil //nolint:nilerr // there is none yet
			}
			for _, c := range pod.Status.InitContainerStatuses {
				switch {
				case c.Name != v1alpha1.ContainerLoad:
				case c.State.Running != nil:
					return backups.StepRunning, over, nil
				case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
					if over {
						return "", true, nil
					}
					return backups.StepLoaded, over, nil
				}
			}
			return backups.StepPending, over, nil
		},
	}
}

// neverOpen looks at the group and at its first site all the time, and fails the test if either was open before the site had its data. The
// function that it returns ends that.
func neverOpen(t *testing.T, g *stage.Group, site string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	looks, blind := 0, time.Duration(0)
	go func() {
		defer close(done)
		for last := time.Now(); ctx.Err() == nil; {
			what, err := openTooEarly(ctx, g, site)
			if what != "" {
				t.Error(what)
				return
			}
			if err == nil {
				looks++
				last = time.Now()
			}
			blind = max(blind, time.Since(last))
			select {
			case <-ctx.Done():
			case <-time.After(4 * lookEvery):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		// The API server is none of what is killed.
		if looks == 0 || blind > maxBlind {
			t.Errorf("the group was looked at %d times, and once not for %s: that it was never open too early is not shown", looks, blind.Round(time.Second))
		}
	}
}

// maxBlind is for how long the API server may not answer: as long as two requests that time out.
const maxBlind = 30 * time.Second

// openTooEarly says what is open of a group that has not got its data.
func openTooEarly(ctx context.Context, g *stage.Group, site string) (string, error) {
	group, err := g.Get(ctx)
	if err != nil || isLoaded(group) {
		return "", err
	}
	st := group.Status
	if st.ActiveSite != "" || st.Epoch > 0 || meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionAvailable) {
		return fmt.Sprintf("the group opened without its data: %s; %s", stage.Describe(group), stage.DescribeRestore(group)), nil
	}
	asked, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	out, err := g.RootSQL(asked, site, "SELECT @@GLOBAL.super_read_only")
	if err != nil || strings.TrimSpace(out) != "0" {
		return "", nil // while it loads there is no server
	}
	if group, err = g.Get(ctx); err != nil || isLoaded(group) {
		return "", err // it may have opened since
	}
	return fmt.Sprintf("%s takes writes without its data, whatever status says: %s; %s", site, stage.Describe(group), stage.DescribeRestore(group)), nil
}

func isLoaded(group *v1alpha1.MysqlFailoverGroup) bool {
	return group.Status.Restore != nil && group.Status.Restore.Phase == v1alpha1.RestoreCompleted
}

// uploads counts what is on its way into the storage for a backup: whole objects, and parts of objects.
func (k *backupKilling) uploads(name string) (n int) {
	for _, dir := range []string{filepath.Join(k.place, name), filepath.Join(k.bucket, multipart)} {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
	}
	return n
}

// multipart is where versitygw keeps uploads that have not ended, below the bucket.
const multipart = ".sgwtmp/multipart"

// judge looks at what is in the storage and on the sites, sweeps, and looks again.
func (k *backupKilling) judge(t *testing.T, r *backups.Result) {
	t.Helper()
	r.Doing = "reading every backup"
	r.Manifests = k.whole(t)
	k.asToldByStatus(t)
	r.Doing = "waiting for the group to be whole"
	if _, err := k.g.AwaitReady(t.Context(), bringUp); err != nil {
		t.Fatal(err)
	}
	r.Doing = "looking for what is left"
	k.nothingRuns(t)
	r.Left = len(k.left(t))
	k.sweep(t)
	left := k.left(t)
	if r.LeftAfter = len(left); r.LeftAfter > 0 {
		t.Errorf("the sweep has left %v", left)
	}
	r.Manifests = k.whole(t) // and has taken nothing that belongs to a backup
}

// whole reads every manifest with every object that it names, and returns how many there are.
func (k *backupKilling) whole(t *testing.T) int {
	t.Helper()
	ids, err := bucket.ParseIdentities(strings.NewReader(k.id.String() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := bucket.Open(t.Context(), bucket.Config{Folder: k.bucket, Prefix: backupPrefix, Namespace: killedNamespace, Group: killedGroup})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	entries, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := readAll(t.Context(), b, e.Name, ids); err != nil {
			t.Errorf("backup %s has a manifest, and is none: %v", e.Name, err)
		}
	}
	for _, base := range []string{backups.Logical, backups.Physical} {
		if !slices.ContainsFunc(entries, func(e bucket.Entry) bool { return e.Name == "base-"+profileOf(base) }) {
			t.Errorf("the backup of the beginning by %s is gone", base)
		}
	}
	return len(entries)
}

// readAll reads all parts of a backup, with their digests.
func readAll(ctx context.Context, b *bucket.Bucket, name string, ids bucket.Identities) error {
	backup, err := b.OpenBackup(ctx, name, ids)
	if err != nil {
		return err
	}
	for _, p := range backup.Manifest.Parts {
		part, err := backup.Part(ctx, p.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, part)
		if err := errors.Join(err, part.Close()); err != nil {
			return fmt.Errorf("part %s: %w", p.Name, err)
		}
	}
	return nil
}

// asToldByStatus compares what MysqlBackups say with what is in the storage.
func (k *backupKilling) asToldByStatus(t *testing.T) {
	t.Helper()
	var all v1alpha1.MysqlBackupList
	if err := k.g.Kube.List(t.Context(), &all, client.InNamespace(killedNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		b := &all.Items[i]
		there := exists(filepath.Join(k.place, b.Name, "manifest.json"))
		if said := b.Status.Phase == v1alpha1.BackupCompleted; said != there {
			t.Errorf("%s; its manifest is in the storage: %t", stage.DescribeBackup(b), there)
		}
	}
}

// nothingRuns: no session of a backup is left on a site, and no pod.
func (k *backupKilling) nothingRuns(t *testing.T) {
	t.Helper()
	if err := stage.Poll(t.Context(), 2*time.Minute, "pods and sessions of backups to end", func(ctx context.Context) error {
		for _, site := range stage.Sites {
			if n, err := k.g.BackupSessions(ctx, site); err != nil || n != "0" {
				return fmt.Errorf("%s sessions of backups on %s: %w", n, site, err)
			}
		}
		var pods corev1.PodList
		if err := k.g.Kube.List(ctx, &pods, client.InNamespace(killedNamespace), client.MatchingLabels{v1alpha1.LabelName: v1alpha1.NameBackup}); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// left are the objects that no manifest names, and the uploads that were begun.
func (k *backupKilling) left(t *testing.T) (left []string) {
	t.Helper()
	folders, err := os.ReadDir(k.place)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if exists(filepath.Join(k.place, f.Name(), "manifest.json")) {
			left = append(left, k.unnamed(t, f.Name())...)
			continue
		}
		_ = filepath.WalkDir(filepath.Join(k.place, f.Name()), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, strings.TrimPrefix(path, k.place))
			}
			return nil
		})
	}
	uploads, _ := filepath.Glob(filepath.Join(k.bucket, multipart, "*", "*"))
	for _, u := range uploads {
		if info, err := os.Stat(u); err == nil && info.IsDir() {
			left = append(left, "upload "+filepath.Base(u))
		}
	}
	return left
}

// unnamed are the objects of a backup that its manifest does not name: those of an earlier attempt.
func (k *backupKilling) unnamed(t *testing.T, name string) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(k.place, name, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(k.place, name)
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if key := strings.TrimPrefix(path, dir+"/"); err == nil && !d.IsDir() && key != "manifest.json" && !strings.Contains(string(raw), `"`+key+`"`) {
			out = append(out, name+"/"+key)
		}
		return nil
	})
	return out
}

// sweep dates everything in the storage back and has the operator sweep once more.
func (k *backupKilling) sweep(t *testing.T) {
	t.Helper()
	ctx, long := t.Context(), time.Now().Add(-6*time.Hour)
	for _, dir := range []string{k.place, filepath.Join(k.bucket, multipart)} {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = os.Chtimes(path, long, long)
			}
			return client.IgnoreNotFound(err)
		})
	}
	for _, method := range []string{backups.Logical, backups.Physical} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: killedNamespace, Name: v1alpha1.SweepJob(killedGroup, profileOf(method))}}
		if err := k.g.Kube.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		said := ""
		if err := stage.Poll(ctx, 4*time.Minute, "the sweep of "+method, func(ctx context.Context) error {
			now := &batchv1.Job{}
			err := k.g.Kube.Get(ctx, client.ObjectKeyFromObject(job), now)
			if err == nil && now.UID != job.UID && now.Status.Succeeded > 0 {
				return nil
			}
			// The operator looks at a group when something of it changes.
			if touch := time.Now().Format("15:04:05"); touch != said {
				said = touch
				b, err := k.g.Backup(ctx, "base-"+profileOf(method))
				if err != nil {
					return err
				}
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"mfg-lab/looked":"`+touch+`"}}}`))
				if err := k.g.Kube.Patch(ctx, b, patch); err != nil {
					return err
				}
			}
			return errors.Join(err, fmt.Errorf("succeeded %d, failed %d", now.Status.Succeeded, now.Status.Failed))
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// remove deletes a MysqlBackup, and awaitGone waits until it is gone with what the storage has of it.
func (k *backupKilling) remove(t *testing.T, name string) {
	t.Helper()
	b := &v1alpha1.MysqlBackup{ObjectMeta: metav1.ObjectMeta{Namespace: killedNamespace, Name: name}}
	if err := k.g.Kube.Delete(t.Context(), b); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func (k *backupKilling) awaitGone(t *testing.T, name string) {
	t.Helper()
	if err := stage.Poll(t.Context(), killOutcome, "backup "+name+" to go", func(ctx context.Context) error {
		b, err := k.g.Backup(ctx, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New(stage.DescribeBackup(b))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(k.place, name, "manifest.json")) {
		t.Errorf("backup %s is gone, and its manifest is in the storage", name)
	}
}
