// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// field is everything of one point: a control plane, fake sites, and the operator between them.
type field struct {
	*bench
	size size
	dir  string

	world    *world
	control  *control
	kube     client.Client
	mysqlds  *mysqlds
	sidecars *sidecars
	caches   *caches
	kubelet  *kubelet
	operator *process

	statusURL, metricsURL string
	closers               []func()
}

// measure makes a field, measures it and takes it away.
func (b *bench) measure(ctx context.Context, s size) (*point, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.say("%d groups of %d sites", s.groups, s.sites)
	f := &field{bench: b, size: s, dir: filepath.Join(filepath.Dir(b.options.out), "scale", fmt.Sprintf("%dx%d", s.groups, s.sites))}
	defer func() {
		cancel()
		f.close()
	}()
	began := time.Now()
	if err := f.build(ctx); err != nil {
		return nil, err
	}
	if err := f.awaitGroups(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if err := pollAsMeasured(ctx, f.kube, f.world, b.options.poll); err != nil {
		return nil, err
	}
	b.say("all groups are ready after %s; measuring for %s", took.Round(time.Second), b.options.window)
	if err := wait(ctx, b.options.settle); err != nil {
		return nil, err
	}
	p, o, err := f.watch(ctx)
	if p != nil {
		p.BringUpSeconds = round(took.Seconds())
	}
	if err == nil && f.options.backups {
		err = f.backups(ctx, o.ages, p)
	}
	return p, err
}

// close takes everything away, the operator first.
func (f *field) close() {
	f.operator.stop()
	for i := len(f.closers) - 1; i >= 0; i-- {
		f.closers[i]()
	}
	if f.sidecars != nil {
		f.sidecars.done.Wait()
	}
	f.control.stop()
	// The logs stay; the data of etcd is large.
	_ = os.RemoveAll(filepath.Join(f.dir, "etcd"))
}

func (f *field) build(ctx context.Context) error {
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("clear %s: %w", f.dir, err)
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", f.dir, err)
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", f.dir, err)
	}
	f.dir = dir
	if f.control, err = startControl(ctx, f.dir); err != nil {
		return err
	}
	if f.kube, err = newClient(f.control.config); err != nil {
		return err
	}
	var certificate *certificates
	if !f.options.plain {
		if certificate, err = makeCertificates(); err != nil {
			return err
		}
	}
	if err := prepare(ctx, f.kube, certificate); err != nil {
		return err
	}
	if err := f.populate(ctx, certificate); err != nil {
		return err
	}
	if err := f.startOperator(); err != nil {
		return err
	}
	return makeGroups(ctx, f.kube, f.world, f.options)
}

// populate starts the fakes.
func (f *field) populate(ctx context.Context, certificate *certificates) error {
	f.world = newWorld(f.size)
	conf, err := certificate.server()
	if err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	f.statusURL, f.metricsURL = local(ports[0]), local(ports[1])
	f.mysqlds = &mysqlds{world: f.world, tls: conf}
	f.sidecars = &sidecars{world: f.world, operator: f.statusURL}
	// Every address of the loopback network at once; which site is meant is told by the one that was called.
	admin, err := f.listen(ctx, wire.PortMySQLAdmin)
	if err != nil {
		return err
	}
	push, err := f.listen(ctx, wire.PortSidecar)
	if err != nil {
		return err
	}
	go f.mysqlds.serve(admin)
	server := f.sidecars.server()
	f.closers = append(f.closers, func() { _ = server.Close() })
	go func() { _ = server.Serve(push) }() // until it is closed
	f.caches = &caches{world: f.world, tls: conf, began: time.Now()}
	if f.options.cache {
		l, err := f.listen(ctx, v1alpha1.CachePort)
		if err != nil {
			return err
		}
		go f.caches.serve(l)
	}
	core, err := kubernetes.NewForConfig(f.control.config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := makeNodes(ctx, core, f.size.sites); err != nil {
		return err
	}
	f.kubelet = newKubelet(core, f.world, f.sidecars)
	return f.kubelet.start(ctx)
}

func local(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

func (f *field) listen(ctx context.Context, port int) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "0.0.0.0:"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("listen as the sites do: %w", err)
	}
	f.closers = append(f.closers, func() { _ = l.Close() })
	return l, nil
}

// startOperator starts the real operator as its chart does, but for the addresses.
func (f *field) startOperator() error {
	kubeconfig, err := f.control.kubeconfig()
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(f.options.operator)
	if err != nil {
		return fmt.Errorf("find the operator: %w", err)
	}
	cores := min(f.options.cores, runtime.NumCPU())
	argv := []string{"taskset", "--cpu-list", "0-" + strconv.Itoa(cores-1), path,
		"--leader-elect=true", "--metrics-bind-address=" + f.metricsURL[len("http://"):],
		"--health-probe-bind-address=127.0.0.1:" + strconv.Itoa(ports[0]), "--auxiliary-bind-address=" + f.statusURL[len("http://"):],
		"--auxiliary-url=" + f.statusURL, "--sidecar-image=mfg-sidecar:scale", "--watch-namespaces=", "--log-level=info",
	}
	if f.options.backups {
		argv = append(argv, "--backup-image=mfg-backup:scale", "--backups-at-once="+strconv.Itoa(f.options.atOnce))
	}
	argv = append(argv, strings.Fields(f.options.args)...)
	f.operator, err = launch(f.dir, "operator", []string{
		"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + operatorNamespace, "GOMAXPROCS=" + strconv.Itoa(cores),
		"GOMEMLIMIT=" + f.options.memLimit,
	}, argv...)
	return err
}

// chartMemLimit is goMemLimit of charts/mfg/values.yaml.
const chartMemLimit = "580MiB"

// awaitGroups waits until every group is as it is to stay.
func (f *field) awaitGroups(ctx context.Context) error {
	said := time.Now()
	p := patience{limit: f.options.bringUp, every: 2 * time.Second}
	err := poll(ctx, p, "all groups", func(ctx context.Context) error {
		if err := errors.Join(f.operator.alive(), f.control.api.alive(), f.control.etcd.alive()); err != nil {
			return err
		}
		list, err := (&apiclient.Client{}).Status(ctx, f.statusURL)
		if err != nil {
			return err
		}
		whole := 0
		for _, g := range list.Groups {
			whole += count(isWhole(g))
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			pods, trouble := f.kubelet.progress()
			f.say("  %d of %d groups are whole, %d of %d pods run (last trouble: %v)", whole, f.size.groups, pods, len(f.world.all)*(1+count(f.options.cache)), trouble)
		}
		if whole < f.size.groups {
			return fmt.Errorf("%d of %d groups are whole", whole, f.size.groups)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return poll(ctx, p, "the status of all groups", f.settled)
}

// isWhole is true for a group with one open site that all others follow.
func isWhole(g wire.GroupStatus) bool {
	primaries := 0
	for _, s := range g.Sites {
		switch s.State {
		case string(v1alpha1.SitePrimary):
			primaries++
		case string(v1alpha1.SiteReplica):
		default:
			return false
		}
	}
	return primaries == 1 && len(g.Sites) > 1
}

// settled tells why the objects of the groups do not say yet that all is well.
func (f *field) settled(ctx context.Context) error {
	var list v1alpha1.MysqlFailoverGroupList
	if err := f.kube.List(ctx, &list, client.InNamespace(groupNamespace)); err != nil {
		return err
	}
	left, why := 0, ""
	for _, g := range list.Items {
		if reason := unsettled(g, f.options.cache); reason != "" {
			left++
			why = g.Name + ": " + reason
		}
	}
	if left > 0 {
		return fmt.Errorf("%d groups are not done (%s)", left, why)
	}
	return nil
}

func unsettled(g v1alpha1.MysqlFailoverGroup, withCache bool) string {
	want := map[string]string{v1alpha1.ConditionReady: "True", v1alpha1.ConditionProgressing: "False"}
	if withCache {
		want[v1alpha1.ConditionCacheReady] = "True"
	}
	for _, c := range g.Status.Conditions {
		if status, known := want[c.Type]; known && string(c.Status) == status {
			delete(want, c.Type)
		}
	}
	for name := range want {
		return name
	}
	return ""
}

// reading is the state of all counters at one moment.
type reading struct {
	at                          time.Time
	operator, etcd, api, own    usage
	writes                      map[string]float64
	pushes, dials, asks, failed int64
	queries, logins, goroutines float64
	cacheAsks                   int64
}

func (f *field) read(ctx context.Context) (reading, error) {
	r := reading{
		at: time.Now(), pushes: f.sidecars.pushes.Load(), dials: f.sidecars.dials.Load(), asks: f.sidecars.asks.Load(), failed: f.sidecars.failed.Load(),
		queries: float64(f.mysqlds.queries.Load()), logins: float64(f.mysqlds.logins.Load()), cacheAsks: f.caches.asks.Load(),
	}
	var errs []error
	for pid, into := range map[int]*usage{
		f.operator.cmd.Process.Pid: &r.operator, f.control.etcd.cmd.Process.Pid: &r.etcd, f.control.api.cmd.Process.Pid: &r.api, os.Getpid(): &r.own,
	} {
		var err error
		*into, err = usageOf(pid)
		errs = append(errs, err)
	}
	var err error
	r.writes, err = f.control.writes(ctx)
	errs = append(errs, err)
	metrics, err := fetch(ctx, http.DefaultClient, f.metricsURL+"/metrics")
	errs = append(errs, err)
	r.goroutines = gauge(metrics, "go_goroutines")
	return r, errors.Join(errs...)
}

// watch measures for the window's time.
func (f *field) watch(ctx context.Context) (*point, observations, error) {
	o := observations{}
	before, err := f.read(ctx)
	if err != nil {
		return nil, o, err
	}
	stopProfile := f.profile(ctx)
	for end := before.at.Add(f.options.window); time.Now().Before(end); {
		// Not in step with the polls, or every look would find them at the same age.
		if err := wait(ctx, time.Second+rand.N(1500*time.Millisecond)); err != nil {
			return nil, o, err
		}
		if err := errors.Join(f.operator.alive(), f.control.api.alive()); err != nil {
			return nil, o, err
		}
		list, err := (&apiclient.Client{}).Status(ctx, f.statusURL)
		if err != nil {
			return nil, o, err
		}
		used, err := usageOf(f.operator.cmd.Process.Pid)
		if err != nil {
			return nil, o, err
		}
		o.take(list, used)
	}
	after, err := f.read(ctx)
	if err != nil {
		return nil, o, err
	}
	stopProfile()
	p := f.sumUp(before, after, o)
	if o.unwhole > 0 {
		return p, o, fmt.Errorf("groups were not whole %d times while nothing was done to them", o.unwhole)
	}
	return p, o, nil
}

// observations are what was seen of the groups during the window.
type observations struct {
	ages    []float64
	rssMiB  float64
	unwhole int
}

func (o *observations) take(list wire.StatusList, used usage) {
	for _, g := range list.Groups {
		o.ages = append(o.ages, list.IssuedAt.Sub(g.ObservedAt).Seconds())
		o.unwhole += count(!isWhole(g))
	}
	o.rssMiB = max(o.rssMiB, used.rssMiB)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// wait waits.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
