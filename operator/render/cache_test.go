// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

const cachePassword = "not-in-any-golden-file-but-the-Secret"

func cache(engine v1alpha1.CacheEngine, change ...func(*v1alpha1.CacheSpec)) option {
	return func(in *render.Input) {
		in.Group.Spec.Cache = &v1alpha1.CacheSpec{
			Enabled: true, Engine: engine, ImagePullPolicy: corev1.PullIfNotPresent, MaxMemory: resource.MustParse("512Mi"),
		}
		for _, c := range change {
			c(in.Group.Spec.Cache)
		}
	}
}

func stored(c *v1alpha1.CacheSpec) {
	c.Storage = &v1alpha1.CacheStorage{Size: resource.MustParse("2Gi"), StorageClassName: new("fast")}
}

func set(pairs ...string) func(*v1alpha1.CacheSpec) {
	return func(c *v1alpha1.CacheSpec) {
		c.Config = map[string]v1alpha1.CacheSetting{}
		for i := 0; i+1 < len(pairs); i += 2 {
			c.Config[pairs[i]] = v1alpha1.CacheSetting(pairs[i+1])
		}
	}
}

func cacheObjects(in render.Input) []any {
	site := in.Group.Spec.Sites[0]
	out := []any{
		render.CacheService(in), render.CacheConfigMap(in), render.CacheSecret(in, cachePassword, "the-one-before"),
		render.CacheSiteService(in, site), render.CacheDisruptionBudget(in, site), render.CacheStatefulSet(in, site),
	}
	if v := render.CacheVolume(in, site); v != nil {
		out = append(out, v)
	}
	if c := render.Certificate(in); c != nil {
		out = append(out, c.Object["spec"])
	}
	return out
}

// TestAMasterKeepsEnoughForAReplica: the copy of a large data set takes long, and what clients change meanwhile must fit. A small one has no room
// for more than the engine keeps.
func TestAMasterKeepsEnoughForAReplica(t *testing.T) {
	for memory, want := range map[string]string{"64Mi": "", "2Gi": "", "16Gi": "\nclient-output-buffer-limit replica 2147483648 2147483648 0\n"} {
		in := input(cache(v1alpha1.CacheValkey, func(c *v1alpha1.CacheSpec) { c.MaxMemory = resource.MustParse(memory) }))
		if text := render.CacheConfigMap(in).Data["valkey.conf"]; !strings.Contains(text, want) || strings.Contains(text, "client-output") != (want != "") {
			t.Errorf("with %s:\n%s", memory, text)
		}
	}
}

func TestCacheGolden(t *testing.T) {
	for name, in := range map[string]render.Input{
		"cache-valkey":           input(cache(v1alpha1.CacheValkey)),
		"cache-valkey-stored":    input(everything, cache(v1alpha1.CacheValkey, stored, set("maxmemory_policy", "noeviction", "timeout", `5"\`))),
		"cache-dragonfly":        input(cache(v1alpha1.CacheDragonfly)),
		"cache-dragonfly-stored": input(everything, cache(v1alpha1.CacheDragonfly, stored, set("cache-mode", "false"))),
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, o := range cacheObjects(in) {
				body, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "---\n%s", body)
			}
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("run with -update if that is meant (-want +got):\n%s", diff)
			}
		})
	}
}

// The password is in the Secret and nowhere else: not in the ConfigMap, not in arguments, not in the environment.
func TestTheCachesPasswordIsInItsSecretAlone(t *testing.T) {
	for _, engine := range []v1alpha1.CacheEngine{v1alpha1.CacheValkey, v1alpha1.CacheDragonfly} {
		in := input(cache(engine))
		pod := render.CacheStatefulSet(in, in.Group.Spec.Sites[0]).Spec.Template.Spec.Containers[0]
		if len(pod.Env) != 0 || len(pod.EnvFrom) != 0 {
			t.Errorf("%s has an environment", engine)
		}
		text := fmt.Sprint(render.CacheConfigMap(in).Data, pod.Args, pod.Command)
		for _, word := range []string{"requirepass", "masterauth"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: %s is in the configuration or in the arguments", engine, word)
			}
		}
		if auth := string(render.CacheSecret(in, cachePassword, "").Data["auth.conf"]); strings.Count(auth, cachePassword) != 2 {
			t.Errorf("%s: the included file is %q", engine, auth)
		}
	}
}

// A new pod carries neither role nor traffic, so nobody reaches it by the Service for applications before it is said to be the master.
func TestANewCachePodGetsNoTraffic(t *testing.T) {
	in := input(cache(v1alpha1.CacheValkey))
	site := in.Group.Spec.Sites[0]
	template := render.CacheStatefulSet(in, site).Spec.Template.Labels
	traffic := labels.SelectorFromSet(v1alpha1.CacheSelector(in.Group.Name))
	if traffic.Matches(labels.Set(template)) {
		t.Error("the Service for applications selects a new pod")
	}
	template[v1alpha1.LabelCacheRole], template[v1alpha1.LabelCacheTraffic] = string(v1alpha1.CacheMaster), v1alpha1.CacheTrafficOn
	if !traffic.Matches(labels.Set(template)) {
		t.Error("the Service for applications does not select the master")
	}
}

// No selector of MySQL's objects takes a cache pod for one of MySQL, and the other way round.
func TestSelectorsTellCachesFromMySQL(t *testing.T) {
	in := input(cache(v1alpha1.CacheValkey))
	site := in.Group.Spec.Sites[0]
	mysql := labels.Set(render.Deployment(in, site).Spec.Template.Labels)
	pod := labels.Set(render.CacheStatefulSet(in, site).Spec.Template.Labels)
	for _, set := range []labels.Set{mysql, pod} { // every label that is ever put on a pod
		for key, value := range map[string]string{
			v1alpha1.LabelRole: v1alpha1.RoleReplica, v1alpha1.LabelHealthy: v1alpha1.HealthyYes, v1alpha1.LabelReadable: v1alpha1.HealthyYes,
			v1alpha1.LabelCacheRole: string(v1alpha1.CacheMaster), v1alpha1.LabelCacheTraffic: v1alpha1.CacheTrafficOn,
		} {
			set[key] = value
		}
	}
	protected := labels.Merge(mysql, labels.Set{v1alpha1.LabelProtected: v1alpha1.HealthyYes})
	for name, selector := range map[string]map[string]string{
		"site": render.SiteService(in, site).Spec.Selector, "replicas": render.ReplicasService(in).Spec.Selector,
		"deployment": render.Deployment(in, site).Spec.Selector.MatchLabels,
		"budget":     render.DisruptionBudget(in).Spec.Selector.MatchLabels, "protection": render.Protection(in).Spec.Selector.MatchLabels,
	} {
		s := labels.SelectorFromSet(selector)
		if !s.Matches(mysql) && !s.Matches(protected) || s.Matches(pod) {
			t.Errorf("MySQL's %s selects %v", name, selector)
		}
	}
	for name, selector := range map[string]map[string]string{
		"site": render.CacheSiteService(in, site).Spec.Selector, "traffic": v1alpha1.CacheSelector(in.Group.Name),
		"set": render.CacheStatefulSet(in, site).Spec.Selector.MatchLabels, "budget": render.CacheDisruptionBudget(in, site).Spec.Selector.MatchLabels,
	} {
		s := labels.SelectorFromSet(selector)
		if s.Matches(mysql) || !s.Matches(pod) {
			t.Errorf("the cache's %s selects %v", name, selector)
		}
	}
}

func TestCacheSettings(t *testing.T) {
	owned := []string{
		"replicaof", "slaveof", "replica-announce-ip", "min-replicas-to-write", "repl-diskless-sync-delay", "requirepass", "masterauth", "aclfile",
		"user", "protected-mode", "tls-port", "port", "bind", "unixsocket", "maxclients", "dir", "dbfilename", "appendonly", "save", "logfile",
		"include", "loadmodule", "flagfile", "maxmemory", "proactor_threads", "rename-command", "enable-debug-command", "cluster-enabled",
		"loglevel", "oom-score-adj", "proc-title-template", "client-output-buffer-limit", "admin_port", "admin_nopass", "tls_ca_cert_file", "x",
	}
	for _, engine := range []v1alpha1.CacheEngine{v1alpha1.CacheValkey, v1alpha1.CacheDragonfly} {
		for _, name := range owned {
			in := input(cache(engine, set(name, "sentinel-value")))
			ignored := render.CacheIgnored(in.Group.Spec.Cache)
			if len(ignored) != 1 || !strings.HasPrefix(ignored[0], name+" (") {
				t.Errorf("%s %s: %v", engine, name, ignored)
			}
			if text := fmt.Sprint(render.CacheConfigMap(in).Data); strings.Contains(text, "sentinel-value") {
				t.Errorf("%s gets %s", engine, name)
			}
		}
		for _, c := range render.CachePassed(engine) {
			for _, name := range c.Settings {
				for _, written := range []string{name, strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "-", "_")} {
					in := input(cache(engine, set(written, "sentinel-value")))
					if text := fmt.Sprint(render.CacheConfigMap(in).Data); len(render.CacheIgnored(in.Group.Spec.Cache)) != 0 || !strings.Contains(text, name) {
						t.Errorf("%s does not get %s", engine, written)
					}
				}
			}
		}
	}
	twice := input(cache(v1alpha1.CacheValkey, set("maxmemory-samples", "5", "maxmemory_samples", "6")))
	if ignored := render.CacheIgnored(twice.Group.Spec.Cache); len(ignored) != 1 {
		t.Errorf("given twice: %v", ignored)
	}
	if ignored := render.CacheIgnored(input(cache(v1alpha1.CacheValkey, set("timeout", "5\tx\x00"))).Group.Spec.Cache); len(ignored) != 1 {
		t.Errorf("control characters: %v", ignored)
	}
}

func TestCacheMemory(t *testing.T) {
	for _, tt := range []struct{ data, request, limit, want string }{
		{"64Mi", "", "", "192Mi"}, {"512Mi", "", "", "640Mi"}, {"4Gi", "", "", "5Gi"}, {"512Mi", "", "1Gi", "1Gi"}, {"512Mi", "2Gi", "", "2Gi"},
	} {
		in := input(cache(v1alpha1.CacheValkey, func(c *v1alpha1.CacheSpec) {
			c.MaxMemory = resource.MustParse(tt.data)
			if tt.request != "" {
				c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tt.request)}
			}
			if tt.limit != "" {
				c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tt.limit)}
			}
		}))
		got := render.CacheStatefulSet(in, in.Group.Spec.Sites[0]).Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
		if got.Cmp(resource.MustParse(tt.want)) != 0 {
			t.Errorf("%+v: limit %s", tt, got.String())
		}
	}
}

func TestCacheNamesInTheCertificate(t *testing.T) {
	plain, with := input(tls), input(tls, cache(v1alpha1.CacheValkey))
	for _, host := range render.CacheHosts(with.Group) {
		if slices.Contains(certified(t, plain), host) {
			t.Errorf("%s is asked for without a cache", host)
		}
		if !slices.Contains(certified(t, with), host) {
			t.Errorf("%s is not asked for", host)
		}
	}
	off := input(tls, cache(v1alpha1.CacheValkey, func(c *v1alpha1.CacheSpec) { c.TLS.Enabled = new(false) }))
	if render.CacheTLS(off.Group) || !render.CacheTLS(with.Group) || render.CacheTLS(input(cache(v1alpha1.CacheValkey)).Group) {
		t.Error("TLS of the cache follows neither its own field nor the group's")
	}
}

func certified(t *testing.T, in render.Input) []string {
	t.Helper()
	spec, _ := render.Certificate(in).Object["spec"].(map[string]any)
	list, _ := spec["dnsNames"].([]any)
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

func TestValidCachePassword(t *testing.T) {
	for password, want := range map[string]bool{
		"12345678": true, "aZ-_.0123": true, "1234567": false, "": false, "12345678\n": false, "1234 5678": false, `12345678"`: false,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "1234#5678": false, "ä2345678": false,
	} {
		if render.ValidCachePassword(password) != want {
			t.Errorf("%q is taken: %v", password, !want)
		}
	}
}
