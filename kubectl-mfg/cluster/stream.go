// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// Exec runs a command in a container, over a WebSocket, or over SPDY if a proxy knows nothing else.
func (a *API) Exec(ctx context.Context, e pods.Execution) error {
	req := a.kube.CoreV1().RESTClient().Post().Namespace(e.Namespace).Resource("pods").Name(e.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: e.Container, Command: e.Command, Stdin: e.In != nil, Stdout: e.Out != nil, Stderr: e.ErrOut != nil && !e.TTY, TTY: e.TTY,
		}, scheme.ParameterCodec)
	refusal := &refusedUpgrade{}
	config := refusal.noting(a.config)
	overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, req.URL())
	if err != nil {
		return fmt.Errorf("prepare exec: %w", err)
	}
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, req.URL().String())
	if err != nil {
		return fmt.Errorf("prepare exec: %w", err)
	}
	executor, err := remotecommand.NewFallbackExecutor(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("prepare exec: %w", err)
	}
	stderr := e.ErrOut
	if e.TTY {
		stderr = nil
	}
	return refusal.instead(executor.StreamWithContext(ctx, remotecommand.StreamOptions{
		Stdin: e.In, Stdout: e.Out, Stderr: stderr, Tty: e.TTY, TerminalSizeQueue: e.Resize,
	}))
}

// MayForward is true if a port-forward may work when the Service proxy did not: the right to one says nothing about the other,
// and an API server that does not reach the operator's network may reach it through the kubelet. The operator's own answer is
// final, and so is a lack of ready pods.
func MayForward(err error) bool {
	var said apierrors.APIStatus
	var unanswered *url.Error
	switch {
	case err == nil || strings.Contains(err.Error(), live.NoEndpoints):
		return false
	case errors.Is(err, live.ErrAsksWho):
		return true
	case errors.As(err, &said):
		switch said.Status().Code {
		case http.StatusForbidden, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &unanswered)
}

// forwarded asks the operator through a forwarded port.
func (a *API) forwarded(ctx context.Context, operatorNamespace string, params map[string]string) (raw []byte, err error) {
	err = a.eachOperator(ctx, operatorNamespace, func(ctx context.Context, pod corev1.Pod) (err error) {
		raw, err = a.askPod(ctx, pod, params)
		return err
	})
	return raw, err
}

// eachOperator tries the pods of the operator until one is of use: one stands by, another is on a node that is lost. Each has its share of
// the time that is left. That a pod stands by says less than any other error: the one that leads may be out of reach.
func (a *API) eachOperator(ctx context.Context, operatorNamespace string, try func(context.Context, corev1.Pod) error) error {
	pods, err := a.operators(ctx, operatorNamespace)
	if err != nil {
		return err
	}
	for i, pod := range pods {
		share, cancel := feed.Share(ctx, len(pods)-i)
		failed := try(share, pod)
		cancel()
		if failed == nil || errors.Is(failed, live.ErrSays) {
			return failed
		}
		if err == nil || errors.Is(err, live.ErrIdle) {
			err = failed
		}
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

func (a *API) askPod(ctx context.Context, pod corev1.Pod, params map[string]string) ([]byte, error) {
	port, end, err := a.forwardTo(ctx, pod, wire.PortOperatorAuxiliary)
	if err != nil {
		return nil, err
	}
	defer end()
	return fetchStatus(ctx, port, params)
}

// operators returns the running pods of the operator, at least one, in the order in which to try them.
func (a *API) operators(ctx context.Context, operatorNamespace string) ([]corev1.Pod, error) {
	pods, err := a.kube.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: live.Selector})
	if err != nil {
		return nil, fmt.Errorf("find the operator's pod: %w", err)
	}
	return live.Operators(pods.Items)
}

// forwardTo leads a port of this machine to one of a pod, until end is called.
func (a *API) forwardTo(ctx context.Context, pod corev1.Pod, to int) (port int, end func(), err error) {
	target := a.kube.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	refusal, upgrade := &refusedUpgrade{}, &upgraded{}
	dialer, err := dialer(refusal.noting(upgrade.noting(ctx, a.config)), target, upgrade)
	if err != nil {
		return 0, nil, err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forward, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(to)},
		stop, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forward.ForwardPorts() }()
	end = func() {
		close(stop)
		upgrade.end()
	}
	select {
	case <-ready:
	case err := <-ended:
		upgrade.end()
		return 0, nil, fmt.Errorf("forward a port: %w", refusal.instead(err))
	case <-ctx.Done():
		end()
		return 0, nil, ctx.Err()
	}
	ports, err := forward.GetPorts()
	if err != nil {
		end()
		return 0, nil, fmt.Errorf("forward a port: %w", err)
	}
	return int(ports[0].Local), end, nil
}

// dialer prefers a WebSocket, as kubectl does. The end of upgrade ends what it dialled.
func dialer(config *rest.Config, target *url.URL, upgrade *upgraded) (httpstream.Dialer, error) {
	transport, upgrader, err := upgrade.overSPDY(config)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	overSPDY := spdy.NewDialerForStreaming(spdy.NewUpgraderForStreaming(upgrader), &http.Client{Transport: transport}, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

func fetchStatus(ctx context.Context, port int, params map[string]string) ([]byte, error) {
	query := url.Values{}
	for name, value := range params {
		if value != "" {
			query.Set(name, value)
		}
	}
	address := fmt.Sprintf("http://127.0.0.1:%d%s?%s", port, wire.PathStatus, query.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the operator through a forwarded port: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxStatusBytes))
	if err != nil {
		return nil, fmt.Errorf("read the operator's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, live.ErrorOf(body, fmt.Errorf("the operator answered %s", resp.Status))
	}
	return body, nil
}
