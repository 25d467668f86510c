// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/resp"
)

// CacheSpec is a cache of the lab's images, small enough for all sites on one machine.
func CacheSpec(engine v1alpha1.CacheEngine) v1alpha1.CacheSpec {
	spec := v1alpha1.CacheSpec{
		Enabled: true, Engine: engine, Image: cluster.ValkeyImage, ImagePullPolicy: corev1.PullIfNotPresent,
		MaxMemory: resource.MustParse("64Mi"),
	}
	if engine == v1alpha1.CacheDragonfly {
		spec.Image, spec.MaxMemory = cluster.DragonflyImage, resource.MustParse("256Mi") // Dragonfly does not start with less
	}
	return spec
}

// CachePods are all cache pods of the group.
func (g *Group) CachePods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := g.Kube.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels{
		v1alpha1.LabelGroup: g.Name, v1alpha1.LabelName: v1alpha1.NameCache,
	}); err != nil {
		return nil, fmt.Errorf("list cache pods: %w", err)
	}
	return pods.Items, nil
}

// CachePod is the cache pod of a site that is not on its way out.
func (g *Group) CachePod(ctx context.Context, site string) (*corev1.Pod, error) {
	pods, err := g.CachePods(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelSite] == site && p.DeletionTimestamp == nil && live(p)
	})
	if i < 0 {
		return nil, fmt.Errorf("site %s has no cache pod", site)
	}
	return &pods[i], nil
}

// DeleteCachePod deletes a cache pod, at once if asked.
func (g *Group) DeleteCachePod(ctx context.Context, site string, force bool) error {
	pod, err := g.CachePod(ctx, site)
	if err != nil {
		return err
	}
	var options []client.DeleteOption
	if force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	if err := g.Kube.Delete(ctx, pod, options...); err != nil {
		return fmt.Errorf("delete cache pod of %s: %w", site, err)
	}
	return nil
}

// cacheProgram is the engine in the pod of a cache.
var cacheProgram = Program{"cache", "valkey-server"}

// CacheProcess finds the machine's number of the engine of a site's cache.
func (g *Group) CacheProcess(ctx context.Context, site string) (int, error) {
	pod, err := g.CachePod(ctx, site)
	if err != nil {
		return 0, err
	}
	return FindIn(pod, cacheProgram)
}

// SignalCache sends a signal to the engine of a site's cache from outside.
func (g *Group) SignalCache(ctx context.Context, site string, signal syscall.Signal) error {
	pid, err := g.CacheProcess(ctx, site)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %s to the cache of %s: %w", signal, site, err)
	}
	return nil
}

// cachePassword is the password of the cache: the first one, or the one before it.
func (g *Group) cachePassword(ctx context.Context) (string, error) {
	secret := &corev1.Secret{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.CacheAuthSecret(g.Name)}, secret); err != nil {
		return "", fmt.Errorf("read the cache's password: %w", err)
	}
	return string(secret.Data[v1alpha1.CachePassword]), nil
}

// DialCache connects to the cache of a site directly. The machine reaches every pod that is not cut off from it.
func (g *Group) DialCache(ctx context.Context, site string) (*resp.Client, error) {
	pod, err := g.CachePod(ctx, site)
	if err != nil {
		return nil, err
	}
	password, err := g.cachePassword(ctx)
	if err != nil {
		return nil, err
	}
	dialer := resp.Dialer{Password: password, DialTimeout: 2 * time.Second, Timeout: 5 * time.Second}
	secure, err := g.cacheHasTLS(ctx)
	if err != nil {
		return nil, err
	}
	if secure {
		if dialer.TLS, err = g.cacheTLS(ctx); err != nil {
			return nil, err
		}
	}
	return dialer.Dial(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(v1alpha1.CachePort)))
}

// cacheHasTLS is true if the cache takes connections over TLS: as the group, unless spec.cache.tls says no.
func (g *Group) cacheHasTLS(ctx context.Context) (bool, error) {
	group, err := g.Get(ctx)
	if err != nil || g.ca == nil || group.Spec.Cache == nil {
		return false, err
	}
	asked := group.Spec.Cache.TLS.Enabled
	return asked == nil || *asked, nil
}

// certifies is true if the group's certificate is good for its cache: one of an earlier build is not.
func (g *Group) certifies(ctx context.Context, secretName string) bool {
	secret := &corev1.Secret{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: secretName}, secret); err != nil {
		return false
	}
	block, _ := pem.Decode(secret.Data["tls.crt"])
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && certificate.VerifyHostname(v1alpha1.CacheService(g.Name)) == nil
}

// cacheTLS knows a cache by the name of its Service, and has a certificate to show where one is asked for.
func (g *Group) cacheTLS(ctx context.Context) (*tls.Config, error) {
	conf, err := g.tlsConfig(v1alpha1.CacheService(g.Name))
	if err != nil || conf == nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: g.tlsSecret()}, secret); err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

// CacheInfo is what the cache of a site says of itself.
func (g *Group) CacheInfo(ctx context.Context, site string) (map[string]string, error) {
	c, err := g.DialCache(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", site, err)
	}
	defer func() { _ = c.Close() }()
	v, err := c.Do("INFO")
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", site, err)
	}
	return resp.Section(v.Text), nil
}

// CacheDo sends one command to the cache of a site.
func (g *Group) CacheDo(ctx context.Context, site string, args ...string) (resp.Value, error) {
	c, err := g.DialCache(ctx, site)
	if err != nil {
		return resp.Value{}, fmt.Errorf("cache of %s: %w", site, err)
	}
	defer func() { _ = c.Close() }()
	return c.Do(args...)
}

// CacheOf is the state of a site's cache in the group's status.
func CacheOf(group *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.CacheSiteStatus {
	if c := group.Status.Cache; c != nil {
		for _, s := range c.Sites {
			if s.Name == site {
				return s
			}
		}
	}
	return v1alpha1.CacheSiteStatus{}
}

// DescribeCache says in one line how a group's cache is.
func DescribeCache(group *v1alpha1.MysqlFailoverGroup) string {
	c := group.Status.Cache
	if c == nil {
		return "the group has no cache"
	}
	line := fmt.Sprintf("the cache's master is on %q", c.ActiveSite)
	if c.Transition != nil {
		line += fmt.Sprintf(", moving to %s (%s)", c.Transition.To, c.Transition.Kind)
	}
	for _, s := range c.Sites {
		line += fmt.Sprintf("; %s %s %s %s", s.Name, s.Role, s.Link, s.Message)
	}
	return line
}

// CacheNotHome says why the cache is not as it must be while nothing is wrong: the master on the active site, and every other one
// following it.
func CacheNotHome(group *v1alpha1.MysqlFailoverGroup) error {
	if group.Status.Cache == nil || group.Status.Cache.ActiveSite != group.Status.ActiveSite {
		return errors.New(DescribeCache(group))
	}
	return CacheNotWhole(group)
}

// CacheNotWhole is CacheNotHome for a master on any site.
func CacheNotWhole(group *v1alpha1.MysqlFailoverGroup) error {
	c := group.Status.Cache
	if c == nil || c.ActiveSite == "" || c.Transition != nil {
		return errors.New(DescribeCache(group))
	}
	for _, site := range group.Spec.Sites {
		s := CacheOf(group, site.Name)
		master := site.Name == c.ActiveSite
		if master && s.Role != v1alpha1.CacheMaster || !master && (s.Role != v1alpha1.CacheReplica || !strings.EqualFold(s.Link, "up")) {
			return errors.New(DescribeCache(group))
		}
	}
	return nil
}

// AwaitCache waits until a check of the group's cache says nothing against it.
func (g *Group) AwaitCache(
	ctx context.Context, limit time.Duration, what string, check func(*v1alpha1.MysqlFailoverGroup) error,
) (*v1alpha1.MysqlFailoverGroup, error) {
	said := ""
	return g.Await(ctx, limit, what, func(group *v1alpha1.MysqlFailoverGroup) error {
		if line := DescribeCache(group); line != said {
			g.Say("  %s", line)
			said = line
		}
		return check(group)
	})
}

// CacheNotGone says why a cache that was turned off is still there.
func (g *Group) CacheNotGone(ctx context.Context) error {
	pods, err := g.CachePods(ctx)
	if err != nil {
		return err
	}
	err = g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.CacheService(g.Name)}, &corev1.Service{})
	switch {
	case len(pods) > 0:
		return fmt.Errorf("%d cache pods are left", len(pods))
	case err == nil:
		return errors.New("the Service of the cache is left")
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read the Service of the cache: %w", err)
	}
	// Status is written after the objects went: a cache that is turned on before would be taken for the one that it still tells of.
	group, err := g.Get(ctx)
	if err == nil && group.Status.Cache != nil {
		err = errors.New("status still tells of the cache")
	}
	return err
}

// StartSessions starts a writer that keeps sessions through the Service of the cache, and waits for its first acknowledged write.
func (g *Group) StartSessions(ctx context.Context, run, dir string, args ...string) (*ServiceWriter, error) {
	w := &ServiceWriter{group: g, pod: "sessions-" + run, dir: dir}
	flags := []string{
		"session", "--id=ses-" + run, "--addr=" + v1alpha1.CacheService(g.Name) + ":" + strconv.Itoa(v1alpha1.CachePort),
		"--password-file=/etc/app/password", "--sessions=8", "--rate=160",
	}
	sources := []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.CacheAuthSecret(g.Name)},
	}}}
	secure, err := g.cacheHasTLS(ctx)
	if err != nil {
		return nil, err
	}
	if secure {
		flags = append(flags, "--tls-ca=/etc/app/ca.crt", "--tls-cert=/etc/app/tls.crt", "--tls-key=/etc/app/tls.key")
		sources = append(sources, g.certificates("ca.crt", "tls.crt", "tls.key"))
	}
	if err := g.Kube.Create(ctx, w.podOf(append(flags, args...), sources)); err != nil {
		return nil, fmt.Errorf("start session writer: %w", err)
	}
	if err := w.AwaitCommit(ctx, time.Minute); err != nil {
		return nil, errors.Join(err, w.Remove(ctx))
	}
	return w, nil
}
