// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// Kube returns the typed client for what is not ours: pods, events, nodes.
func (a *API) Kube() kubernetes.Interface { return a.kube }

// Explain asks the operator why it decided as it did.
func (a *API) Explain(ctx context.Context, operatorNamespace, namespace, group string) (wire.ExplainedList, error) {
	var list wire.ExplainedList
	err := a.ask(ctx, operatorNamespace, map[string]string{
		wire.ParamNamespace: namespace, wire.ParamGroup: group, wire.ParamExplain: "true",
	}, &list)
	return list, err
}

// Annotate changes annotations of a group as it was read: if anyone has changed it since, the API server refuses and
// nothing happens. An empty value removes an annotation.
func (a *API) Annotate(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, change map[string]string, dryRun bool) (*v1alpha1.MysqlFailoverGroup, error) {
	annotations := map[string]any{}
	for key, value := range change {
		annotations[key] = value
		if value == "" {
			annotations[key] = nil
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": g.ResourceVersion, "uid": g.UID, "annotations": annotations,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	req := a.groups.Patch(types.MergePatchType).Namespace(g.Namespace).Resource(cli.Resource).Name(g.Name).
		Param("fieldManager", cli.FieldManager).Body(body)
	if dryRun {
		req = req.Param("dryRun", metav1.DryRunAll)
	}
	var out v1alpha1.MysqlFailoverGroup
	err = req.Do(ctx).Into(&out)
	if apierrors.IsForbidden(err) {
		return nil, cli.RightsHint(err, "patch", cli.Resource+"."+v1alpha1.GroupVersion.Group, g.Namespace)
	}
	return &out, explain(err, g.Namespace, g.Name)
}

// Clock returns the time of the API server as it answers, to the second, and how long the answer took.
func (a *API) Clock(ctx context.Context) (server time.Time, took time.Duration, err error) {
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("make client: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(a.config)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("read address of the API server: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("make request: %w", err)
	}
	before := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("ask the API server for its time: %w", err)
	}
	took = time.Since(before)
	defer func() { _ = resp.Body.Close() }()
	server, err = http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("read the time of the API server: %w", err)
	}
	return server, took, nil
}

// ask asks the operator's Service through the API server and, if that does not reach it, its pods through a forwarded
// port; the port comes first if it has worked before.
func (a *API) ask(ctx context.Context, operatorNamespace string, params map[string]string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, a.Total)
	defer cancel()
	raw, err := a.answer(ctx, operatorNamespace, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the operator's answer: %w", err)
	}
	return nil
}

func (a *API) answer(ctx context.Context, operatorNamespace string, params map[string]string) ([]byte, error) {
	if a.forwards.Load() {
		if raw, err := a.forwarded(ctx, operatorNamespace, params); err == nil || live.IsFinal(err) {
			return raw, err
		}
		a.forwards.Store(false)
	}
	raw, err := a.proxied(ctx, operatorNamespace, params)
	if ctx.Err() != nil || !MayForward(err) {
		return raw, err
	}
	raw, failed := a.forwarded(ctx, operatorNamespace, params)
	if failed == nil || live.IsFinal(failed) {
		a.forwards.Store(true)
		return raw, failed
	}
	return nil, moreTelling(err, failed)
}

// moreTelling chooses between the failures of both ways. A right that is missing for one of them says nothing of the operator, and only
// without any right is this user not told; that no pod runs is certain, whatever became of the proxy.
func moreTelling(proxied, forwarded error) error {
	if errors.Is(forwarded, live.ErrNoPod) || apierrors.IsForbidden(proxied) && !apierrors.IsForbidden(forwarded) {
		return forwarded
	}
	return proxied
}

func (a *API) proxied(ctx context.Context, operatorNamespace string, params map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Proxy)
	defer cancel()
	req := a.service(operatorNamespace).Suffix(wire.PathStatus)
	for param, value := range params {
		if value != "" {
			req = req.Param(param, value)
		}
	}
	// One try: the custom resource is there to fall back on, and a watch asks again anyway.
	result := req.MaxRetries(0).Do(ctx)
	raw, _ := result.Raw() // Error returns the same error, and knows more
	if err := result.Error(); err != nil {
		return nil, live.ErrorOf(raw, err)
	}
	return raw, nil
}

// service returns a request to the operator's Service behind the API server's proxy.
func (a *API) service(operatorNamespace string) *rest.Request {
	return a.core.Get().Namespace(operatorNamespace).Resource("services").
		Name(live.Service + ":" + strconv.Itoa(wire.PortOperatorAuxiliary)).SubResource("proxy")
}
