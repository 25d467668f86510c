// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// fetch is one backup on its way to this machine.
type fetch struct {
	backup  *v1alpha1.MysqlBackup
	storage v1alpha1.BackupStorage
	image   string
	timeout time.Duration
	keys    []age.Identity
	out     io.Writer
}

const (
	// program is where the image has it.
	program = "/backup"
	// startTimeout is how long the pod may take to start, and removeTimeout to be asked to go.
	startTimeout  = 3 * time.Minute
	removeTimeout = 10 * time.Second

	// mysqlUser is the one that wrote what is on a volume.
	mysqlUser = int64(999)

	credentialsDir = "/etc/mfg-backup/credentials" //nolint:gosec // a path
	caDir          = "/etc/mfg-backup/ca"
	volumeDir      = "/var/lib/mfg-backup"
	defaultRegion  = "us-east-1"
)

// image is the one that the operator makes backups with.
func (op *Download) image(ctx context.Context, c Cluster) (string, error) {
	if op.Image != "" {
		return op.Image, nil
	}
	list, err := c.Kube().AppsV1().Deployments(op.OperatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: live.Selector})
	if err != nil {
		return "", fmt.Errorf("%w\n  or name the image with the program backup: --image IMAGE", cli.RightsHint(err, "list", "deployments", op.OperatorNamespace))
	}
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			for _, arg := range container.Args {
				if image, is := strings.CutPrefix(arg, "--backup-image="); is && image != "" {
					return image, nil
				}
			}
		}
	}
	return "", cli.Refused("refused: no operator in namespace %s says which image has the program backup\n  name it: --image IMAGE", op.OperatorNamespace)
}

// begin makes a pod that does nothing until it is told.
func (f *fetch) begin(ctx context.Context, c Cluster) (string, error) {
	config, volumes, mounts := f.place()
	text, err := json.Marshal(map[string]any{"bucket": config, "backup": f.backup.Name, "timeoutSeconds": int64(f.timeout / time.Second)})
	if err != nil {
		return "", fmt.Errorf("encode the configuration: %w", err)
	}
	no, yes, user, seconds, grace := false, true, mysqlUser, int64((f.timeout+startTimeout)/time.Second), int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.backup.Namespace, GenerateName: "download-" + f.backup.Name[:min(len(f.backup.Name), 40)] + "-", Labels: map[string]string{
			v1alpha1.LabelName: v1alpha1.NameBackup, v1alpha1.LabelGroup: f.backup.Spec.Group, v1alpha1.LabelBackup: f.backup.Name, v1alpha1.LabelBackupTask: "download",
		}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &seconds, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Volumes:         volumes,
			Containers: []corev1.Container{{
				Name: containerBackup, Image: f.image, Command: []string{program, "idle"}, VolumeMounts: mounts, Env: []corev1.EnvVar{{Name: "MFG_BACKUP_CONFIG", Value: string(text)}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
				},
			}},
		},
	}
	made, err := c.Kube().CoreV1().Pods(f.backup.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: cli.FieldManager})
	if err != nil {
		return "", cli.RightsHint(err, "create", "pods", f.backup.Namespace)
	}
	return made.Name, nil
}

// place is where the backup is, as the program backup reads it (api/wire has the operator's words for the same), and what the pod needs for it.
func (f *fetch) place() (config map[string]any, volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	config = map[string]any{"namespace": f.backup.Namespace, "group": f.backup.Spec.Group}
	mode := int32(0o440)
	secret := func(volume, dir, name string) {
		volumes = append(volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: &mode}}})
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: dir, ReadOnly: true})
	}
	credentials := func(name, prefix string) {
		config["credentialsDir"], config["prefix"] = credentialsDir, prefix
		secret("credentials", credentialsDir, name)
	}
	switch s := f.storage; {
	case s.S3 != nil:
		at := map[string]any{"bucket": s.S3.Bucket, "region": cmp.Or(s.S3.Region, defaultRegion), "endpoint": s.S3.Endpoint}
		if s.S3.ForcePathStyle != nil {
			at["forcePathStyle"] = *s.S3.ForcePathStyle
		}
		config["s3"] = at
		credentials(s.S3.SecretName, s.S3.Prefix)
		if s.S3.CASecretName != "" {
			secret("ca", caDir, s.S3.CASecretName)
			config["caFile"] = caDir + "/" + v1alpha1.BackupCAKey
		}
	case s.GCS != nil:
		config["gcs"] = map[string]any{"bucket": s.GCS.Bucket}
		credentials(s.GCS.SecretName, s.GCS.Prefix)
	case s.Azure != nil:
		config["azure"] = map[string]any{"container": s.Azure.Container}
		credentials(s.Azure.SecretName, s.Azure.Prefix)
	case s.Volume != nil:
		config["folder"] = volumeDir
		volumes = append(volumes, corev1.Volume{Name: "storage", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.Volume.ClaimName}}})
		mounts = append(mounts, corev1.VolumeMount{Name: "storage", MountPath: volumeDir, SubPath: s.Volume.SubPath, ReadOnly: true})
	}
	return config, volumes, mounts
}

// await waits until the pod runs.
func (f *fetch) await(ctx context.Context, c Cluster, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		pod, err := c.Kube().CoreV1().Pods(f.backup.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && pod.Status.Phase == corev1.PodRunning:
			return nil
		case err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded):
			return fmt.Errorf("pod %s ended before it was told anything: %s", name, cmp.Or(pod.Status.Message, pod.Status.Reason, "does the image have the program backup of this version?"))
		case ctx.Err() != nil:
			return fmt.Errorf("pod %s did not start: %s", name, waitsFor(pod))
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// waitsFor says why a pod does not run.
func waitsFor(pod *corev1.Pod) string {
	if pod == nil {
		return "it cannot be seen"
	}
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			return strings.TrimSpace(w.Reason + ": " + w.Message)
		}
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return cond.Message
		}
	}
	return "it is " + string(pod.Status.Phase)
}

// remove has the pod go, also after Ctrl-C; if nobody could say so, its deadline ends it.
func (f *fetch) remove(ctx context.Context, c Cluster, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	_ = c.Kube().CoreV1().Pods(f.backup.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// errNotAsSaid: what came is not what the manifest says.
var errNotAsSaid = errors.New("what came is not what its manifest says: it was damaged on the way or in the storage, or tampered with")
