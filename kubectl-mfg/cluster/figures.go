// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

const (
	// figuresMost is how many pods are asked for figures, figuresAtOnce how many of them at a time.
	figuresMost   = 32
	figuresAtOnce = 4
	// figuresTimeout bounds each way to one sidecar: a hanging one holds up only its own figures.
	figuresTimeout = 2 * time.Second
)

// Figures asks the sidecars of a group what they have measured, through the API server's proxy, or a forwarded port if the proxy does
// not reach one. An error means that their pods cannot be found; a sidecar that does not answer is a reading that says why.
func (a *API) Figures(ctx context.Context, namespace, group string) ([]gauge.Reading, error) {
	list, err := a.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(group, ""), Limit: figuresMost})
	if err != nil {
		return nil, cli.RightsHint(err, "list", "pods", namespace)
	}
	var (
		mu    sync.Mutex
		all   []gauge.Reading
		asked sync.WaitGroup
		turns = make(chan struct{}, figuresAtOnce)
	)
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue // nothing is known of a site without a running pod
		}
		asked.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			r := a.figuresOf(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		})
	}
	asked.Wait()
	return all, nil
}

func (a *API) figuresOf(ctx context.Context, pod corev1.Pod) gauge.Reading {
	site := pod.Labels[v1alpha1.LabelSite]
	r, err := a.proxiedFigures(ctx, pod, site)
	if err != nil && ctx.Err() == nil && MayForward(err) {
		forwarded, failed := a.forwardedFigures(ctx, pod, site)
		if failed == nil {
			return forwarded
		}
		err = moreTelling(err, failed)
	}
	switch {
	case apierrors.IsForbidden(err):
		return gauge.Unread(site, "you may neither get pods/proxy nor create pods/portforward in namespace "+pod.Namespace)
	case err != nil:
		return gauge.Unread(site, "its sidecar does not answer: "+cli.FirstLine(err))
	}
	return r
}

func (a *API) proxiedFigures(ctx context.Context, pod corev1.Pod, site string) (gauge.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
	defer cancel()
	body, err := a.kube.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(wire.PortSidecar), wire.PathMetrics, nil).Stream(ctx)
	if err != nil {
		return gauge.Reading{}, err
	}
	return read(site, body), nil
}

// forwardedFigures has its own deadline: the proxy may have used up the other.
func (a *API) forwardedFigures(ctx context.Context, pod corev1.Pod, site string) (gauge.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, figuresTimeout)
	defer cancel()
	port, end, err := a.forwardTo(ctx, pod, wire.PortSidecar)
	if err != nil {
		return gauge.Reading{}, err
	}
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, wire.PathMetrics), nil)
	if err != nil {
		return gauge.Reading{}, fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return gauge.Reading{}, fmt.Errorf("ask the sidecar through a forwarded port: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return gauge.Reading{}, fmt.Errorf("the sidecar answered %s", resp.Status)
	}
	return read(site, resp.Body), nil
}

// read reads a body up to a bound, and closes it.
func read(site string, body io.ReadCloser) gauge.Reading {
	defer func() { _ = body.Close() }()
	return gauge.Parse(site, body)
}
