// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// MySQLImage is the MySQL that the lab makes of Debian's packages.
const MySQLImage = "localhost/mysql:9.7"

// Group is a failover group on the stage.
type Group struct {
	*Stage
	Namespace, Name string
	// WriterArgs are further flags of the writer behind the Service; the last of two equal flags counts.
	WriterArgs []string
	// ProbeArgs are the same of the writers at its pods.
	ProbeArgs []string

	password string
	// made is true if the operator makes its certificate.
	made bool
	ca   []byte
}

// annotationImages remembers on a group with which programs its pods were made.
const annotationImages = "mfg-lab/images"

// DefaultSpec is a three-site group, one site for each node: two primary-candidates and a dr-only site. It keeps every
// default but the cooldown, because people on a stage do not wait ten minutes between two failovers.
func DefaultSpec(name string) v1alpha1.MysqlFailoverGroupSpec {
	spec := v1alpha1.MysqlFailoverGroupSpec{
		Image: MySQLImage, ImagePullPolicy: corev1.PullNever,
		TLS:      &v1alpha1.TLSSpec{SecretName: name + "-tls"},
		Failover: v1alpha1.FailoverSpec{Cooldown: metav1.Duration{Duration: 5 * time.Second}},
	}
	for i, site := range Sites {
		role := v1alpha1.PrimaryCandidate
		if i == 2 {
			role = v1alpha1.DROnly
		}
		spec.Sites = append(spec.Sites, v1alpha1.Site{
			Name: site, Role: role, Priority: int32(10 * (len(Sites) - i)),
			NodeSelector: map[string]string{"topology.kubernetes.io/zone": site},
		})
	}
	return spec
}

// shortLease is the length of leases from which on the usual intervals leave no room for a lost answer.
const shortLease = 10 * time.Second

// SetLease gives a group leases of a length, and with a short one the intervals that it needs; 0 leaves the defaults.
func SetLease(spec *v1alpha1.MysqlFailoverGroupSpec, lease time.Duration) {
	spec.Sidecar.LeaseTimeout = metav1.Duration{Duration: lease}
	if lease > 0 && lease < shortLease {
		spec.Sidecar.PeerCheckInterval = metav1.Duration{Duration: time.Second}
		spec.Sidecar.FenceTimeout = metav1.Duration{Duration: time.Second}
	}
}

// PluginDir is where the lab's MySQL has its plugins: Debian's place, not that of the official images.
const PluginDir = "/usr/lib/mysql/plugin"

// EncryptedSpec is DefaultSpec with data-at-rest encryption.
func EncryptedSpec(name string) v1alpha1.MysqlFailoverGroupSpec {
	spec := DefaultSpec(name)
	spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true, Keyring: v1alpha1.KeyringSpec{PluginDir: PluginDir}}
	return spec
}

// NewGroup creates a group through its chart, or takes the one that is there. It does not wait for it.
func (s *Stage) NewGroup(ctx context.Context, namespace, name string, spec v1alpha1.MysqlFailoverGroupSpec) (*Group, error) {
	g := &Group{Stage: s, Namespace: namespace, Name: name}
	if err := s.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	if spec.TLS != nil && !spec.TLS.Made() {
		if err := g.ensureTLS(ctx, spec); err != nil {
			return nil, err
		}
	}
	if err := g.ensurePassword(ctx); err != nil {
		return nil, err
	}
	values, err := chartValues(spec)
	if err != nil {
		return nil, err
	}
	sum, err := s.imageSum("sidecar")
	if err != nil {
		return nil, err
	}
	values["annotations"] = map[string]string{annotationImages: sum}
	if _, err := s.Helm(ctx, values, "upgrade", "--install", name, s.Chart("mysql-failover-group"),
		"--namespace", namespace, "--timeout", "1m"); err != nil {
		return nil, fmt.Errorf("install group %s: %w", name, err)
	}
	return g, nil
}

// chartValues turns a spec into values of the group's chart, which are the fields of the spec.
func chartValues(spec v1alpha1.MysqlFailoverGroupSpec) (map[string]any, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("decode spec: %w", err)
	}
	if spec.TLS == nil {
		values["tls"] = nil // the chart's default would give the group a certificate
	}
	return values, nil
}

// ensureTLS makes the group's certificate unless there is one.
func (g *Group) ensureTLS(ctx context.Context, spec v1alpha1.MysqlFailoverGroupSpec) error {
	authority, err := g.labAuthority(ctx)
	if err != nil {
		return err
	}
	secret, err := g.ensureSecretIn(ctx, g.Namespace, spec.TLS.SecretName, func() (map[string][]byte, error) {
		return authority.issue(g.serviceNames(spec))
	})
	if err != nil {
		return err
	}
	g.ca = secret.Data["ca.crt"]
	return nil
}

// serviceNames are all names under which the group's Services can be reached.
func (g *Group) serviceNames(spec v1alpha1.MysqlFailoverGroupSpec) []string {
	services := []string{v1alpha1.PrimaryService(g.Name), v1alpha1.ReplicasService(g.Name), v1alpha1.CacheService(g.Name)}
	for _, site := range spec.Sites {
		services = append(services, v1alpha1.SiteName(g.Name, site.Name), v1alpha1.CacheSiteName(g.Name, site.Name))
	}
	var names []string
	for _, s := range services {
		names = append(names, ServiceNames(g.Namespace, s)...)
	}
	return append(names, "localhost")
}

// appSecret holds the password of the application's account.
func (g *Group) appSecret() string { return g.Name + "-app" }

func (g *Group) ensurePassword(ctx context.Context) error {
	secret, err := g.ensureSecretIn(ctx, g.Namespace, g.appSecret(), func() (map[string][]byte, error) {
		return map[string][]byte{"password": []byte(rand.Text())}, nil
	})
	if err != nil {
		return err
	}
	g.password = string(secret.Data["password"])
	return nil
}

// Get reads the group.
func (g *Group) Get(ctx context.Context) (*v1alpha1.MysqlFailoverGroup, error) {
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: g.Name}, group); err != nil {
		return nil, fmt.Errorf("read group %s: %w", g.Name, err)
	}
	return group, nil
}

// Describe says in one line how a group is.
func Describe(group *v1alpha1.MysqlFailoverGroup) string {
	st := group.Status
	var sites []string
	for _, site := range group.Spec.Sites {
		state := "unknown"
		for _, have := range st.Sites {
			if have.Name == site.Name && have.State != "" {
				state = string(have.State)
				if have.Reason != "" {
					state += " (" + string(have.Reason) + ")"
				}
			}
		}
		sites = append(sites, site.Name+" "+state)
	}
	line := fmt.Sprintf("%s: epoch %d, active %s; %s", st.Phase, st.Epoch, st.ActiveSite, strings.Join(sites, ", "))
	if ready := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		line += "; not ready: " + ready.Message
	}
	return line
}

// notReady says why a group is not whole: ready, and every site in its place.
func notReady(group *v1alpha1.MysqlFailoverGroup) error {
	st := group.Status
	if !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionReady) || st.ActiveSite == "" || st.Transition != nil {
		return errors.New(Describe(group))
	}
	for _, site := range group.Spec.Sites {
		i := slices.IndexFunc(st.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site.Name })
		if i < 0 || st.Sites[i].State != v1alpha1.SitePrimary && st.Sites[i].State != v1alpha1.SiteReplica {
			return errors.New(Describe(group))
		}
	}
	return nil
}

// AwaitReady waits until the group is whole, telling what changes meanwhile.
func (g *Group) AwaitReady(ctx context.Context, limit time.Duration) (*v1alpha1.MysqlFailoverGroup, error) {
	return g.Await(ctx, limit, "group "+g.Name+" to be ready", notReady)
}

// Await waits until a check of the group says nothing against it.
func (g *Group) Await(
	ctx context.Context, limit time.Duration, what string, check func(*v1alpha1.MysqlFailoverGroup) error,
) (*v1alpha1.MysqlFailoverGroup, error) {
	var group *v1alpha1.MysqlFailoverGroup
	said := ""
	err := Poll(ctx, limit, what, func(ctx context.Context) error {
		got, err := g.Get(ctx)
		if err != nil {
			return err
		}
		group = got
		if line := Describe(group); line != said {
			g.Say("  %s", line)
			said = line
		}
		return check(group)
	})
	return group, err
}

// EnsureGroup takes the group that is there, if it can serve another run, or makes a fresh one.
func (s *Stage) EnsureGroup(ctx context.Context, namespace, name string, spec v1alpha1.MysqlFailoverGroupSpec) (*Group, error) {
	g := &Group{Stage: s, Namespace: namespace, Name: name}
	why := g.Reusable(ctx)
	switch {
	case why == nil:
		s.Say("using group %s, which is there", name)
	case !apierrors.IsNotFound(why):
		s.Say("removing group %s and starting anew: %v", name, why)
		if err := g.Delete(ctx); err != nil {
			return nil, err
		}
	}
	g, err := s.NewGroup(ctx, namespace, name, spec)
	if err != nil || why != nil {
		return g, err
	}
	// Its pods run with the old settings, the lease for one, until the ordered update has replaced them.
	_, err = g.Await(ctx, updateLimit, "group "+name+" to run with the new specification", NotUpdated)
	return g, err
}

// updateLimit is how long an ordered update of all sites may take.
const updateLimit = 5 * time.Minute

// NotUpdated says why a group is not yet as its specification says, and whole.
func NotUpdated(group *v1alpha1.MysqlFailoverGroup) error {
	c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case group.Status.ObservedGeneration != group.Generation || c == nil || c.ObservedGeneration != group.Generation:
		return errors.New("the change was not looked at yet")
	case c.Reason != string(v1alpha1.ReasonAsExpected):
		return fmt.Errorf("%s: %s", c.Reason, c.Message)
	case !meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionReady) || group.Status.Transition != nil:
		return errors.New(Describe(group))
	}
	return awaitsTurn(group)
}

// awaitsTurn says that pods are still to be replaced because another version of the operator leads. They may go at any time.
func awaitsTurn(group *v1alpha1.MysqlFailoverGroup) error {
	if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionUpgradePending); c != nil && c.Status == metav1.ConditionTrue {
		return errors.New(c.Message)
	}
	return nil
}

// Reusable tells why a group that is there cannot serve another run, or nothing.
func (g *Group) Reusable(ctx context.Context) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	sum, err := g.imageSum("sidecar")
	if err != nil {
		return err
	}
	if group.Annotations[annotationImages] != sum {
		return errors.New("its sidecars are of another build")
	}
	if group.Spec.TLS != nil && !group.Spec.TLS.Made() && !g.certifies(ctx, group.Spec.TLS.SecretName) {
		return errors.New("its certificate does not name its cache")
	}
	return g.settled(ctx)
}

// settleLimit is how long a group that was left by an earlier run may take to become whole by itself.
const settleLimit = 90 * time.Second

// settled waits until the group is whole, or until it is plain that it will not be: a site that just came back is first
// detached, and only then found to hold transactions that were lost.
func (g *Group) settled(ctx context.Context) error {
	var never error
	_, err := g.Await(ctx, settleLimit, "group "+g.Name+" to settle", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, site := range group.Status.Sites {
			if site.State == v1alpha1.SiteDiverged {
				never = fmt.Errorf("site %s holds transactions that were lost, and is kept for a person", site.Name)
				return nil
			}
		}
		return errors.Join(notReady(group), awaitsTurn(group))
	})
	return errors.Join(never, err)
}

// awaitNoPods waits for pods that are ending. A namespace that is deleted while it has some is looked at again only after half of the longest
// time that they may take, which is far longer than they do. It saves time and judges nothing: whether the namespace goes is seen afterwards.
func (g *Group) awaitNoPods(ctx context.Context) {
	if err := g.Kube.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: g.Name}, &v1alpha1.MysqlFailoverGroup{}); !apierrors.IsNotFound(err) {
		return // it was not made by helm, and goes with its namespace
	}
	_ = Poll(ctx, time.Minute, "the pods of namespace "+g.Namespace+" to end", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := g.Kube.List(ctx, &pods, client.InNamespace(g.Namespace)); err != nil {
			return err
		}
		// Witnesses of a test and the like end with the namespace.
		ending := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
			return p.DeletionTimestamp == nil && (p.Labels[v1alpha1.LabelGroup] != g.Name || !live(p))
		})
		if n := len(ending); n > 0 {
			return fmt.Errorf("%d are there, %s among them", n, ending[0].Name)
		}
		return nil
	})
}

// Delete removes a group with its data and gives its volumes back to the lab.
func (g *Group) Delete(ctx context.Context) error {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Namespace, group.Name = g.Namespace, g.Name
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionPolicy":"Delete"}}`))
	if err := g.Kube.Patch(ctx, group, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("allow deletion of group %s: %w", g.Name, err)
	}
	if _, err := g.Lab.Helm(ctx, "uninstall", g.Name, "--namespace", g.Namespace, "--ignore-not-found", "--wait", "--timeout=3m"); err != nil {
		return err
	}
	g.awaitNoPods(ctx)
	ns := &corev1.Namespace{}
	ns.Name = g.Namespace
	if err := g.Kube.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", g.Namespace, err)
	}
	if err := Poll(ctx, 3*time.Minute, "namespace "+g.Namespace+" to go", func(ctx context.Context) error {
		err := g.Kube.Get(ctx, client.ObjectKey{Name: g.Namespace}, ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	}); err != nil {
		return err
	}
	_, err := g.Lab.RecycleVolumes(ctx)
	return err
}
