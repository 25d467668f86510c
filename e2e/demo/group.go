// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// database belongs to the application's account, which has the same name.
	database = "shop"

	storageName    = "demo"
	storagePrefix  = "demo"
	identitySecret = "mfg-backup-identity"
)

// specification has, beside what a failover needs, what a newcomer tries next: an account for an application, and backups.
func specification(id *age.X25519Identity) v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(name)
	spec.TLS = &v1alpha1.TLSSpec{} // as the chart has it: the operator makes the certificates
	spec.Application = &v1alpha1.ApplicationSpec{Database: database}
	spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{
		Name: "nightly", Method: v1alpha1.BackupLogical, Storage: stage.S3Storage(storageName, storagePrefix),
		Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}, IdentitySecretName: identitySecret},
	}}}
	return spec
}

// identity is that of an earlier demo, whose backups it opens, or a new one.
func identity(ctx context.Context, s *stage.Stage) (*age.X25519Identity, error) {
	secret := &corev1.Secret{}
	err := s.Kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: identitySecret}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return age.GenerateX25519Identity()
	case err != nil:
		return nil, fmt.Errorf("read the identity of backups: %w", err)
	}
	id, err := age.ParseX25519Identity(strings.TrimSpace(string(secret.Data[v1alpha1.BackupIdentityKey])))
	if err != nil {
		return nil, fmt.Errorf("read the identity of backups in Secret %s/%s: %w", namespace, identitySecret, err)
	}
	return id, nil
}

// startStorage starts the S3 server that the profile names, and gives the group what its backups and restores need.
func startStorage(ctx context.Context, s *stage.Stage, id *age.X25519Identity) error {
	s.Say("starting an S3 server for backups")
	server, err := s.StartS3(ctx, stage.S3Options{Name: storageName})
	if err != nil {
		return fmt.Errorf("start the S3 server: %w", err)
	}
	return errors.Join(server.Grant(ctx, namespace), s.PutIdentity(ctx, namespace, identitySecret, id.String()))
}
