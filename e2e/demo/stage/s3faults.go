// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// revokeLimit is within which time the kubelet gives a pod the new content of a Secret.
const revokeLimit = 3 * time.Minute

// Away takes the server out of its Service and ends its connections: nobody reaches it until Back. Its objects stay.
func (s *S3) Away(ctx context.Context) error {
	if err := s.route(ctx, s.options.Name+"-away"); err != nil {
		return err
	}
	return s.Kill(ctx)
}

// Back takes Away back.
func (s *S3) Back(ctx context.Context) error { return s.route(ctx, s.options.Name) }

func (s *S3) route(ctx context.Context, app string) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: S3Namespace, Name: s.options.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, s.stage.Kube, service, func() error {
		service.Spec.Selector = map[string]string{"app": app}
		return nil
	}); err != nil {
		return fmt.Errorf("route Service %s: %w", s.options.Name, err)
	}
	return nil
}

// Revoke has the server know another key from now on, so that the one that was granted is worth nothing. Grant gives the new one.
func (s *S3) Revoke(ctx context.Context) error {
	s.secret = rand.Text() + rand.Text()
	if err := s.stage.PutSecret(ctx, S3Namespace, s.options.Name+"-account", s3Keys(s.secret)); err != nil {
		return err
	}
	// The server reads its keys when it starts.
	if err := Poll(ctx, revokeLimit, "the server's new key in its pod", func(ctx context.Context) error {
		root, err := s.root(ctx)
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(root, "etc/s3/credentials", v1alpha1.BackupSecretKey))
		if err == nil && strings.TrimSpace(string(raw)) != s.secret {
			err = errors.New("it has the old one")
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.Kill(ctx); err != nil {
		return err
	}
	return s.awaitUp(ctx)
}

// awaitUp waits until the server listens again after a Kill.
func (s *S3) awaitUp(ctx context.Context) error {
	return Poll(ctx, s3UpLimit, "the S3 server to listen", func(ctx context.Context) error {
		p, err := s.livePod(ctx)
		if err != nil {
			return err
		}
		if _, err := FindIn(p, s3Program); err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("its pod is not ready")
	})
}

// root is the file system of the server's process, as this machine sees it.
func (s *S3) root(ctx context.Context) (string, error) {
	p, err := s.livePod(ctx)
	if err != nil {
		return "", err
	}
	pid, err := FindIn(p, s3Program)
	return fmt.Sprintf("/proc/%d/root", pid), err
}

// ballast is the file that makes a storage full.
const ballast = "data/ballast"

// Fill takes all the room that the server has left. It is for one that was started with Memory; Room gives it back.
func (s *S3) Fill(ctx context.Context) error {
	if !s.options.Memory {
		return fmt.Errorf("fill %s: only a server in memory is full at its size", s.options.Name)
	}
	root, err := s.root(ctx)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(root, ballast))
	if err != nil {
		return fmt.Errorf("fill %s: %w", s.options.Name, err)
	}
	defer func() { _ = f.Close() }()
	for size, piece := int64(0), make([]byte, 64<<10); size <= s.options.Size.Value(); size += int64(len(piece)) {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return fmt.Errorf("fill %s: %w", s.options.Name, err)
		}
	}
	return fmt.Errorf("fill %s: it takes more than %s", s.options.Name, s.options.Size.String())
}

// Room takes Fill back.
func (s *S3) Room(ctx context.Context) error {
	root, err := s.root(ctx)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(root, ballast)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make room in %s: %w", s.options.Name, err)
	}
	return nil
}

// Objects are the sizes of all objects below a prefix, by key.
func (s *S3) Objects(ctx context.Context, prefix string) (map[string]int64, error) {
	root, err := s.root(ctx)
	if err != nil {
		return nil, err
	}
	top := filepath.Join(root, "data/objects", S3Bucket)
	sizes := map[string]int64{}
	err = filepath.WalkDir(filepath.Join(top, prefix), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		key, err := filepath.Rel(top, path)
		sizes[key] = info.Size()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the objects of %s: %w", s.options.Name, err)
	}
	return sizes, nil
}

// CertificateFor makes the certificate of a group that somebody else is about to make, in the Secret that its specification names.
func (s *Stage) CertificateFor(ctx context.Context, namespace, name string, spec v1alpha1.MysqlFailoverGroupSpec) error {
	g := &Group{Stage: s, Namespace: namespace, Name: name}
	if err := s.Namespace(ctx, namespace); err != nil {
		return err
	}
	return g.ensureTLS(ctx, spec)
}
