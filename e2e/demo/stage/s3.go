// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// Where S3 servers live, and how their Secrets are called in the namespaces that use them.
const (
	S3Namespace   = "lab-s3"
	S3Bucket      = "backups"
	S3Credentials = "s3-credentials"
	S3CA          = "s3-ca"

	s3Port    = 9000
	s3Account = "MFGLABACCOUNT"
	s3UpLimit = 2 * time.Minute
)

// S3Options say which server is wanted. Servers of different names have different objects.
type S3Options struct {
	Name string
	// Slowable lets SetRate bound how fast it takes what is sent to it.
	Slowable bool
	// Size is how much it may store; zero: 4 GiB.
	Size resource.Quantity
	// Memory keeps everything in memory, so that the storage is full at Size and says so. Dir does not find such objects.
	Memory bool
}

// S3 is an S3 server in the lab, under TLS. Its objects go with its pod.
type S3 struct {
	stage   *Stage
	options S3Options
	ca      []byte
	secret  string
}

// StartS3 starts an S3 server, or takes the one of that name, and waits until it listens.
func (s *Stage) StartS3(ctx context.Context, o S3Options) (*S3, error) {
	if err := s.Lab.BuildS3Image(ctx, s.Repo); err != nil {
		return nil, err
	}
	if err := s.Namespace(ctx, S3Namespace); err != nil {
		return nil, err
	}
	authority, err := s.labAuthority(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.ensureSecretIn(ctx, S3Namespace, o.Name+"-tls", func() (map[string][]byte, error) {
		return authority.issue(ServiceNames(S3Namespace, o.Name))
	}); err != nil {
		return nil, err
	}
	account, err := s.ensureSecretIn(ctx, S3Namespace, o.Name+"-account", func() (map[string][]byte, error) {
		return s3Keys(rand.Text() + rand.Text()), nil
	})
	if err != nil {
		return nil, err
	}
	sum, err := s.imageSum("s3")
	if err != nil {
		return nil, err
	}
	server := &S3{stage: s, options: o, ca: authority.pem, secret: string(account.Data[v1alpha1.BackupSecretKey])}
	if err := server.apply(ctx, sum); err != nil {
		return nil, err
	}
	_, err = s.Lab.Kubectl(ctx, "-n", S3Namespace, "rollout", "status", "deployment/"+o.Name, "--timeout="+s3UpLimit.String())
	return server, err
}

func s3Keys(secret string) map[string][]byte {
	return map[string][]byte{v1alpha1.BackupAccessKeyID: []byte(s3Account), v1alpha1.BackupSecretKey: []byte(secret)}
}

func (s *S3) apply(ctx context.Context, sum string) error {
	labels := map[string]string{"app": s.options.Name}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: S3Namespace, Name: s.options.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, s.stage.Kube, service, func() error {
		service.Spec.Selector = labels
		service.Spec.Ports = []corev1.ServicePort{{Name: "s3", Port: s3Port, TargetPort: intstr.FromInt32(s3Port)}}
		return nil
	}); err != nil {
		return fmt.Errorf("make Service %s: %w", s.options.Name, err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: S3Namespace, Name: s.options.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, s.stage.Kube, deployment, func() error {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Annotations = map[string]string{annotationImages: sum}
		deployment.Spec.Template.Spec = s.pod()
		return nil
	}); err != nil {
		return fmt.Errorf("make Deployment %s: %w", s.options.Name, err)
	}
	return nil
}

// pod runs on the hub, so that no fault of a site takes it along.
func (s *S3) pod() corev1.PodSpec {
	size := s.options.Size
	if size.IsZero() {
		size = resource.MustParse("4Gi")
	}
	medium := corev1.StorageMediumDefault
	if s.options.Memory {
		medium = corev1.StorageMediumMemory
	}
	secret := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.options.Name + "-" + name}}
	}
	args := []string{"--address=:" + strconv.Itoa(s3Port), "--buckets=" + S3Bucket}
	if s.options.Slowable {
		args = append(args, "--rate-file=/data/rate")
	}
	return corev1.PodSpec{
		NodeSelector:                 map[string]string{"kubernetes.io/hostname": cluster.HubName},
		AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To(int64(5)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)), FSGroup: ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "s3", Image: cluster.S3Image, ImagePullPolicy: corev1.PullNever,
			Args: args, Ports: []corev1.ContainerPort{{Name: "s3", ContainerPort: s3Port}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(s3Port)}},
				PeriodSeconds: 1, FailureThreshold: 3,
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: "/data"},
				{Name: "account", MountPath: "/etc/s3/credentials", ReadOnly: true},
				{Name: "tls", MountPath: "/etc/s3/tls", ReadOnly: true},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: &size}}},
			{Name: "account", VolumeSource: secret("account")},
			{Name: "tls", VolumeSource: secret("tls")},
		},
	}
}

// Storage is the server as a profile or a restore names it, with a prefix of keys.
func (s *S3) Storage(prefix string) v1alpha1.BackupStorage { return S3Storage(s.options.Name, prefix) }

// S3Storage is the server of that name, which need not run yet.
func S3Storage(name, prefix string) v1alpha1.BackupStorage {
	return v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{
		Bucket: S3Bucket, Prefix: prefix, Region: "us-east-1", Endpoint: fmt.Sprintf("https://%s.%s.svc:%d", name, S3Namespace, s3Port),
		SecretName: S3Credentials, CASecretName: S3CA,
	}}
}

// Grant puts the Secrets that Storage names into a namespace, which is made if need be.
func (s *S3) Grant(ctx context.Context, namespace string) error {
	return s.grant(ctx, namespace, s.secret)
}

// GrantWrong is Grant with a key that no server takes.
func (s *S3) GrantWrong(ctx context.Context, namespace string) error {
	return s.grant(ctx, namespace, wrongKey)
}

const wrongKey = "not-the-key-of-this-account"

// WrongS3Keys are credentials that no server takes.
func WrongS3Keys() map[string][]byte { return s3Keys(wrongKey) }

func (s *S3) grant(ctx context.Context, namespace, key string) error {
	if err := s.stage.Namespace(ctx, namespace); err != nil {
		return err
	}
	return errors.Join(
		s.stage.PutSecret(ctx, namespace, S3Credentials, s3Keys(key)),
		s.stage.PutSecret(ctx, namespace, S3CA, s.CA()),
	)
}

// Keys are the access key that the server takes, and CA the authority of its certificate, as Secrets hold them.
func (s *S3) Keys() map[string][]byte { return s3Keys(s.secret) }

// CA is described at Keys.
func (s *S3) CA() map[string][]byte { return map[string][]byte{v1alpha1.BackupCAKey: s.ca} }

// PutSecret makes a Secret, or gives the one that is there this content.
func (s *Stage) PutSecret(ctx context.Context, namespace, name string, data map[string][]byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, s.Kube, secret, func() error {
		secret.Data = maps.Clone(data)
		return nil
	}); err != nil {
		return fmt.Errorf("write Secret %s: %w", name, err)
	}
	return nil
}

// PutIdentity puts an age identity into a namespace, as spec.backup.profiles[].encryption.identitySecretName wants it.
func (s *Stage) PutIdentity(ctx context.Context, namespace, name, identity string) error {
	return s.PutSecret(ctx, namespace, name, map[string][]byte{v1alpha1.BackupIdentityKey: []byte(identity + "\n")})
}

// Dir is the folder on this machine with the objects of the bucket, as files under their keys.
func (s *S3) Dir(ctx context.Context) (string, error) {
	data, err := s.volume(ctx)
	return filepath.Join(data, "objects", S3Bucket), err
}

// SetRate bounds what all clients together send, in bytes a second, within half a second; 0 takes the bound away.
func (s *S3) SetRate(ctx context.Context, rate int64) error {
	root, err := s.root(ctx)
	if err != nil {
		return err
	}
	if !s.options.Slowable {
		return fmt.Errorf("the S3 server %s was not started to be slowed", s.options.Name)
	}
	// Renamed, so that it is never read half.
	file := filepath.Join(root, "data/rate")
	if err := os.WriteFile(file+".new", []byte(strconv.FormatInt(rate, 10)+"\n"), 0o644); err != nil {
		return fmt.Errorf("set the rate of %s: %w", s.options.Name, err)
	}
	return os.Rename(file+".new", file)
}

// volume is the server's volume on this machine.
func (s *S3) volume(ctx context.Context) (string, error) {
	p, err := s.livePod(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Join(s.stage.Lab.Dir(), "nodes", p.Spec.NodeName, "kubelet", "pods", string(p.UID), "volumes", "kubernetes.io~empty-dir", "data"), nil
}

func (s *S3) livePod(ctx context.Context) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.stage.Kube.List(ctx, &pods, client.InNamespace(S3Namespace), client.MatchingLabels{"app": s.options.Name}); err != nil {
		return nil, fmt.Errorf("list pods of the S3 server: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && live(*p) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("the S3 server %s has no pod", s.options.Name)
}

// s3Program is the server in its pod.
var s3Program = Program{"s3", "s3"}

// Kill sends SIGKILL to the server. The kubelet starts it again, with the objects that it has.
func (s *S3) Kill(ctx context.Context) error {
	p, err := s.livePod(ctx)
	if err != nil {
		return err
	}
	return KillIn(p, s3Program)
}

// Remove ends the server. Its objects go with it.
func (s *S3) Remove(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: S3Namespace, Name: s.options.Name}
	return errors.Join(
		client.IgnoreNotFound(s.stage.Kube.Delete(ctx, &appsv1.Deployment{ObjectMeta: meta})),
		client.IgnoreNotFound(s.stage.Kube.Delete(ctx, &corev1.Service{ObjectMeta: meta})),
	)
}
