// SPDX-License-Identifier: Apache-2.0

// Package backupjob renders the Jobs of backups: those that make, verify and remove them, and that remove what killed attempts left. It is pure.
// docs/reference/backup-job.md tells what the program in them is told and says.
package backupjob

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
)

// Where things lie in the pod of a backup, beside what BackupStorage puts there.
const (
	accountDir = "/etc/mfg-backup/account"
	tlsDir     = "/etc/mfg-backup/tls"
	program    = render.BinDir + "/backup"
	scratchDir = "/scratch"
	// scratchData is not the mount itself: the program puts its mark beside the directory that it fills.
	scratchData = scratchDir + "/data"

	volumeBin     = "bin"
	volumeRun     = "run"
	volumeTmp     = "tmp"
	volumeScratch = "scratch"
	volumeAccount = "backup-account"
	volumeTLS     = "backup-tls"
	volumeKeyring = "keyring"
	volumeConfig  = "config"
)

// Container is the container of a pod whose termination message is the outcome.
const Container = "backup"

const (
	// backupGracePeriod is 10 s to end the sessions on the site and 30 s to remove what was stored, and something to spare.
	backupGracePeriod int64 = 50
	// backupStartPeriod is what a Job has beside the timeout of the program: to be scheduled, for images, and to end.
	backupStartPeriod = 10 * time.Minute
	defaultTimeout    = 2 * time.Hour
	// removalTimeout bounds the Jobs that only remove something.
	removalTimeout = 15 * time.Minute
	// jobKept is how long a finished Job stays, in seconds; also from one sweep of a profile to the next.
	jobKept        int32 = 24 * 3600
	jobRemovedKept int32 = 3600

	backupRunRoom   = "64Mi"
	backupTmpRoom   = "1Gi"
	backupTmpMemory = "256Mi"
	backupBinRoom   = "512Mi"
	defaultVolume   = "10Gi"
)

// Job is what a Job depends on.
type Job struct {
	Group   *v1alpha1.MysqlFailoverGroup
	Profile v1alpha1.BackupProfile
	Install render.Install
	// Account is the account of MySQL by which a site is copied.
	Account string
	// Backup is the MysqlBackup; nil for a sweep, which is the group's.
	Backup *v1alpha1.MysqlBackup
	// Active is the site that takes writes, which is asked how its events are; empty if there is none.
	Active string
	// Site is the one that is copied; of a verification the one whose configuration of the keyring component is used.
	Site    v1alpha1.Site
	Epoch   int64
	Attempt int32
}

// Method is how the data of the backup is copied.
func (b Job) Method() v1alpha1.BackupMethod {
	for _, m := range []v1alpha1.BackupMethod{b.Backup.Spec.Method, b.Profile.Method} {
		if m != "" {
			return m
		}
	}
	return v1alpha1.BackupLogical
}

// Given is how long the program of a Job may take; zero if the Job does not say.
func Given(job *batchv1.Job) time.Duration {
	if job == nil || job.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return max(0, time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second-backupStartPeriod)
}

// Timeout is how long one attempt may take, without the time until it starts.
func (b Job) Timeout() time.Duration {
	if b.Profile.Timeout.Duration <= 0 {
		return defaultTimeout
	}
	return b.Profile.Timeout.Duration
}

// Make copies a site.
func (b Job) Make() *batchv1.Job {
	p := b.pod("make", render.BackupAccess{})
	c := &p.config
	c.Backup, c.GroupUID, c.Profile, c.Site, c.Epoch = b.Backup.Name, string(b.Group.UID), b.Profile.Name, b.Site.Name, b.Epoch
	c.Method, c.TimeoutSeconds = string(b.Method()), int64(b.Timeout()/time.Second)
	c.NotBefore = b.madeAt()
	if e := b.Profile.Encryption; e != nil {
		c.Recipients = slices.Clone(e.Recipients)
	}
	c.Source = wire.BackupSource{
		Host: render.Host(b.Group.Namespace, b.Group.Name, b.Site.Name), Port: wire.PortMySQL, User: b.Account,
		PasswordFile: path.Join(accountDir, v1alpha1.AccountBackup),
	}
	if b.Active != "" && b.Active != b.Site.Name {
		c.Source.ActiveHost = render.Host(b.Group.Namespace, b.Group.Name, b.Active)
	}
	p.mount(render.SecretVolume(volumeAccount, v1alpha1.AccountsSecret(b.Group.Name), v1alpha1.AccountBackup, v1alpha1.AccountBackup), accountDir)
	if tls := b.Group.Spec.TLS; b.Group.TLSVerified() {
		c.Source.CAFile = path.Join(tlsDir, "ca.crt")
		p.mount(render.SecretVolume(volumeTLS, tls.Secret(b.Group.Name), "ca.crt", "ca.crt"), tlsDir)
	}
	p.server()
	if b.Method() == v1alpha1.BackupPhysical {
		p.scratch(b.Profile.Scratch)
		p.keyring()
	}
	return p.job(v1alpha1.BackupJob(b.Backup.Name), v1alpha1.TaskBackup)
}

// Verify restores a backup into a scratch server.
func (b Job) Verify() *batchv1.Job {
	access := render.BackupAccess{ReadOnly: true}
	if e := b.Profile.Encryption; e != nil {
		access.IdentitySecret = e.IdentitySecretName
	}
	p := b.pod("verify", access)
	p.config.Backup, p.config.TimeoutSeconds = b.Backup.Name, int64(b.Timeout()/time.Second)
	p.config.Replay = b.replays()
	p.server()
	var room *v1alpha1.BackupScratch
	if v := b.Profile.Verification; v != nil {
		p.config.Query, room = v.Query, v.Scratch
	}
	if room == nil {
		room = b.Profile.Scratch
	}
	p.scratch(room)
	p.keyring()
	return p.job(v1alpha1.VerifyJob(b.Backup.Name), v1alpha1.TaskVerify)
}

// replays is true if a verification goes on to the end of the archive of binary logs: if there is one in the same storage.
func (b Job) replays() bool {
	spec, v := b.Group.Spec.Backup, b.Profile.Verification
	if spec == nil || spec.PITR == nil || !spec.PITR.Enabled || spec.PITR.Profile != b.Profile.Name {
		return false
	}
	return v == nil || v.Replay == nil || *v.Replay
}

// Delete removes a backup from the storage.
func (b Job) Delete() *batchv1.Job {
	p := b.pod("delete", render.BackupAccess{})
	p.config.Backup, p.config.TimeoutSeconds = b.Backup.Name, int64(removalTimeout/time.Second)
	p.config.GroupUID = string(b.Group.UID)
	if b.Backup.Status.MySQLVersion == "" { // it was never complete, so what is complete there may be another's
		p.config.NotBefore = b.madeAt()
	}
	return p.job(v1alpha1.DeleteJob(b.Backup.Name), v1alpha1.TaskDelete)
}

// Sweep removes what killed attempts of the group left in the storage of the profile.
func (b Job) Sweep() *batchv1.Job {
	p := b.pod("sweep", render.BackupAccess{})
	// What may still be at work is younger than that.
	p.config.TimeoutSeconds, p.config.OlderThanSeconds = int64(removalTimeout/time.Second), int64((b.longest()+time.Hour)/time.Second)
	p.config.GroupUID = string(b.Group.UID)
	return p.job(v1alpha1.SweepJob(b.Group.Name, b.Profile.Name), v1alpha1.TaskSweep)
}

// longest is how long an attempt of any profile of the group may take (I23): profiles share a place, and what the sweep of one takes away would be missing
// in the backup of another that is not complete yet.
func (b Job) longest() time.Duration {
	longest := b.Timeout()
	if spec := b.Group.Spec.Backup; spec != nil {
		for _, p := range spec.Profiles {
			longest = max(longest, Job{Profile: p}.Timeout())
		}
	}
	return longest
}

// madeAt is when the MysqlBackup came to be; nil if that is not known.
func (b Job) madeAt() *time.Time {
	if b.Backup.CreationTimestamp.IsZero() {
		return nil
	}
	at := b.Backup.CreationTimestamp.UTC()
	return &at
}

// backupPod is a pod on its way.
type backupPod struct {
	b       Job
	command string
	config  wire.BackupConfig
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
}

func (b Job) pod(command string, access render.BackupAccess) *backupPod {
	access.Storage, access.Namespace, access.Group = b.Profile.Storage, b.Group.Namespace, b.Group.Name
	place := render.BackupStorage(access)
	p := &backupPod{b: b, command: command, volumes: place.Volumes, mounts: place.Mounts}
	p.config.Bucket, p.config.IdentityFile, p.config.ResultFile = place.Bucket, place.IdentityFile, corev1.TerminationMessagePathDefault
	p.mount(onDisk(volumeBin, resource.MustParse(backupBinRoom)), render.BinDir)
	return p
}

// onDisk is a volume of the node with a bound.
func onDisk(name string, limit resource.Quantity) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}
}

// mount adds a volume and where it is seen: Secrets and the program can only be read.
func (p *backupPod) mount(v corev1.Volume, dir string) {
	p.volumes = append(p.volumes, v)
	p.mounts = append(p.mounts, corev1.VolumeMount{Name: v.Name, MountPath: dir, ReadOnly: v.Secret != nil || v.Name == volumeBin})
}

// encrypted is true if nothing of the group's data may be on a disk in the clear.
func (b Job) encrypted() bool {
	e := b.Group.Spec.EncryptionAtRest
	return e != nil && e.Enabled
}

// server adds what the programs of MySQL need: what must not be on a disk is in memory.
func (p *backupPod) server() {
	p.config.Server.RunDir, p.config.Server.TmpDir = render.RunDir, render.TmpDir
	p.mount(render.Memory(volumeRun, backupRunRoom), render.RunDir)
	tmp := render.Memory(volumeTmp, backupTmpMemory)
	if !p.b.encrypted() {
		tmp = onDisk(volumeTmp, resource.MustParse(backupTmpRoom))
	}
	p.mount(tmp, render.TmpDir)
}

// scratch adds the volume that holds a copy of the data for as long as the pod is there.
func (p *backupPod) scratch(s *v1alpha1.BackupScratch) {
	p.config.Server.Dir = scratchData
	if s == nil {
		room := p.b.Site.Storage.Size.DeepCopy()
		if room.IsZero() {
			room = resource.MustParse(defaultVolume)
		}
		p.mount(onDisk(volumeScratch, room), scratchDir)
		return
	}
	p.mount(corev1.Volume{Name: volumeScratch, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			// Without the labels of a group: nothing of ours may take it for the volume of a site.
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelName: v1alpha1.NameBackup, v1alpha1.LabelInstance: p.b.Group.Name}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: s.StorageClassName,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: s.Size.DeepCopy()}},
			},
		},
	}}}, scratchDir)
}

// keyring gives the scratch server of an encrypted group a keyring of its own, in memory, by the component as a site has it.
func (p *backupPod) keyring() {
	if !p.b.encrypted() {
		return
	}
	dir, files := render.KeyringFiles(p.b.Group)
	p.config.Server.KeyringFile = path.Join(dir, render.KeyringFile)
	p.mount(render.Memory(volumeKeyring, render.KeyringLimit), dir)
	config := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.ConfigName(p.b.Group.Name, p.b.Site.Name)}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		key := files[file]
		config.Items = append(config.Items, corev1.KeyToPath{Key: key, Path: key})
		p.mounts = append(p.mounts, corev1.VolumeMount{Name: volumeConfig, MountPath: file, SubPath: key, ReadOnly: true})
	}
	p.volumes = append(p.volumes, corev1.Volume{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &config}})
}

// job is the Job: one pod, tried once. Whether and where it is tried again is decided outside of it.
func (p *backupPod) job(name, task string) *batchv1.Job {
	kept := jobKept
	if task == v1alpha1.TaskDelete {
		kept = jobRemovedKept
	}
	timeout := time.Duration(p.config.TimeoutSeconds)*time.Second + backupStartPeriod
	meta := metav1.ObjectMeta{Name: name, Namespace: p.b.Group.Namespace, Labels: p.labels(task), OwnerReferences: p.owner()}
	meta.Labels[v1alpha1.LabelGroup] = p.b.Group.Name
	if p.b.Attempt > 0 {
		meta.Annotations = map[string]string{v1alpha1.AnnotationBackupAttempt: strconv.Itoa(int(p.b.Attempt))}
	}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(timeout / time.Second)), TTLSecondsAfterFinished: &kept,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: p.labels(task), Annotations: map[string]string{render.DefaultContainer: Container}},
				Spec:       p.spec(),
			},
		},
	}
}

// labels are those of the pod. It has not that of the group: whatever finds the pods of a group by it must never find this one, and only
// the operator may make pods that have it.
func (p *backupPod) labels(task string) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelName: v1alpha1.NameBackup, v1alpha1.LabelInstance: p.b.Group.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelBackupProfile: p.b.Profile.Name, v1alpha1.LabelBackupTask: task,
	}
	if p.b.Backup != nil {
		labels[v1alpha1.LabelBackup] = p.b.Backup.Name
	}
	return labels
}

func (p *backupPod) owner() []metav1.OwnerReference {
	if p.b.Backup == nil {
		return []metav1.OwnerReference{*metav1.NewControllerRef(p.b.Group, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))}
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(p.b.Backup, v1alpha1.GroupVersion.WithKind("MysqlBackup"))}
}

func (p *backupPod) spec() corev1.PodSpec {
	install := corev1.Container{
		Name: render.ContainerInstall, Image: p.b.Install.BackupImage, ImagePullPolicy: p.b.Install.BackupPullPolicy,
		Args: []string{"install", program}, Resources: *p.b.Profile.Resources.DeepCopy(), SecurityContext: render.ContainerSecurity(),
		VolumeMounts: []corev1.VolumeMount{{Name: volumeBin, MountPath: render.BinDir}},
	}
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(backupGracePeriod),
		SecurityContext:               render.PodSecurity(p.b.Install),
		ImagePullSecrets:              slices.Clone(p.b.Group.Spec.ImagePullSecrets),
		InitContainers:                []corev1.Container{install},
		Containers: []corev1.Container{{
			Name: Container, Image: p.b.Group.Spec.Image, ImagePullPolicy: p.b.Group.Spec.ImagePullPolicy,
			Command: []string{program, p.command}, Env: []corev1.EnvVar{{Name: wire.EnvBackupConfig, Value: p.config.Text()}},
			Resources: *p.b.Profile.Resources.DeepCopy(), SecurityContext: render.ContainerSecurity(),
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			VolumeMounts: p.mounts,
		}},
		Volumes: p.volumes,
	}
	p.b.place(&spec)
	return spec
}
