// SPDX-License-Identifier: Apache-2.0

// Package reader runs a pod that reads the storage of a group's backups with the program `backup`: it reaches what this machine may not,
// such as volumes, and the libraries of object storage stay out of the plugin. The pod does nothing until an exec starts it, so that its
// log holds nothing that it reads, and its arguments and environment hold no question.
package reader

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// Program is where the image has it, and Container what runs it.
const (
	Program   = "/backup"
	Container = "backup"
)

const (
	// startTimeout is how long the pod may take to start, and removeTimeout bounds the request to delete it.
	startTimeout  = 3 * time.Minute
	removeTimeout = 10 * time.Second

	credentialsDir = "/etc/mfg-backup/credentials" //nolint:gosec // a path
	caDir          = "/etc/mfg-backup/ca"
	identityDir    = "/etc/mfg-backup/identity"
	volumeDir      = "/var/lib/mfg-backup"
	defaultRegion  = "us-east-1"
)

// Pod is one pod that reads.
type Pod struct {
	Kube kubernetes.Interface
	// Namespace is the pod's, which has the Secrets. FromNamespace and Group say whose place in the storage to read.
	Namespace, FromNamespace, Group string
	// Task names its purpose: the pod's name begins with it and Name. Labels are added.
	Task, Name string
	Labels     map[string]string
	Storage    v1alpha1.BackupStorage
	// IdentitySecret is a Secret with the age identity; empty for none.
	IdentitySecret string
	// Config is more of the program's configuration.
	Config  map[string]any
	Install Install
	// PullSecrets are those of the group, for an image of a private registry.
	PullSecrets []corev1.LocalObjectReference
	// Memory is its limit; empty for 256Mi.
	Memory string
	// Timeout is how long all of it may take.
	Timeout time.Duration
}

// Begin makes a pod that does nothing until an exec starts it.
func (p *Pod) Begin(ctx context.Context) (string, error) {
	config, volumes, mounts := p.place()
	whole := map[string]any{"bucket": config, "timeoutSeconds": int64(p.Timeout / time.Second)}
	maps.Copy(whole, p.Config)
	if p.IdentitySecret != "" {
		whole["identityFile"] = identityDir + "/" + v1alpha1.BackupIdentityKey
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return "", fmt.Errorf("encode the configuration: %w", err)
	}
	no, yes, seconds, grace := false, true, int64((p.Timeout+startTimeout)/time.Second), int64(1)
	user := p.Install.user()
	// Not the label of the group: a search for its pods must not find this one, and with podProtection only the operator may make pods that have it.
	labels := map[string]string{v1alpha1.LabelName: v1alpha1.NameBackup, v1alpha1.LabelInstance: p.Group, v1alpha1.LabelBackupTask: p.Task}
	maps.Copy(labels, p.Labels)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: p.Task + "-" + p.Name[:min(len(p.Name), 40)] + "-", Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &seconds, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			SecurityContext:  &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: user, RunAsGroup: user, FSGroup: user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			ImagePullSecrets: p.PullSecrets,
			Volumes:          volumes,
			Containers: []corev1.Container{{
				Name: Container, Image: p.Install.Image, Command: []string{Program, "idle"}, VolumeMounts: mounts, Env: []corev1.EnvVar{{Name: "MFG_BACKUP_CONFIG", Value: string(text)}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(cmp.Or(p.Memory, "256Mi"))},
				},
			}},
		},
	}
	made, err := p.Kube.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: cli.FieldManager})
	if err != nil {
		return "", cli.RightsHint(err, "create", "pods", p.Namespace)
	}
	return made.Name, nil
}

// place returns where the backup is, as the program backup reads it (api/wire has the operator's words for the same), and what the pod needs for it.
func (p *Pod) place() (config map[string]any, volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	config = map[string]any{"namespace": cmp.Or(p.FromNamespace, p.Namespace), "group": p.Group}
	mode := int32(0o440)
	secret := func(volume, dir, name string) {
		volumes = append(volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: &mode}}})
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: dir, ReadOnly: true})
	}
	credentials := func(name, prefix string) {
		config["credentialsDir"], config["prefix"] = credentialsDir, prefix
		secret("credentials", credentialsDir, name)
	}
	switch s := p.Storage; {
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
	if p.IdentitySecret != "" {
		secret("identity", identityDir, p.IdentitySecret)
	}
	return config, volumes, mounts
}

// Await waits until the pod runs.
func (p *Pod) Await(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	// The last one that was seen says why it does not run: the question that the deadline ends has no answer.
	var last *corev1.Pod
	for {
		pod, err := p.Kube.CoreV1().Pods(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			last = pod
		}
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
			return fmt.Errorf("pod %s did not start: %w", name, err)
		case err == nil && pod.Status.Phase == corev1.PodRunning:
			return nil
		case err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded):
			return fmt.Errorf("pod %s ended before it was told anything: %s", name, cmp.Or(pod.Status.Message, pod.Status.Reason, "does the image have the program backup of this version?"))
		case ctx.Err() != nil:
			return fmt.Errorf("pod %s did not start: %s", name, waitsFor(last))
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

// Remove deletes the pod, also after Ctrl-C; if that fails, its deadline ends it.
func (p *Pod) Remove(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	_ = p.Kube.CoreV1().Pods(p.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
}
