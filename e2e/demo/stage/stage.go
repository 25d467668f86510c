// SPDX-License-Identifier: Apache-2.0

// Package stage is what the demo, the benchmarks and the lab suites have in common: a lab with the operator installed
// through its chart, groups in it, witnesses that write and journal, faults, and the verdict over what the witnesses
// saw. It does what a user would do, with kubectl, helm and the lab; nothing here knows how the operator works.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// Stage is a running lab with an administrator's access to it.
type Stage struct {
	Lab  *cluster.Cluster
	Kube client.Client
	Core kubernetes.Interface
	// Repo is the checkout that charts and programs come from.
	Repo string

	out   io.Writer
	began time.Time
}

// Sites are the lab's site nodes, in the order of the promotion priority that groups give them.
var Sites = []string{"east", "west", "south"}

// Empty is a stage without a lab, for tests: it can only say what goes on.
func Empty(out io.Writer) *Stage { return &Stage{out: out, began: time.Now()} }

// Open attaches to the lab, bringing it up if none runs, and takes back every fault that an earlier run left behind.
func Open(ctx context.Context, out io.Writer) (*Stage, error) {
	repo, err := cluster.FindRepo()
	if err != nil {
		return nil, err
	}
	s := Empty(out)
	s.Repo = repo
	if err := s.ensureLab(ctx); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	return s, s.Restore(ctx)
}

func (s *Stage) ensureLab(ctx context.Context) error {
	lab, err := cluster.Open("")
	if err == nil {
		st, err := lab.Status(ctx)
		if err != nil {
			return err
		}
		if st.Phase == "running" && !st.Over {
			if !st.API {
				return fmt.Errorf("the lab in %s runs but its API server does not answer: `bin/lab down`, then again", st.Dir)
			}
			return s.useLab(ctx, lab)
		}
	}
	s.Say("bringing up the lab")
	s.Lab, err = cluster.Up(ctx, cluster.Options{Sites: Sites, Out: s.out, Repo: s.Repo})
	return err
}

// useLab takes a lab that runs already and gives it the images of this checkout.
func (s *Stage) useLab(ctx context.Context, lab *cluster.Cluster) error {
	nodes, err := lab.Nodes()
	if err != nil {
		return err
	}
	for _, want := range append([]string{cluster.HubName}, Sites...) {
		if !slices.ContainsFunc(nodes, func(e cluster.Endpoint) bool { return e.Name == want }) {
			return fmt.Errorf("the lab that runs has no node %s: `bin/lab down`, then again", want)
		}
	}
	s.Lab = lab
	s.Say("using the lab in %s", lab.Dir())
	s.Say("building the images of this checkout")
	_, err = lab.BuildImages(ctx, s.Repo)
	return err
}

func (s *Stage) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", s.Lab.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.WarningHandlerWithContext = rest.NoWarnings{}
	log.SetLogger(logr.Discard()) // or controller-runtime complains on a newcomer's screen
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build scheme: %w", err)
	}
	if s.Kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the lab: %w", err)
	}
	if s.Core, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to the lab: %w", err)
	}
	return nil
}

// Restore takes back every fault that is in force: cuts, pauses, dead nodes.
func (s *Stage) Restore(ctx context.Context) error {
	st, err := s.Lab.Status(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if len(st.Drops) > 0 {
		errs = append(errs, s.Lab.HealAllNet(ctx))
	}
	broken := false
	for _, n := range st.Nodes {
		broken = broken || n.Killed || n.Cut || n.Paused
		switch {
		case n.Killed:
			s.Say("starting node %s, which an earlier run left dead", n.Name)
			errs = append(errs, s.Lab.StartNode(ctx, n.Name))
		case n.Paused:
			errs = append(errs, s.Lab.ResumeNode(ctx, n.Name))
		}
		if n.Cut {
			errs = append(errs, s.Lab.HealNode(ctx, n.Name))
		}
	}
	if err := errors.Join(errs...); err != nil || !broken {
		return err
	}
	return s.Lab.AwaitReady(ctx, 2*time.Minute)
}

// Say prints a line of progress with the time since the start.
func (s *Stage) Say(format string, args ...any) {
	fmt.Fprintf(s.out, "[%6.1fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Program is the path of one of the project's programs in bin/.
func (s *Stage) Program(name string) (string, error) {
	path := filepath.Join(s.Repo, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find %s: %w (make build)", name, err)
	}
	return path, nil
}

// Namespace makes a namespace whose pods must be restricted, and waits until pods can be created in it.
func (s *Stage) Namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	ns.Name = name
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if err := s.Kube.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return Poll(ctx, time.Minute, "namespace "+name, func(ctx context.Context) error {
		return s.Kube.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// interval is how often Poll looks.
const interval = 200 * time.Millisecond

// slowMachine is how many times longer a wait may take than on two idle processors. Machines are shared: the tests of
// mysqld took 6 min 46 s on one day and 11 min 20 s on another. Only a wait that fails takes longer for it.
const slowMachine = 3

// Poll tries until it succeeds, and then tells the last error. limit is enough on two idle processors; see slowMachine.
func Poll(ctx context.Context, limit time.Duration, what string, try func(context.Context) error) error {
	limit *= slowMachine
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		// The end of the time is no news; what was seen before it is.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait %s for %s: %w", limit, what, last)
		case <-time.After(interval):
		}
	}
}
