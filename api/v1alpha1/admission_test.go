// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestDefaults(t *testing.T) {
	s := newServer(t)
	object := parse(t, minimal)
	edit("spec/encryptionAtRest = {}\nspec/tls = {secretName: orders-tls, issuerRef: {name: ca}}\nspec/dns = {name: db.example.org}").apply(t, object)
	if errs := s.admit(object, nil); len(errs) != 0 {
		t.Fatalf("admit: %v", errs)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatalf("decode a defaulted group: %v", err)
	}
	spec := group.Spec
	got := map[string]any{
		"image": spec.Image, "imagePullPolicy": string(spec.ImagePullPolicy), "deletionPolicy": spec.DeletionPolicy,
		"mode": spec.Failover.Mode, "pollInterval": spec.Failover.PollInterval.Duration, "threshold": spec.Failover.Threshold,
		"crashGrace": spec.Failover.CrashGrace.Duration, "cooldown": spec.Failover.Cooldown.Duration,
		"drainTimeout": spec.Failover.DrainTimeout.Duration, "onDivergence": spec.Failover.OnDivergence,
		"maxLostTransactions": spec.Failover.MaxLostTransactions,
		"leaseTimeout":        spec.Sidecar.LeaseTimeout.Duration, "peerCheckInterval": spec.Sidecar.PeerCheckInterval.Duration,
		"fenceTimeout": spec.Sidecar.FenceTimeout.Duration, "sidecarMemory": spec.Sidecar.Resources.Requests.Memory().String(),
		"size": spec.Sites[0].Storage.Size.String(), "issuerKind": spec.TLS.IssuerRef.Kind, "ttl": spec.DNS.TTLSeconds,
		"encryption": *spec.EncryptionAtRest,
	}
	yes := new(true)
	want := map[string]any{
		"image": "mysql:9.7", "imagePullPolicy": "IfNotPresent", "deletionPolicy": v1alpha1.DeletionRetain,
		"mode": v1alpha1.FailoverAuto, "pollInterval": 2 * time.Second, "threshold": int32(3),
		"crashGrace": 5 * time.Second, "cooldown": 10 * time.Minute,
		"drainTimeout": 30 * time.Second, "onDivergence": v1alpha1.DivergenceHold,
		"maxLostTransactions": (*int64)(nil),
		"leaseTimeout":        20 * time.Second, "peerCheckInterval": 2 * time.Second,
		"fenceTimeout": 2 * time.Second, "sidecarMemory": "64Mi",
		"size": "10Gi", "issuerKind": "Issuer", "ttl": int32(30),
		"encryption": v1alpha1.EncryptionAtRestSpec{
			Coverage: v1alpha1.CoverageSpec{Tables: yes, PrivilegeCheck: yes, RedoLog: yes, UndoLog: yes, BinaryLog: yes, SystemTablespace: yes},
			Keyring: v1alpha1.KeyringSpec{DataFileDir: "/run/mysql-keyring", MysqldDir: "/usr/sbin",
				PluginDir: "/usr/lib64/mysql/plugin", RetainVersions: 5, EscrowTimeoutSeconds: 600},
			TemporaryFiles: v1alpha1.TemporaryFilesSpec{Medium: v1alpha1.TemporaryInMemory},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// What our own clients send must pass too: zero structs are left out, durations are written in full.
func TestTypedObjectIsAdmitted(t *testing.T) {
	s := newServer(t)
	object := parse(t, minimal)
	s.admit(object, nil)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatal(err)
	}
	again, err := runtime.DefaultUnstructuredConverter.ToUnstructured(group)
	if err != nil {
		t.Fatal(err)
	}
	if errs := s.admit(again, object); len(errs) != 0 {
		t.Errorf("a decoded and encoded group is refused: %v", errs)
	}
}

// moving is a group whose role moves from paris to frankfurt.
const moving = "status/activeSite = frankfurt\n" +
	"status/transition = {kind: Emergency, step: Fencing, from: paris, to: frankfurt, reason: x, startedAt: \"2026-01-01T00:00:00.000000Z\"}\n"

func TestAdmitted(t *testing.T) {
	tests := map[string]struct{ old, change edit }{
		"minimal":                               {},
		"three sites, one dr-only":              {change: `spec/sites/append = {name: madrid, role: dr-only, priority: -1}`},
		"tls without issuer":                    {change: `spec/tls = {secretName: orders-tls}`},
		"another secret before it has run":      {old: `spec/tls = {secretName: t}`, change: `spec/tls = {secretName: u}`},
		"tls stays":                             {old: "status/epoch = 1\nspec/tls = {secretName: t}", change: "status/epoch = 1\nspec/tls = {secretName: t, issuerRef: {name: ca}}"},
		"encryption with tls":                   {change: "spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}"},
		"only the redo log covered":             {change: encryptedWith("tables: false, privilegeCheck: false, undoLog: false, binaryLog: false, systemTablespace: false")},
		"only the system tablespace covered":    {change: encryptedWith("tables: false, privilegeCheck: false, redoLog: false, undoLog: false, binaryLog: false")},
		"binary log uncovered later":            {old: "spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}", change: encryptedWith("binaryLog: false")},
		"binary log stays uncovered":            {old: encryptedWith("binaryLog: false"), change: encryptedWith("binaryLog: false, undoLog: false")},
		"binary log covered from the start":     {old: "spec/encryptionAtRest = {coverage: {binaryLog: false}}\nspec/tls = {secretName: t}", change: encryptedWith("binaryLog: true")},
		"redo log covered later":                {old: encryptedWith("redoLog: false"), change: encryptedWith("redoLog: true")},
		"nothing covered, and not enabled":      {change: `spec/encryptionAtRest = {coverage: {tables: false, redoLog: false, undoLog: false, binaryLog: false, systemTablespace: false}}`},
		"settings":                              {change: `spec/mysqlConf = {max_connections: "500", loose-x.y: "a b # c", sql_mode: ""}`},
		"temporary files on disk":               {change: `spec/encryptionAtRest = {temporaryFiles: {medium: Disk}}`},
		"more room for temporary files":         {change: `spec/encryptionAtRest = {temporaryFiles: {sizeLimit: 64Mi}}`},
		"keyring elsewhere":                     {change: `spec/encryptionAtRest = {keyring: {dataFileDir: /var/lib/mysql-keyring}}`},
		"tightest lease":                        {change: `spec/sidecar = {leaseTimeout: 5s, peerCheckInterval: 1s, fenceTimeout: 1s}`},
		"fast fence":                            {change: `spec/sidecar = {leaseTimeout: 15s, peerCheckInterval: 500ms, fenceTimeout: 500ms}`},
		"written out duration":                  {change: `spec/failover = {cooldown: 1h30m0s, pollInterval: 1.5s, crashGrace: 0s}`},
		"loss budget zero":                      {change: `spec/failover = {maxLostTransactions: 0}`},
		"size in bytes":                         {change: `spec/sites/0/storage = {size: "10737418240"}`},
		"volume grows":                          {change: `spec/sites/0/storage = {size: 20Gi}`},
		"volume written differently":            {change: `spec/sites/0/storage = {size: 10240Mi}`},
		"storage class kept":                    {old: `spec/sites/0/storage = {storageClassName: fast}`, change: `spec/sites/0/storage = {storageClassName: fast}`},
		"passive site removed":                  {old: "status/activeSite = paris\nspec/sites/append = {name: c, role: primary-candidate}", change: "status/activeSite = paris"},
		"uninvolved site removed in transition": {old: moving + "spec/sites/append = {name: c, role: dr-only}", change: moving},
		"transition from a removed site":        {old: moving + "spec/sites/0/name = c", change: moving + "spec/sites/0/name = d"},
		"a priority class":                      {change: `spec/priorityClassName = databases`},
		"labels and annotations of pods":        {change: "spec/podLabels = {team: payments, example.org/cost-center: \"42\", app.kubernetes.io/part-of: shop, my-k8s.io/x: a, empty: \"\"}\nspec/podAnnotations = {cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\", example.org/notes: \"a b\"}"},
		"pods spread over zones":                {change: `spec/topologySpreadConstraints = [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]`},
		"volume size taken back":                {old: "spec/sites/0/storage = {size: 1000Gi}", change: "spec/sites/0/storage = {size: 20Gi}"},
		"transition begins":                     {old: "status/activeSite = paris", change: moving},
		"transition ends":                       {old: moving, change: "status/activeSite = frankfurt"},
		"dr-only site rises in transition": {old: moving + "spec/sites/append = {name: c, role: primary-candidate}\nspec/sites/0/role = dr-only",
			change: moving + "spec/sites/append = {name: c, role: primary-candidate}"},
		"failover beside a removed site": {old: "status/activeSite = gone", change: "status/activeSite = paris"},
		"longest names": {change: `metadata/name = group-of-thirty-characters-abc
			spec/sites/0/name = twelve-chars`},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, old)
			tc.change.apply(t, object)
			if errs := s.admit(old, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			var before map[string]any
			if tc.old != "" || strings.HasPrefix(name, "volume") {
				before = old
			}
			if errs := s.admit(object, before); len(errs) != 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	encrypted := func(keyring string) edit {
		return edit("spec/encryptionAtRest = {keyring: {" + keyring + "}}")
	}
	const dir = "spec.encryptionAtRest.keyring.dataFileDir"
	tests := map[string]struct {
		change edit
		path   string
	}{
		"no spec":                            {`spec = remove`, "spec"},
		"101 silent polls":                   {`spec/failover = {threshold: 101}`, "spec.failover.threshold"},
		"unknown pull policy":                {`spec/imagePullPolicy = Sometimes`, "spec.imagePullPolicy"},
		"priority too low":                   {`spec/sites/0/priority = -1001`, "spec.sites[0].priority"},
		"priority too high":                  {`spec/sites/0/priority = 1001`, "spec.sites[0].priority"},
		"external address with a path":       {`spec/sites/0/externalAddress = db.example.org/x`, "spec.sites[0].externalAddress"},
		"spread by chance":                   {`spec/topologySpreadConstraints = [{topologyKey: zone, whenUnsatisfiable: Perhaps}]`, "spec.topologySpreadConstraints[0].whenUnsatisfiable"},
		"spread over nothing":                {`spec/topologySpreadConstraints = [{whenUnsatisfiable: ScheduleAnyway}]`, "spec.topologySpreadConstraints[0].topologyKey"},
		"spread twice by one label":          {`spec/topologySpreadConstraints = [{topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {topologyKey: a, whenUnsatisfiable: DoNotSchedule}]`, "spec.topologySpreadConstraints[1]"},
		"spread over no name":                {`spec/topologySpreadConstraints = [{topologyKey: "a b", whenUnsatisfiable: ScheduleAnyway}]`, "spec.topologySpreadConstraints[0].topologyKey"},
		"spread over a domain with a gap":    {`spec/topologySpreadConstraints = [{topologyKey: a..b/c, whenUnsatisfiable: ScheduleAnyway}]`, "spec.topologySpreadConstraints[0].topologyKey"},
		"spread over too long a domain":      {edit("spec/topologySpreadConstraints = [{topologyKey: " + strings.Repeat("x", 254) + "/c, whenUnsatisfiable: ScheduleAnyway}]"), "spec.topologySpreadConstraints[0].topologyKey"},
		"priority class with a gap":          {`spec/priorityClassName = a..b`, "spec.priorityClassName"},
		"priority class of the cluster":      {`spec/priorityClassName = system-node-critical`, "spec.priorityClassName"},
		"priority class with a slash":        {`spec/priorityClassName = a/b`, "spec.priorityClassName"},
		"label of the operator":              {`spec/podLabels = {mysql-mfg.io/role: primary}`, "spec.podLabels"},
		"label of the operator's, deeper":    {`spec/podLabels = {x.mysql-mfg.io/role: primary}`, "spec.podLabels"},
		"label that Services select by":      {`spec/podLabels = {app.kubernetes.io/name: other}`, "spec.podLabels"},
		"label of Kubernetes":                {`spec/podLabels = {topology.kubernetes.io/zone: a}`, "spec.podLabels"},
		"label of ReplicaSets":               {`spec/podLabels = {pod-template-hash: a}`, "spec.podLabels"},
		"no name of a label":                 {`spec/podLabels = {"a b": c}`, "spec.podLabels"},
		"domain of a label with a gap":       {`spec/podLabels = {a..b/c: d}`, "spec.podLabels"},
		"domain of a label that ends badly":  {`spec/podLabels = {a-.b/c: d}`, "spec.podLabels"},
		"domain of a label too long":         {edit("spec/podLabels = {" + strings.Repeat("x", 254) + "/c: d}"), "spec.podLabels"},
		"no value of a label":                {`spec/podLabels = {a: "b c"}`, "spec.podLabels.a"},
		"label of a pod too long":            {edit("spec/podLabels = {a: " + strings.Repeat("x", 64) + "}"), "spec.podLabels.a"},
		"annotation of the operator":         {`spec/podAnnotations = {mysql-mfg.io/spec-hash: a}`, "spec.podAnnotations"},
		"annotation of kubectl":              {`spec/podAnnotations = {kubectl.kubernetes.io/default-container: a}`, "spec.podAnnotations"},
		"profile of AppArmor":                {`spec/podAnnotations = {container.apparmor.security.beta.kubernetes.io/mysql: unconfined}`, "spec.podAnnotations"},
		"profile of seccomp":                 {`spec/podAnnotations = {seccomp.security.alpha.kubernetes.io/pod: unconfined}`, "spec.podAnnotations"},
		"domain of an annotation too long":   {edit("spec/podAnnotations = {" + strings.Repeat("x", 254) + "/c: d}"), "spec.podAnnotations"},
		"domain of an annotation with a gap": {`spec/podAnnotations = {a..b/c: d}`, "spec.podAnnotations"},
		"annotation too long":                {edit("spec/podAnnotations = {a: " + strings.Repeat("x", 2049) + "}"), "spec.podAnnotations.a"},
		"no name of an annotation":           {`spec/podAnnotations = {"a b": c}`, "spec.podAnnotations"},
		"label value too long":               {edit("spec/sites/0/nodeSelector = {a: " + strings.Repeat("x", 64) + "}"), "spec.sites[0].nodeSelector.a"},
		"secret name with a slash":           {`spec/tls = {secretName: other/secret}`, "spec.tls.secretName"},
		"issuer without name":                {`spec/tls = {secretName: a, issuerRef: {kind: Issuer}}`, "spec.tls.issuerRef.name"},
		"dns without name":                   {`spec/dns = {ttlSeconds: 5}`, "spec.dns.name"},
		"dns name with a space":              {`spec/dns = {name: "a b"}`, "spec.dns.name"},
		"dns cached for ever":                {`spec/dns = {name: a, ttlSeconds: 301}`, "spec.dns.ttlSeconds"},
		"dns never cached":                   {`spec/dns = {name: a, ttlSeconds: 0}`, "spec.dns.ttlSeconds"},
		"profile without name":               {`spec/backup = {profiles: [{}]}`, "spec.backup.profiles[0].name"},
		"profile with a slash":               {`spec/backup = {profiles: [{name: a/b}]}`, "spec.backup.profiles[0].name"},
		"more than a day to escrow":          {encrypted(`escrowTimeoutSeconds: 86401`), "spec.encryptionAtRest.keyring.escrowTimeoutSeconds"},
		"a cache too small":                  {`spec/cache = {engine: Valkey, maxMemory: 63Mi}`, "spec.cache.maxMemory"},
		"a cache too small for Dragonfly":    {`spec/cache = {enabled: true, maxMemory: 255Mi}`, "spec.cache.maxMemory"},
		"a cache of another engine":          {`spec/cache = {engine: Memcached}`, "spec.cache.engine"},
		"cache setting with a line break":    {`spec/cache = {config: {timeout: "5\nrequirepass x"}}`, "spec.cache.config.timeout"},
		"cache setting with a blank":         {`spec/cache = {config: {"timeout 5": ""}}`, "spec.cache.config"},
		"cache image with a blank":           {`spec/cache = {image: "valkey 9"}`, "spec.cache.image"},
		"TLS of the cache alone":             {`spec/cache = {tls: {enabled: true}}`, "spec.cache.tls.enabled"},
		"a cache volume too small":           {`spec/cache = {storage: {size: 1Mi}}`, "spec.cache.storage.size"},
		"a cache waited for too long":        {`spec/cache = {planned: {syncTimeout: 11m}}`, "spec.cache.planned.syncTimeout"},
		"an emergency that waits":            {`spec/cache = {emergencyBudget: 61s}`, "spec.cache.emergencyBudget"},
		"one site":                           {`spec/sites/1 = remove`, "spec.sites"},
		"one candidate":                      {`spec/sites/1/role = dr-only`, "spec.sites"},
		"no sites":                           {`spec/sites = remove`, "spec.sites"},
		"17 sites":                           {edit(strings.Repeat("spec/sites/append = {name: x, role: dr-only}\n", 15)), "spec.sites"},
		"same name twice":                    {`spec/sites/1/name = paris`, "spec.sites[1]"},
		"unknown role":                       {`spec/sites/0/role = primary`, "spec.sites[0].role"},
		"no role":                            {`spec/sites/0/role = remove`, "spec.sites[0].role"},
		"reserved site name":                 {`spec/sites/0/name = primary`, "spec.sites[0].name"},
		"reserved site name, replicas":       {`spec/sites/0/name = replicas`, "spec.sites[0].name"},
		"site name in capitals":              {`spec/sites/0/name = Paris`, "spec.sites[0].name"},
		"site name with a dot":               {`spec/sites/0/name = a.b`, "spec.sites[0].name"},
		"site name too long":                 {`spec/sites/0/name = abcdefghijklmnopqrstu`, "spec.sites[0].name"},
		"group name too long":                {`metadata/name = abcdefghijklmnopqrstuvwxyz-abcd`, "metadata.name"},
		"group name with a dot":              {`metadata/name = a.b`, "metadata.name"},
		"group name starts with digit":       {`metadata/name = 1a`, "metadata.name"},
		"names too long together":            {"metadata/name = abcdefghijklmnopqrstuvwxyz\nspec/sites/0/name = abcdefghijklmnopq", "spec.sites"},
		"unknown field":                      {`spec/failover = {treshold: 3}`, "spec.failover.treshold"},
		"empty image":                        {`spec/image = ""`, "spec.image"},
		"image with a space":                 {`spec/image = "mysql 9.7"`, "spec.image"},
		"setting with a line break":          {`spec/mysqlConf = {"a\nsuper_read_only": "OFF"}`, "spec.mysqlConf"},
		"setting ends in a line break":       {`spec/mysqlConf = {"a\n": "OFF"}`, "spec.mysqlConf"},
		"setting that includes a file":       {`spec/mysqlConf = {"!include /tmp/x": ""}`, "spec.mysqlConf"},
		"setting that opens a section":       {`spec/mysqlConf = {"[client]": ""}`, "spec.mysqlConf"},
		"setting with an equals sign":        {`spec/mysqlConf = {"a=b": ""}`, "spec.mysqlConf"},
		"empty setting":                      {`spec/mysqlConf = {"": "1"}`, "spec.mysqlConf"},
		"value with a line break":            {`spec/mysqlConf = {a: "1\nsuper_read_only=OFF"}`, "spec.mysqlConf.a"},
		"value ends in a line break":         {`spec/mysqlConf = {a: "1\n"}`, "spec.mysqlConf.a"},
		"value with a carriage return":       {`spec/mysqlConf = {a: "1\r"}`, "spec.mysqlConf.a"},
		"value too long":                     {edit("spec/mysqlConf = {a: " + strings.Repeat("x", 1025) + "}"), "spec.mysqlConf.a"},
		"tls without secret":                 {`spec/tls = {issuerRef: {name: ca}}`, "spec.tls.secretName"},
		"tls with empty secret":              {`spec/tls = {secretName: ""}`, "spec.tls.secretName"},
		"unknown issuer kind":                {`spec/tls = {secretName: a, issuerRef: {name: ca, kind: Vault}}`, "spec.tls.issuerRef.kind"},
		"encryption without tls":             {`spec/encryptionAtRest = {enabled: true}`, "spec.tls"},
		"nothing covered":                    {encryptedWith("tables: false, privilegeCheck: false, redoLog: false, undoLog: false, binaryLog: false, systemTablespace: false"), "spec.encryptionAtRest.coverage"},
		"covered only what users will make":  {encryptedWith("redoLog: false, undoLog: false, binaryLog: false, systemTablespace: false"), "spec.encryptionAtRest.coverage"},
		"only the binary log covered":        {encryptedWith("tables: false, redoLog: false, undoLog: false, systemTablespace: false"), "spec.encryptionAtRest.coverage"},
		"no room for temporary files":        {`spec/encryptionAtRest = {temporaryFiles: {sizeLimit: 63Mi}}`, "spec.encryptionAtRest.temporaryFiles.sizeLimit"},
		"temporary files that evict a pod":   {`spec/encryptionAtRest = {temporaryFiles: {medium: Disk, sizeLimit: 10Gi}}`, "spec.encryptionAtRest.temporaryFiles.sizeLimit"},
		"temporary files nowhere":            {`spec/encryptionAtRest = {temporaryFiles: {medium: HugePages}}`, "spec.encryptionAtRest.temporaryFiles.medium"},
		"keyring is the datadir":             {encrypted(`dataFileDir: /var/lib/mysql`), dir},
		"keyring below the datadir":          {encrypted(`dataFileDir: /var/lib/mysql/keyring`), dir},
		"keyring by dot dot":                 {encrypted(`dataFileDir: /var/lib/../lib/mysql`), dir},
		"keyring by trailing slash":          {encrypted(`dataFileDir: /var/lib/mysql/`), dir},
		"keyring by double slash":            {encrypted(`dataFileDir: /var//lib/mysql`), dir},
		"keyring by leading slashes":         {encrypted(`dataFileDir: //var/lib/mysql`), dir},
		"keyring by dot":                     {encrypted(`dataFileDir: /var/lib/./mysql`), dir},
		"keyring ends in dot":                {encrypted(`dataFileDir: /var/lib/mysql/.`), dir},
		"keyring ends in dot dot":            {encrypted(`dataFileDir: /var/lib/mysql/a/..`), dir},
		"keyring in a relative path":         {encrypted(`dataFileDir: run/keyring`), dir},
		"keyring with a line break":          {encrypted(`dataFileDir: "/run/keyring\n"`), dir},
		"keyring at the root":                {encrypted(`dataFileDir: /`), dir},
		"keyring hides the datadir":          {encrypted(`dataFileDir: /var/lib`), dir},
		"keyring hides the socket":           {encrypted(`dataFileDir: /run/mfg`), dir},
		"keyring hides accounts":             {encrypted(`dataFileDir: /etc`), dir},
		"mysqldDir relative":                 {encrypted(`mysqldDir: usr/sbin`), "spec.encryptionAtRest.keyring.mysqldDir"},
		"pluginDir with dot dot":             {encrypted(`pluginDir: /usr/../plugin`), "spec.encryptionAtRest.keyring.pluginDir"},
		"one version kept":                   {encrypted(`retainVersions: 1`), "spec.encryptionAtRest.keyring.retainVersions"},
		"51 versions kept":                   {encrypted(`retainVersions: 51`), "spec.encryptionAtRest.keyring.retainVersions"},
		"no time to escrow":                  {encrypted(`escrowTimeoutSeconds: 0`), "spec.encryptionAtRest.keyring.escrowTimeoutSeconds"},
		"unknown mode":                       {`spec/failover = {mode: auto}`, "spec.failover.mode"},
		"threshold zero":                     {`spec/failover = {threshold: 0}`, "spec.failover.threshold"},
		"poll too often":                     {`spec/failover = {pollInterval: 499ms}`, "spec.failover.pollInterval"},
		"poll too seldom":                    {`spec/failover = {pollInterval: 31s}`, "spec.failover.pollInterval"},
		"duration without unit":              {`spec/failover = {pollInterval: "2"}`, "spec.failover.pollInterval"},
		"duration as a number":               {`spec/failover = {pollInterval: 2}`, "spec.failover.pollInterval"},
		"negative duration":                  {`spec/failover = {crashGrace: -5s}`, "spec.failover.crashGrace"},
		"duration in words":                  {`spec/failover = {cooldown: 1 hour}`, "spec.failover.cooldown"},
		"duration beyond all numbers":        {`spec/failover = {cooldown: 99999999999999999999h}`, "spec.failover.cooldown"},
		"crash grace too long":               {`spec/failover = {crashGrace: 11m}`, "spec.failover.crashGrace"},
		"cooldown too long":                  {`spec/failover = {cooldown: 25h}`, "spec.failover.cooldown"},
		"no time to drain":                   {`spec/failover = {drainTimeout: 0s}`, "spec.failover.drainTimeout"},
		"negative loss budget":               {`spec/failover = {maxLostTransactions: -1}`, "spec.failover.maxLostTransactions"},
		"unknown divergence policy":          {`spec/failover = {onDivergence: Drop}`, "spec.failover.onDivergence"},
		"lease shorter than the checks":      {`spec/sidecar = {leaseTimeout: 20s, peerCheckInterval: 6s}`, "spec.sidecar.leaseTimeout"},
		"lease just too short":               {`spec/sidecar = {leaseTimeout: 17999ms, peerCheckInterval: 5s}`, "spec.sidecar.leaseTimeout"},
		"lease shorter than any may be":      {`spec/sidecar = {leaseTimeout: 4999ms, peerCheckInterval: 500ms, fenceTimeout: 500ms}`, "spec.sidecar.leaseTimeout"},
		"checks slower than the lease":       {`spec/sidecar = {peerCheckInterval: 10s}`, "spec.sidecar.leaseTimeout"},
		"fence slower than the lease":        {`spec/sidecar = {fenceTimeout: 20s}`, "spec.sidecar.leaseTimeout"},
		"lease too long":                     {`spec/sidecar = {leaseTimeout: 11m}`, "spec.sidecar.leaseTimeout"},
		"check too often":                    {`spec/sidecar = {peerCheckInterval: 0s}`, "spec.sidecar.peerCheckInterval"},
		"fence at once":                      {`spec/sidecar = {fenceTimeout: 0s}`, "spec.sidecar.fenceTimeout"},
		"tiny volume":                        {`spec/sites/0/storage = {size: 100Mi}`, "spec.sites[0].storage.size"},
		"volume size as a number":            {`spec/sites/0/storage = {size: 10737418240}`, "spec.sites[0].storage.size"},
		"volume size in words":               {`spec/sites/0/storage = {size: big}`, "spec.sites[0].storage.size"},
		"unknown deletion policy":            {`spec/deletionPolicy = Orphan`, "spec.deletionPolicy"},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, minimal)
			tc.change.apply(t, object)
			wantError(t, s, object, nil, tc.path)
		})
	}
}

// encryptedWith turns encryption on with a coverage.
func encryptedWith(coverage string) edit {
	return edit("spec/encryptionAtRest = {enabled: true, coverage: {" + coverage + "}}\nspec/tls = {secretName: t}")
}

func TestChangeRefused(t *testing.T) {
	encrypted := edit("spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}")
	const third = "spec/sites/append = {name: c, role: primary-candidate}\n"
	const transition = moving + third
	tests := map[string]struct {
		old, change edit
		path        string
	}{
		"storage class changes":                    {`spec/sites/0/storage = {storageClassName: a}`, `spec/sites/0/storage = {storageClassName: b}`, "spec.sites[0].storage.storageClassName"},
		"storage class goes":                       {`spec/sites/0/storage = {storageClassName: a}`, ``, "spec.sites[0].storage.storageClassName"},
		"storage class comes":                      {``, `spec/sites/0/storage = {storageClassName: a}`, "spec.sites[0].storage.storageClassName"},
		"engine of a running cache":                {`spec/cache = {enabled: true}`, `spec/cache = {enabled: true, engine: Valkey}`, "spec.cache.engine"},
		"TLS of a running cache goes":              {"spec/cache = {enabled: true}\nspec/tls = {secretName: t}", "spec/cache = {enabled: true, tls: {enabled: false}}\nspec/tls = {secretName: t}", "spec.cache.tls.enabled"},
		"volume of a cache":                        {`spec/cache = {enabled: true, storage: {size: 1Gi}}`, `spec/cache = {enabled: true, storage: {size: 2Gi}}`, "spec.cache.storage"},
		"encryption off":                           {encrypted, "spec/encryptionAtRest = {enabled: false}\nspec/tls = {secretName: t}", "spec.encryptionAtRest"},
		"the last coverage that makes a key goes":  {encrypted, encryptedWith("redoLog: false, undoLog: false, binaryLog: false, systemTablespace: false"), "spec.encryptionAtRest.coverage"},
		"binary log covered later":                 {encryptedWith("binaryLog: false"), encryptedWith("binaryLog: true"), "spec.encryptionAtRest.coverage.binaryLog"},
		"binary log covered later by default":      {encryptedWith("binaryLog: false"), encrypted, "spec.encryptionAtRest.coverage.binaryLog"},
		"encryption removed":                       {encrypted, `spec/tls = {secretName: t}`, "spec.encryptionAtRest"},
		"tls goes under encryption":                {encrypted, `spec/encryptionAtRest = {enabled: true}`, "spec.tls"},
		"tls comes":                                {``, `spec/tls = {secretName: t}`, "spec.tls"},
		"tls goes":                                 {`spec/tls = {secretName: t}`, ``, "spec.tls"},
		"another secret under a group that ran":    {"status/epoch = 1\nspec/tls = {secretName: t}", "status/epoch = 1\nspec/tls = {secretName: u}", "spec.tls.secretName"},
		"active site removed":                      {"status/activeSite = paris\nspec/sites/append = {name: c, role: primary-candidate}", "status/activeSite = paris\nspec/sites/0/name = c", "spec.sites"},
		"old active site removed in transition":    {transition, "spec/sites/0/name = c", "spec.sites"},
		"new active site removed in transition":    {transition, "spec/sites/1/name = c", "spec.sites"},
		"old active site dr-only in transition":    {transition, third + "spec/sites/0/role = dr-only", "spec.sites"},
		"new active site dr-only in transition":    {transition, third + "spec/sites/1/role = dr-only", "spec.sites"},
		"first active site removed while it opens": {"status/activeSite = paris\nstatus/transition = {kind: Bootstrap, step: Opening, to: paris, reason: x, startedAt: \"2026-01-01T00:00:00.000000Z\"}\n" + third, "spec/sites/0/name = c", "spec.sites"},
		"active site becomes dr-only":              {"status/activeSite = paris\nspec/sites/append = {name: c, role: primary-candidate}", "status/activeSite = paris\nspec/sites/append = {name: c, role: primary-candidate}\nspec/sites/0/role = dr-only", "spec.sites"},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, old)
			if errs := s.admit(old, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			tc.change.apply(t, object)
			wantError(t, s, object, old, tc.path)
		})
	}
}

func wantError(t *testing.T, s *server, object, old map[string]any, path string) {
	t.Helper()
	errs := s.admit(object, old)
	if len(errs) == 0 {
		t.Fatalf("admitted, want an error at %s", path)
	}
	found := false
	for _, err := range errs {
		found = found || err.Field == path
		if err.Detail == "" && err.Type != "FieldValueRequired" && err.Type != "FieldValueDuplicate" {
			t.Errorf("%v has no message", err)
		}
		if strings.Contains(err.Detail, "failed rule") {
			t.Errorf("%v shows the rule instead of a message", err)
		}
	}
	if !found {
		t.Errorf("errors %v, want one at %s", errs, path)
	}
}
