// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Probes are writers that are connected directly to every site's pod, from a network of their own, so that a cut
// between sites and operator does not cut them. Nearly all their rows are refused; those that are not tell which site
// accepted commits at what time.
//
// A pod that appears gets a probe, and a probe goes on until the end: the old pod of a site may still run after its
// object is gone, and that is just when it must not accept anything.
type Probes struct {
	group *Group
	dir   string
	run   string
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu    sync.Mutex
	procs map[string]*probe
	// kinds are what is written beside single rows, each by a probe of its own.
	kinds []load.Kind
	sight sight
	err   error
}

type probe struct {
	site, journal string
	kind          load.Kind
	cmd           *exec.Cmd
}

// probeLife bounds a probe whose harness was killed.
const probeLife = "90m"

// StartProbes starts a probe for every pod and one for each that appears until Stop.
func (g *Group) StartProbes(ctx context.Context, run, dir string) (*Probes, error) {
	if err := g.writeSecrets(dir); err != nil {
		return nil, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Probes{group: g, dir: dir, run: run, stop: stop, procs: map[string]*probe{}, sight: sight{last: time.Now()}}
	if err := p.look(watch); err != nil {
		stop()
		return nil, err
	}
	p.done.Go(func() { p.follow(watch) })
	return p, nil
}

// follow looks for new pods until it is told to stop.
func (p *Probes) follow(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := p.look(ctx)
		p.mu.Lock()
		if hole := p.sight.look(began, time.Now(), err); hole != nil && ctx.Err() == nil && p.err == nil {
			p.err = hole
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// WithoutAPI does what stops the API server and starts it again. While none runs there are no new pods, so the probes miss nothing
// when they cannot list them.
func (p *Probes) WithoutAPI(do func() error) error {
	p.mu.Lock()
	p.sight.stopped()
	p.mu.Unlock()
	err := do()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sight.started(time.Now())
	return err
}

func (g *Group) writeSecrets(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "password"), []byte(g.password), 0o600)
	if g.ca != nil {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "ca.crt"), g.ca, 0o600))
	}
	if err != nil {
		return fmt.Errorf("write secrets for probes: %w", err)
	}
	return nil
}

func (p *Probes) look(ctx context.Context) error {
	pods, err := p.group.Pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if err := p.watch(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// watch starts a probe for a pod's address. A pod that lived through a loss of power has a new one.
func (p *Probes) watch(ctx context.Context, pod corev1.Pod) error {
	if pod.Status.PodIP == "" || !live(pod) {
		return nil
	}
	p.mu.Lock()
	kinds := append([]load.Kind{load.Rows}, p.kinds...)
	p.mu.Unlock()
	for _, kind := range kinds {
		if err := p.watchKind(ctx, pod, kind); err != nil {
			return err
		}
	}
	return nil
}

func (p *Probes) watchKind(ctx context.Context, pod corev1.Pod, kind load.Kind) error {
	key := string(pod.UID) + " " + pod.Status.PodIP + " " + string(kind)
	p.mu.Lock()
	_, known := p.procs[key]
	n := len(p.procs)
	p.mu.Unlock()
	if known {
		return nil
	}
	proc := &probe{site: pod.Labels[v1alpha1.LabelSite], kind: kind}
	id := fmt.Sprintf("%s-%s-%d%s", p.run, proc.site, n, kind)
	if err := p.start(ctx, proc, id, pod.Status.PodIP); err != nil {
		return fmt.Errorf("start probe of %s: %w", proc.site, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.procs[key] = proc
	return nil
}

func (p *Probes) start(ctx context.Context, proc *probe, id, ip string) error {
	g := p.group
	program, err := g.Program("mfg-e2e")
	if err != nil {
		return err
	}
	proc.journal = filepath.Join(p.dir, id+".jsonl")
	argv := []string{
		program, "run", "--id=" + id, "--site=" + proc.site, "--group=" + g.Name, "--table=" + tableOf(proc.kind), "--kind=" + string(proc.kind), "--user=" + appUser,
		"--addr=" + net.JoinHostPort(ip, "3306"), "--password-file=" + filepath.Join(p.dir, "password"),
		"--journal=" + proc.journal, "--concurrency=2", fmt.Sprintf("--rate=%d", rateOf(proc.kind)), "--refused-rate=40", "--duration=" + probeLife,
	}
	if g.ca != nil {
		argv = append(argv, "--tls-ca="+filepath.Join(p.dir, "ca.crt"),
			"--tls-server-name="+v1alpha1.SiteName(g.Name, proc.site)+"."+g.Namespace+".svc")
	}
	argv = append(argv, g.ProbeArgs...)
	// Not the context of the watch: a probe is to end by itself, in good order.
	if proc.cmd, err = g.Lab.Command(context.WithoutCancel(ctx), cluster.ClientName, argv...); err != nil {
		return err
	}
	proc.cmd.Stderr = os.Stderr
	// Ctrl-C goes to the program that started the probes, not to them.
	proc.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := proc.cmd.Start(); err != nil {
		return fmt.Errorf("start process: %w", err)
	}
	return nil
}

// AwaitCommit waits until a site's probe got a commit acknowledged.
func (p *Probes) AwaitCommit(ctx context.Context, site string, limit time.Duration) error {
	return Poll(ctx, limit, "a commit on "+site, func(context.Context) error {
		for _, j := range p.Peek(site) {
			if len(j.Commits) > 0 {
				return nil
			}
		}
		return errors.New("there is none yet")
	})
}

// Peek reads the journals of a site's probes while they write them. They are not whole.
func (p *Probes) Peek(site string) []journal.Journal {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []journal.Journal
	for _, proc := range p.procs {
		if proc.site != site {
			continue
		}
		if j, err := journal.ReadFile(proc.journal); err == nil {
			all = append(all, j)
		}
	}
	return all
}

// Stop ends all probes in good order and returns the journals of those that wrote single rows, and of the others. Every one
// must be whole.
func (p *Probes) Stop() (rows, mixed []journal.Journal, err error) {
	p.stop()
	p.done.Wait()
	errs := []error{p.err}
	for _, proc := range p.procs {
		errs = append(errs, proc.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, proc := range p.procs {
		if err := proc.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("probe of %s: %w", proc.site, err))
			continue
		}
		j, err := journal.ReadFile(proc.journal)
		if err == nil && !j.Complete {
			err = fmt.Errorf("journal of %s is not whole", j.Writer)
		}
		errs = append(errs, err)
		if proc.kind == load.Rows {
			rows = append(rows, j)
		} else {
			mixed = append(mixed, j)
		}
	}
	p.procs = nil
	return rows, mixed, errors.Join(errs...)
}
