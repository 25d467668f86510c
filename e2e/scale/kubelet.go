// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// kubelet plays the rest of Kubernetes: it gives every Deployment of a site its pod, on the site's node and address, and
// says that it runs.
type kubelet struct {
	core     kubernetes.Interface
	world    *world
	sidecars *sidecars

	sites      map[string]*site // by Deployment
	cacheSites map[string]*site // by StatefulSet
	queue      chan any         // of both
	done       sync.WaitGroup
	mu         sync.Mutex
	made       int
	last       error
}

const (
	nodeWorkers = 4
	retryAfter  = time.Second
)

func newKubelet(core kubernetes.Interface, w *world, c *sidecars) *kubelet {
	k := &kubelet{core: core, world: w, sidecars: c, sites: map[string]*site{}, cacheSites: map[string]*site{}, queue: make(chan any, 4*len(w.all)+1)}
	for _, s := range w.all {
		k.sites[s.host()] = s
		k.cacheSites[v1alpha1.CacheSiteName(s.group, s.name)] = s
	}
	return k
}

// start watches Deployments and StatefulSets until ctx ends.
func (k *kubelet) start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.core, 0)
	apps := factory.Apps().V1()
	jobs := factory.Batch().V1().Jobs().Informer()
	if _, err := jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if job, is := obj.(*batchv1.Job); is {
			k.done.Go(func() { k.keepTrying(ctx, func() error { return k.runJob(ctx, job) }) })
		}
	}}); err != nil {
		return fmt.Errorf("watch Jobs: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{apps.Deployments().Informer(), apps.StatefulSets().Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { k.queue <- obj }}); err != nil {
			return fmt.Errorf("watch deployments and StatefulSets: %w", err)
		}
	}
	factory.Start(ctx.Done())
	for range nodeWorkers {
		k.done.Go(func() { k.work(ctx) })
	}
	return nil
}

func (k *kubelet) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case obj := <-k.queue:
			k.keepTrying(ctx, func() error {
				switch made := obj.(type) {
				case *appsv1.Deployment:
					return k.run(ctx, made)
				case *appsv1.StatefulSet:
					return k.runCache(ctx, made)
				}
				return nil
			})
		}
	}
}

// keepTrying tries until it succeeds.
func (k *kubelet) keepTrying(ctx context.Context, try func() error) {
	for ctx.Err() == nil {
		err := try()
		k.note(err)
		if err == nil {
			return
		}
		time.Sleep(retryAfter)
	}
}

func (k *kubelet) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.made++
		return
	}
	k.last = err
}

// progress is how many pods run, and the last trouble with one.
func (k *kubelet) progress() (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made, k.last
}

func (k *kubelet) run(ctx context.Context, d *appsv1.Deployment) error {
	s := k.sites[d.Name]
	if s == nil {
		return nil
	}
	secret, err := k.core.CoreV1().Secrets(d.Namespace).Get(ctx, v1alpha1.AccountsSecret(s.group), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read accounts of %s: %w", s.group, err)
	}
	report, err := k.core.CoreV1().Secrets(d.Namespace).Get(ctx, v1alpha1.ReportSecret(s.group, s.name), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read key for reports of %s: %w", d.Name, err)
	}
	pods := k.core.CoreV1().Pods(d.Namespace)
	made, err := pods.Create(ctx, podOf(d, s), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = pods.Get(ctx, d.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("create pod %s: %w", d.Name, err)
	}
	s.start(string(made.UID), string(secret.Data["operator"]))
	s.authenticate(report.Data[v1alpha1.ReportKey])
	made.Status = runningAt(made, s)
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("run pod %s: %w", d.Name, err)
	}
	now := d.DeepCopy()
	now.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}},
	}
	// Nobody waits for what a Deployment says of itself, and the operator may have changed it meanwhile.
	if _, err := k.core.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("finish deployment %s: %w", d.Name, err)
	}
	k.sidecars.begin(ctx, s)
	return nil
}

// podOf is the pod that the Deployment's controller and the scheduler would make.
func podOf(d *appsv1.Deployment, s *site) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = d.Name, d.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	pod.Spec.NodeName = nodeName(s.name)
	return pod
}

func nodeName(site string) string { return "node-" + site }

// runningAt is the status of a pod that runs.
func runningAt(pod *corev1.Pod, s *site) corev1.PodStatus {
	now := metav1.Now()
	st := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: s.addr.String(), PodIPs: []corev1.PodIP{{IP: s.addr.String()}}, HostIP: "127.0.0.1", StartTime: &now,
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		st.Conditions = append(st.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	running := func(c corev1.Container) corev1.ContainerStatus {
		started := true
		return corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "fake://" + string(pod.UID) + "-" + c.Name, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}
	}
	for _, c := range pod.Spec.InitContainers {
		one := running(c)
		if c.RestartPolicy == nil {
			over := false
			one.Started, one.State = &over, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: one.ContainerID,
			}}
		}
		st.InitContainerStatuses = append(st.InitContainerStatuses, one)
	}
	for _, c := range pod.Spec.Containers {
		st.ContainerStatuses = append(st.ContainerStatuses, running(c))
	}
	return st
}

// makeNodes makes a ready node for each site of a group.
func makeNodes(ctx context.Context, core kubernetes.Interface, sites int) error {
	var errs []error
	for i := range sites {
		node, err := core.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(siteName(i))}}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node: %w", err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
		// Without a lifecycle controller the taint of a new node stays for ever.
		node.Spec.Taints = nil
		updated, err := core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update node: %w", err)
		}
		updated.Status.Conditions = node.Status.Conditions
		_, err = core.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
