// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// needed is a Secret with the keys that a restore reads.
type needed struct {
	name, what string
	keys       []string
}

// secretsOf are the Secrets that a restore reads, in the namespace of the new group.
func secretsOf(p *planned) []needed {
	var all []needed
	switch s := p.storage; {
	case s.S3 != nil:
		all = append(all, needed{s.S3.SecretName, "credentials of the storage", []string{v1alpha1.BackupAccessKeyID, v1alpha1.BackupSecretKey}})
		if s.S3.CASecretName != "" {
			all = append(all, needed{s.S3.CASecretName, "certificates that the storage is checked against", []string{v1alpha1.BackupCAKey}})
		}
	case s.GCS != nil:
		all = append(all, needed{s.GCS.SecretName, "credentials of the storage", []string{v1alpha1.BackupGCSCredentials}})
	case s.Azure != nil:
		all = append(all, needed{s.Azure.SecretName, "credentials of the storage", []string{v1alpha1.BackupAccountName, v1alpha1.BackupAccountKey}})
	}
	if p.identity != "" {
		all = append(all, needed{p.identity, "age identity", []string{v1alpha1.BackupIdentityKey}})
	}
	if tls := p.group.Spec.TLS; tls != nil && tls.IssuerRef == nil && !tls.Made() {
		all = append(all, needed{tls.SecretName, "certificate of MySQL", []string{"tls.crt", "tls.key", "ca.crt"}})
	}
	return all
}

// prerequisites looks at what a restore needs, before anything begins. It names what it may not see, and continues without.
func (op *Op) prerequisites(ctx context.Context, c Cluster, p *planned) error {
	for _, n := range secretsOf(p) {
		if err := op.checkSecret(ctx, c, p, n); err != nil {
			return err
		}
	}
	if v := p.storage.Volume; v != nil {
		_, err := c.Kube().CoreV1().PersistentVolumeClaims(op.Namespace).Get(ctx, v.ClaimName, metav1.GetOptions{})
		if err := op.judge(p, err, "PersistentVolumeClaim "+v.ClaimName, "the backup is read from it: make it there, or restore in the namespace that has it"); err != nil {
			return err
		}
	}
	for _, pull := range p.group.Spec.ImagePullSecrets {
		if err := op.checkPull(ctx, c, p, pull.Name); err != nil {
			return err
		}
	}
	for _, class := range classesOf(&p.group.Spec) {
		if err := op.checkClass(ctx, c, p, class); err != nil {
			return err
		}
	}
	if tls := p.group.Spec.TLS; tls != nil && tls.IssuerRef == nil && !tls.Made() {
		p.say("See to it", "the certificate in Secret %s must name the Services of %s: mysql-%s-primary.%s.svc and the others of docs/install.md", tls.SecretName, op.Group, op.Group, op.Namespace)
	}
	return nil
}

// checkPull notes a Secret for images that is not there. The kubelet pulls without it, and nodes may not need it.
func (op *Op) checkPull(ctx context.Context, c Cluster, p *planned, name string) error {
	_, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.say("See to it", "there is no Secret %s in namespace %s, which spec.imagePullSecrets names: if the nodes cannot pull images without it, make it: "+
			"kubectl create secret docker-registry %s -n %s --from-file=.dockerconfigjson=FILE", name, op.Namespace, name, op.Namespace)
		return nil
	}
	return op.judge(p, err, "Secret "+name, "")
}

// storageClass is one that a group names, with what names it.
type storageClass struct {
	name string
	of   []string
	// needed is true if a site names it: the database is not restored without it.
	needed bool
}

// classesOf are the storage classes that a specification names, in its order. The empty name stands for no class at all, and an unset one
// for the cluster's default.
func classesOf(spec *v1alpha1.MysqlFailoverGroupSpec) (all []storageClass) {
	add := func(name *string, of string, needed bool) {
		if name == nil || *name == "" {
			return
		}
		i := slices.IndexFunc(all, func(c storageClass) bool { return c.name == *name })
		if i < 0 {
			i, all = len(all), append(all, storageClass{name: *name})
		}
		all[i].of, all[i].needed = append(all[i].of, of), all[i].needed || needed
	}
	for _, site := range spec.Sites {
		add(site.Storage.StorageClassName, "site "+site.Name, true)
	}
	if spec.Cache != nil && spec.Cache.Enabled && spec.Cache.Storage != nil {
		add(spec.Cache.Storage.StorageClassName, "the cache", false)
	}
	if spec.Backup == nil {
		return all
	}
	for _, profile := range spec.Backup.Profiles {
		if profile.Scratch != nil {
			add(profile.Scratch.StorageClassName, "scratch of profile "+profile.Name, false)
		}
		if v := profile.Verification; v != nil && v.Scratch != nil {
			add(v.Scratch.StorageClassName, "verification of profile "+profile.Name, false)
		}
	}
	return all
}

// checkClass refuses a storage class of a site that is not there: its claim would wait for ever, and can name no other afterwards.
// Volumes that people made by hand may have a class without an object.
func (op *Op) checkClass(ctx context.Context, c Cluster, p *planned, class storageClass) error {
	of := strings.Join(class.of, ", ")
	_, err := c.Kube().StorageV1().StorageClasses().Get(ctx, class.name, metav1.GetOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		p.say("Unchecked", "StorageClass %s (%s): you may not look at it", class.name, of)
		return nil
	case !apierrors.IsNotFound(err):
		return cli.RightsHint(err, "get", "storageclasses.storage.k8s.io", "")
	}
	volumes, err := c.Kube().CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	switch {
	case err != nil:
		p.say("See to it", "there is no StorageClass %s (%s), and whether people made volumes of it by hand could not be seen (%s); without any the claims wait for ever",
			class.name, of, cli.FirstLine(err))
		return nil
	case slices.ContainsFunc(volumes.Items, func(v corev1.PersistentVolume) bool { return v.Spec.StorageClassName == class.name }):
		return nil
	case !class.needed:
		p.say("See to it", "there is no StorageClass %s (%s): the restore does not need it, but volumes of it are never made; see which there are: kubectl get storageclass", class.name, of)
		return nil
	}
	return cli.Refused("refused: there is no StorageClass %s, which the group names (%s)\n  name one that there is in the file for -f, since that of a site cannot change afterwards; "+
		"see them: kubectl get storageclass", class.name, of)
}

// checkSecret looks whether the keys exist; their values never leave this function.
func (op *Op) checkSecret(ctx context.Context, c Cluster, p *planned, n needed) error {
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return op.judge(p, err, "Secret "+n.name, "it has the "+n.what+": make it there first, with the keys "+strings.Join(n.keys, ", "))
	}
	for _, key := range n.keys {
		if len(secret.Data[key]) == 0 {
			return cli.Refused("refused: Secret %s in namespace %s has no key %s, or it is empty\n  it has the %s: put it there first", n.name, op.Namespace, key, n.what)
		}
	}
	return nil
}

// judge refuses what is missing, and notes what it may not see.
func (op *Op) judge(p *planned, err error, what, way string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return cli.Refused("refused: there is no %s in namespace %s\n  %s", what, op.Namespace, way)
	case apierrors.IsForbidden(err):
		p.say("Unchecked", "%s: you may not look at it", what)
		return nil
	}
	return cli.RightsHint(err, "get", what, op.Namespace)
}

// rehearse lets the API server check the group without keeping it.
func (op *Op) rehearse(ctx context.Context, c Cluster, p *planned) error {
	_, err := c.CreateGroup(ctx, p.group, true)
	switch {
	case err == nil:
		p.say("Checked", "the API server would take the group")
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsAlreadyExists(err):
		return cli.Refused("refused by the API server: %s", cli.FirstLine(err))
	case apierrors.IsNotFound(err):
		return cli.Refused("refused: %s\n  if the namespace is gone: kubectl create namespace %s, and its Secrets after that; docs/disaster.md goes through it", cli.FirstLine(err), op.Namespace)
	case apierrors.IsForbidden(err) && !op.Apply:
		p.say("Unchecked", "you may not make groups here, so the API server was not asked")
		return nil
	}
	return err
}
