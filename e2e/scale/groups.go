// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

const (
	groupNamespace    = "scale"
	operatorNamespace = "mfg-system"
	tlsSecret         = "scale-tls"
)

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// prepare makes what the operator needs before its first group.
func prepare(ctx context.Context, kube client.Client, certificate *certificates) error {
	repo, err := cluster.FindRepo()
	if err != nil {
		return err
	}
	var objects []client.Object
	for _, kind := range []string{"mysqlfailovergroups", "mysqlbackups"} {
		raw, err := os.ReadFile(filepath.Join(repo, "config", "crd", "mysql-mfg.io_"+kind+".yaml"))
		if err != nil {
			return fmt.Errorf("read the CRD: %w", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
			return fmt.Errorf("decode the CRD: %w", err)
		}
		objects = append(objects, crd)
	}
	for _, name := range []string{groupNamespace, operatorNamespace} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if certificate != nil {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: groupNamespace, Name: tlsSecret, Annotations: map[string]string{v1alpha1.AnnotationAllowGroups: "*"},
			},
			Data: map[string][]byte{"tls.crt": certificate.cert, "tls.key": certificate.key, "ca.crt": certificate.ca},
		})
	}
	for _, obj := range objects {
		if err := kube.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %s: %w", obj.GetName(), err)
		}
	}
	return poll(ctx, upTo(time.Minute), "the CRDs", func(ctx context.Context) error {
		return errors.Join(kube.List(ctx, &v1alpha1.MysqlFailoverGroupList{}, client.Limit(1)), kube.List(ctx, &v1alpha1.MysqlBackupList{}, client.Limit(1)))
	})
}

// slowly is how often groups are polled until all of them are ready: the polls of those that are there already would take
// the time in which the others are made.
const slowly = 6 * time.Second

// perSecond is how many groups change how often they are polled in a second: the operator looks at each that changes, and nobody
// changes a thousand at once.
const perSecond = 5

// pollAsMeasured has all groups polled as often as is measured.
func pollAsMeasured(ctx context.Context, kube client.Client, w *world, interval time.Duration) error {
	if interval == 0 {
		interval = 2 * time.Second
	}
	patch := fmt.Appendf(nil, `{"spec":{"failover":{"pollInterval":%q}}}`, interval)
	pace := time.NewTicker(time.Second / perSecond)
	defer pace.Stop()
	done := map[string]bool{}
	for _, s := range w.all {
		if done[s.group] {
			continue
		}
		done[s.group] = true
		select {
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: groupNamespace, Name: s.group}}
		if err := kube.Patch(ctx, g, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("set the poll interval of %s: %w", s.group, err)
		}
	}
	return nil
}

// makeGroups creates the groups, all fields but a few at their defaults.
func makeGroups(ctx context.Context, kube client.Client, w *world, o options) error {
	made := map[string]*v1alpha1.MysqlFailoverGroup{}
	var order []*v1alpha1.MysqlFailoverGroup
	for _, s := range w.all {
		g := made[s.group]
		if g == nil {
			g = &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: groupNamespace, Name: s.group}}
			g.Spec.Image = "mysql:" + serverVersion
			g.Spec.Failover.PollInterval.Duration = slowly
			if o.cache {
				g.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey}
			}
			if !o.plain {
				g.Spec.TLS = &v1alpha1.TLSSpec{SecretName: tlsSecret}
			}
			made[s.group], order = g, append(order, g)
		}
		role := v1alpha1.PrimaryCandidate
		if len(g.Spec.Sites) >= 2 {
			role = v1alpha1.DROnly
		}
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: s.name, Role: role, Priority: int32(100 - len(g.Spec.Sites))})
	}
	for _, g := range order {
		if err := kube.Create(ctx, g); err != nil {
			return fmt.Errorf("create group %s: %w", g.Name, err)
		}
	}
	return nil
}

// certificates are one for all sites, PEM.
type certificates struct{ ca, cert, key []byte }

func makeCertificates() (*certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	// One that signs itself is its own authority.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "scale"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"*." + groupNamespace + ".svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &certificates{ca: cert, cert: cert, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})}, nil
}

func (c *certificates) server() (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
