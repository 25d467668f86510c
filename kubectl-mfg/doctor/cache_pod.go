// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Reasons of the kubelet for a container that does not start.
var (
	imageTroubles  = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
	configTroubles = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)

const (
	killedForMemory = "OOMKilled"
	crashLoop       = "CrashLoopBackOff"
)

// cacheOfSite finds what is wrong with the cache of one site: the pod says more than an engine that does not answer.
func cacheOfSite(w World, s report.CacheSite, pods []corev1.Pod) []Finding {
	describe := func(format string, args ...any) []Finding {
		return one(Fail, wire.Remedy{Command: fmt.Sprintf("kubectl describe pods -n %s -l %s", w.Group.Namespace, cacheSelector(w.Group.Name, s.Name))}, format, args...)
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(pods) == 0 {
		return one(Fail, wire.Remedy{Command: fmt.Sprintf("kubectl describe statefulset %s -n %s", v1alpha1.CacheSiteName(w.Group.Name, s.Name), w.Group.Namespace)},
			"the cache of %s has no pod: a failover to %s loses the sessions", s.Name, s.Name)
	}
	p := pods[0]
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return describe("the cache pod of %s fits no node: %s", s.Name, c.Message)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		switch waiting, last := c.State.Waiting, c.LastTerminationState.Terminated; {
		case last != nil && last.Reason == killedForMemory:
			return one(Fail, wire.Remedy{Text: "raise spec.cache.resources.limits.memory, or lower spec.cache.maxMemory"}, "the cache of %s was killed because it reached its memory limit", s.Name)
		case waiting == nil:
		case slices.Contains(imageTroubles, waiting.Reason):
			return describe("the image of the cache of %s cannot be had (%s): %s", s.Name, c.Image, waiting.Message)
		case slices.Contains(configTroubles, waiting.Reason):
			return describe("the cache of %s cannot start: %s", s.Name, waiting.Message)
		case waiting.Reason == crashLoop:
			return one(Fail, wire.Remedy{Text: "a setting of spec.cache.config that the engine does not know ends it", Command: fmt.Sprintf("kubectl logs -n %s %s --previous --tail=50", p.Namespace, p.Name)},
				"the cache of %s ends again and again", s.Name)
		}
	}
	switch {
	case s.Role == "":
		return describe("the cache of %s does not answer the operator: a failover to %s loses the sessions", s.Name, s.Name)
	case s.Role == string(v1alpha1.CacheReplica) && !s.Synced():
		return one(Warn, wire.Remedy{Command: fmt.Sprintf("kubectl logs -n %s %s --tail=100", p.Namespace, p.Name)}, "the cache of %s does not receive changes (link %s): a failover to %s loses the sessions", s.Name, s.Link, s.Name)
	}
	return nil
}

// Certificate is the certificate of the group, which the cache shows to its clients.
type Certificate struct {
	PEM []byte
	Err error
}

// cacheCertificate: clients refuse a certificate without the name that they connect to.
func cacheCertificate(w World) []Finding {
	if w.CacheCertificate == nil {
		return nil
	}
	cert, err := w.CacheCertificate.parse()
	if err != nil {
		return one(Unknown, wire.Remedy{}, "the certificate that the cache shows could not be read: %v", err)
	}
	var missing []string
	for _, name := range cacheNames(w.Group) {
		if cert.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return one(Warn, wire.Remedy{Text: "have the certificate of Secret " + w.Group.Spec.TLS.Secret(w.Group.Name) + " made again with these names beside those that it has"},
		"the certificate lacks names of the cache, so clients that verify it refuse to connect: %s", strings.Join(missing, ", "))
}

// cacheNames returns the names that clients, and the operator, connect to.
func cacheNames(g *v1alpha1.MysqlFailoverGroup) []string {
	names := []string{v1alpha1.CacheService(g.Name) + "." + g.Namespace + ".svc"}
	for _, s := range g.Spec.Sites {
		names = append(names, v1alpha1.CacheSiteName(g.Name, s.Name)+"."+g.Namespace+".svc")
	}
	return names
}

// parse reads the first certificate, which is the server's own.
func (c *Certificate) parse() (*x509.Certificate, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	block, _ := pem.Decode(c.PEM)
	if block == nil {
		return nil, errors.New("no PEM block in it")
	}
	return x509.ParseCertificate(block.Bytes)
}
