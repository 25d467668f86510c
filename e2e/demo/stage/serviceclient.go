// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// WriterImage is the image of the test writer.
const WriterImage = "localhost/mfg-e2e:dev"

// ServiceWriter is a pod on the hub that writes through the group's primary Service, as an application does.
type ServiceWriter struct {
	group *Group
	pod   string
	dir   string
}

// StartServiceWriter starts it and waits for its first acknowledged row.
func (g *Group) StartServiceWriter(ctx context.Context, run, dir string) (*ServiceWriter, error) {
	w := &ServiceWriter{group: g, pod: "writer-" + run, dir: dir}
	if err := g.Kube.Create(ctx, w.manifest(run)); err != nil {
		return nil, fmt.Errorf("start writer: %w", err)
	}
	return w, w.AwaitCommit(ctx, time.Minute)
}

func (w *ServiceWriter) manifest(run string) *corev1.Pod {
	g := w.group
	args := []string{
		"run", "--id=svc-" + run, "--group=" + g.Name, "--table=" + appTable, "--user=" + appUser,
		"--addr=" + v1alpha1.PrimaryService(g.Name) + ":3306", "--password-file=/etc/app/password",
		"--concurrency=4", "--rate=200",
	}
	sources := []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: g.appSecret()},
	}}}
	if g.ca != nil {
		args = append(args, "--tls-ca=/etc/app/ca.crt")
		sources = append(sources, g.certificates("ca.crt"))
	}
	return w.podOf(append(args, g.WriterArgs...), sources)
}

// certificates are files of the group's Secret with its certificate.
func (g *Group) certificates(files ...string) corev1.VolumeProjection {
	var items []corev1.KeyToPath
	for _, f := range files {
		items = append(items, corev1.KeyToPath{Key: f, Path: f})
	}
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: g.tlsSecret()}, Items: items,
	}}
}

// podOf is a pod on the hub that runs the writer with arguments, and finds files in /etc/app.
func (w *ServiceWriter) podOf(args []string, sources []corev1.VolumeProjection) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Labels = w.group.Namespace, w.pod, map[string]string{"app": "writer"}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"kubernetes.io/hostname": cluster.HubName},
		AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To(int64(5)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "writer", Image: WriterImage, ImagePullPolicy: corev1.PullNever, Args: args,
			VolumeMounts: []corev1.VolumeMount{{Name: "app", MountPath: "/etc/app", ReadOnly: true}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{{Name: "app", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources},
		}}},
	}
	return pod
}

// log returns the last lines of the journal, all of it for 0.
func (w *ServiceWriter) log(ctx context.Context, lines int64) ([]byte, error) {
	o := &corev1.PodLogOptions{}
	if lines > 0 {
		o.TailLines = &lines
	}
	stream, err := w.group.Core.CoreV1().Pods(w.group.Namespace).GetLogs(w.pod, o).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", w.pod, err)
	}
	defer func() { _ = stream.Close() }()
	raw, err := io.ReadAll(stream)
	if err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", w.pod, err)
	}
	return raw, nil
}

// AwaitCommit waits until a row that is sent from now on is acknowledged.
func (w *ServiceWriter) AwaitCommit(ctx context.Context, limit time.Duration) error {
	from := load.Now()
	return Poll(ctx, limit, "a row to go through the Service", func(ctx context.Context) error {
		raw, err := w.log(ctx, 20)
		if err != nil {
			return err
		}
		var last journal.Entry
		for line := range bytes.Lines(raw) {
			if err := json.Unmarshal(line, &last); err != nil {
				return fmt.Errorf("decode journal: %w", err)
			}
			if last.Kind == journal.KindAck && last.Start >= int64(from) {
				return nil
			}
		}
		return fmt.Errorf("last entry of the writer: %s %s", last.Kind, last.Reason)
	})
}

// Stop ends the writer in good order and returns its journal.
func (w *ServiceWriter) Stop(ctx context.Context) (journal.Journal, error) {
	g := w.group
	// The writer is process 1 of its container. It stops writing, closes its journal and ends, and with it everything in
	// the container: the command that told it to may be killed before it can say that it did. What counts is how the
	// pod ended.
	telling, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, told := g.Lab.Kubectl(telling, "-n", g.Namespace, "exec", w.pod, "--", "/proc/1/exe", "stop")
	if err := Poll(ctx, time.Minute, "the writer to end", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: w.pod}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	}); err != nil {
		return journal.Journal{}, errors.Join(err, told)
	}
	raw, err := w.log(ctx, 0)
	if err != nil {
		return journal.Journal{}, err
	}
	if err := os.WriteFile(filepath.Join(w.dir, w.pod+".jsonl"), raw, 0o600); err != nil {
		return journal.Journal{}, fmt.Errorf("keep journal: %w", err)
	}
	j, err := journal.Read(bytes.NewReader(raw))
	if err == nil && !j.Complete {
		err = errors.New("the journal of the writer is not whole")
	}
	return j, errors.Join(err, w.Remove(ctx))
}

// Remove takes the pod away, in whatever state it is.
func (w *ServiceWriter) Remove(ctx context.Context) error {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = w.group.Namespace, w.pod
	if err := w.group.Kube.Delete(ctx, pod); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove writer: %w", err)
	}
	return nil
}
