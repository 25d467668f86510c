// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// Options say what to collect.
type Options struct {
	Group             *v1alpha1.MysqlFailoverGroup
	Kube              kubernetes.Interface
	OperatorNamespace string
	// OperatorSelector finds the operator's pods.
	OperatorSelector string
	// Lines is how many lines of each log are taken, from its end.
	Lines int64
	Now   time.Time
	// Extra are files that the caller made: the operator's answer, its own version.
	Extra map[string][]byte
}

const (
	// maxLog bounds one log.
	maxLog = 4 << 20
	// logTimeout is how long one log may take: a node that is lost costs only its own logs.
	logTimeout = 5 * time.Second
)

// Bundle is what was collected.
type Bundle struct {
	root  string
	now   time.Time
	files map[string][]byte
	// Missing are things that could not be collected, and why.
	Missing []string
	// Cut is true if the time ended before everything was read.
	Cut bool
}

// Collect reads everything. What cannot be read is noted and left out: a bundle with holes helps more than none.
func Collect(ctx context.Context, o Options) *Bundle {
	b := &Bundle{root: fmt.Sprintf("mfg-report-%s-%s-%s", o.Group.Namespace, o.Group.Name, o.Now.UTC().Format("20060102-150405")), now: o.Now, files: map[string][]byte{}}
	g := o.Group.DeepCopy()
	g.ObjectMeta = plainMeta(g.ObjectMeta)
	g.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
	b.add("group.yaml", g)
	for name, content := range o.Extra {
		b.extra(name, content)
	}
	selector := v1alpha1.LabelGroup + "=" + o.Group.Name
	ours := b.pods(ctx, o, o.Group.Namespace, selector)
	operators := b.pods(ctx, o, o.OperatorNamespace, o.OperatorSelector)
	b.objects(ctx, o, selector)
	b.clusterObjects(ctx, o)
	// The logs come last, because only they need nodes that answer.
	b.logs(ctx, o, operators)
	b.logs(ctx, o, ours)
	b.Cut = ctx.Err() != nil
	b.files["README.txt"] = []byte(readme)
	if len(b.Missing) > 0 {
		b.files["missing.txt"] = []byte(strings.Join(b.Missing, "\n") + "\n")
	}
	return b
}

const readme = `Made by: kubectl mfg report

No Secret was read. Values that look like passwords, tokens, keys or DSNs were taken out of every file, as were values of
variables with such names. Names of sites, nodes, namespaces and addresses, and GTID sets, are in it: look through it
before you give it away.
`

// Names returns the names of the files, sorted.
func (b *Bundle) Names() []string { return slices.Sorted(maps.Keys(b.files)) }

// Root returns the folder that holds them.
func (b *Bundle) Root() string { return b.root }

func (b *Bundle) add(name string, content any) {
	object, err := json.Marshal(content)
	if err == nil {
		b.files[name], err = plainYAML(object)
	}
	if err != nil {
		delete(b.files, name)
		b.missing(name, err)
	}
}

// extra adds a file that the caller made.
func (b *Bundle) extra(name string, content []byte) {
	if strings.HasSuffix(name, ".yaml") {
		object, err := yaml.YAMLToJSON(content)
		if err == nil {
			object, err = plainYAML(object)
		}
		if err == nil {
			b.files[name] = object
			return
		}
	}
	b.files[name] = []byte(Redact(string(content)))
}

func (b *Bundle) missing(what string, err error) {
	b.Missing = append(b.Missing, fmt.Sprintf("%s: %v", what, err))
}

// pods collects pods.
func (b *Bundle) pods(ctx context.Context, o Options, namespace, selector string) []corev1.Pod {
	list, err := o.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		b.missing("pods in "+namespace, err)
		return nil
	}
	for _, pod := range list.Items {
		b.add(path.Join("pods", pod.Namespace, pod.Name, "pod.yaml"), plainPod(pod))
	}
	return list.Items
}

// logs collects the logs of pods, also from before the last restart. Those of ready pods come first: their nodes answer.
func (b *Bundle) logs(ctx context.Context, o Options, all []corev1.Pod) {
	ready, others := []corev1.Pod{}, []corev1.Pod{}
	for _, pod := range all {
		if pods.Ready(pod) {
			ready = append(ready, pod)
		} else {
			others = append(others, pod)
		}
	}
	for _, pod := range slices.Concat(ready, others) {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			b.log(ctx, o, pod, status.Name, false)
			if status.RestartCount > 0 {
				b.log(ctx, o, pod, status.Name, true)
			}
		}
	}
}

func (b *Bundle) log(ctx context.Context, o Options, pod corev1.Pod, container string, previous bool) {
	name := path.Join("pods", pod.Namespace, pod.Name, container+".log")
	if previous {
		name = path.Join("pods", pod.Namespace, pod.Name, container+".previous.log")
	}
	text, err := readLog(ctx, o.Kube, pod, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &o.Lines, Timestamps: true})
	if err != nil {
		b.missing(name, err)
		if len(text) == 0 {
			return
		}
	}
	if words := strings.TrimSpace(string(text)); strings.HasPrefix(words, noLog) {
		b.missing(name, errors.New(words))
		return
	}
	b.files[name] = []byte(Redact(string(text)))
}

// readLog returns what came of a log, also with an error.
func readLog(ctx context.Context, kube kubernetes.Interface, pod corev1.Pod, options *corev1.PodLogOptions) (text []byte, err error) {
	one, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	stream, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(one)
	if err == nil {
		defer func() { _ = stream.Close() }()
		text, err = io.ReadAll(io.LimitReader(stream, maxLog))
	}
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return text, errors.New("no time was left")
	case one.Err() != nil:
		return text, fmt.Errorf("not read within %s; does node %s answer?", logTimeout, pod.Spec.NodeName)
	}
	return text, err
}

// noLog is how a kubelet's answer begins, with status 200, if it no longer has the log of a container.
const noLog = "unable to retrieve container logs for "

// objects collects what belongs to the group in its namespace.
func (b *Bundle) objects(ctx context.Context, o Options, selector string) {
	ns, list := o.Group.Namespace, metav1.ListOptions{LabelSelector: selector}
	core := o.Kube.CoreV1()
	keep(b, "services.yaml", func() (runtime.Object, error) { return core.Services(ns).List(ctx, list) })
	keep(b, "persistentvolumeclaims.yaml", func() (runtime.Object, error) { return core.PersistentVolumeClaims(ns).List(ctx, list) })
	keep(b, "configmaps.yaml", func() (runtime.Object, error) { return core.ConfigMaps(ns).List(ctx, list) })
	keep(b, "deployments.yaml", func() (runtime.Object, error) { return o.Kube.AppsV1().Deployments(ns).List(ctx, list) })
	if o.Group.Spec.Backup != nil || o.Group.Spec.InitFromBackup != nil {
		keep(b, "jobs.yaml", func() (runtime.Object, error) { return o.Kube.BatchV1().Jobs(ns).List(ctx, list) })
	}
	if o.Group.Spec.Cache != nil {
		keep(b, "statefulsets.yaml", func() (runtime.Object, error) { return o.Kube.AppsV1().StatefulSets(ns).List(ctx, list) })
	}
	keep(b, "poddisruptionbudgets.yaml", func() (runtime.Object, error) { return o.Kube.PolicyV1().PodDisruptionBudgets(ns).List(ctx, list) })
	for _, service := range []string{v1alpha1.PrimaryService(o.Group.Name), v1alpha1.ReplicasService(o.Group.Name), v1alpha1.CacheService(o.Group.Name)} {
		keep(b, "endpointslices-"+service+".yaml", func() (runtime.Object, error) {
			return o.Kube.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
		})
	}
	keep(b, "events.yaml", func() (runtime.Object, error) { return core.Events(ns).List(ctx, metav1.ListOptions{}) })
}

// clusterObjects collects the operator's own objects, and the nodes.
func (b *Bundle) clusterObjects(ctx context.Context, o Options) {
	keep(b, "operator/deployments.yaml", func() (runtime.Object, error) {
		return o.Kube.AppsV1().Deployments(o.OperatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: o.OperatorSelector})
	})
	keep(b, "operator/leases.yaml", func() (runtime.Object, error) {
		return o.Kube.CoordinationV1().Leases(o.OperatorNamespace).List(ctx, metav1.ListOptions{})
	})
	keep(b, "operator/events.yaml", func() (runtime.Object, error) {
		return o.Kube.CoreV1().Events(o.OperatorNamespace).List(ctx, metav1.ListOptions{})
	})
	keep(b, "nodes.yaml", func() (runtime.Object, error) { return o.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}) })
}

func keep(b *Bundle, name string, read func() (runtime.Object, error)) {
	list, err := read()
	if err == nil {
		err = plainList(list)
	}
	if err != nil {
		b.missing(name, err)
		return
	}
	b.add(name, list)
}

// Write writes a tar.gz with everything in one folder.
func (b *Bundle) Write(w io.Writer) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	for _, name := range b.Names() {
		content := b.files[name]
		header := &tar.Header{Name: path.Join(b.root, name), Mode: 0o600, Size: int64(len(content)), ModTime: b.now}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
