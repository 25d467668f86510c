// SPDX-License-Identifier: Apache-2.0

// Package cluster adapts the API server and, through its proxy or a forwarded port, the operator. Verbs ask it through ports of their own.
package cluster

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubectl knows
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

// API is a cluster behind a real API server.
type API struct {
	groups, core *rest.RESTClient
	kube         kubernetes.Interface
	config       *rest.Config
	// Total and proxy bound a question to the operator, and its first way.
	Total, Proxy time.Duration
	// forwards is true once a forwarded port has reached the operator when the Service proxy did not: a watch must not wait for
	// the proxy with each look.
	forwards atomic.Bool
}

// Connect makes the clients; nothing is sent yet.
func Connect(flags *genericclioptions.ConfigFlags) (*API, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 300 // as kubectl: the API server has its own fairness
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	groups, err := client(config, "/apis", v1alpha1.GroupVersion, codecs)
	if err != nil {
		return nil, err
	}
	core, err := client(config, "/api", corev1.SchemeGroupVersion, codecs)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &API{groups: groups, core: core, kube: kube, config: config, Total: live.Timeout, Proxy: live.ProxyTimeout}, nil
}

func client(shared *rest.Config, path string, gv schema.GroupVersion, codecs runtime.NegotiatedSerializer) (*rest.RESTClient, error) {
	config := rest.CopyConfig(shared)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = path, &gv, codecs
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// Group reads one group.
func (a *API) Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error) {
	var g v1alpha1.MysqlFailoverGroup
	err := a.groups.Get().Namespace(namespace).Resource(cli.Resource).Name(name).Do(ctx).Into(&g)
	return &g, explain(err, namespace, name)
}

// Groups lists a namespace, or all namespaces for "".
func (a *API) Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error) {
	all, _, err := a.list(ctx, namespace)
	return all, err
}

// list also returns the version from which on a watch tells what changes.
func (a *API) list(ctx context.Context, namespace string) (all []v1alpha1.MysqlFailoverGroup, version string, err error) {
	for page := ""; ; {
		var list v1alpha1.MysqlFailoverGroupList
		req := a.groups.Get().NamespaceIfScoped(namespace, namespace != "").Resource(cli.Resource)
		req = req.Param("limit", strconv.Itoa(pageSize))
		if page != "" {
			req = req.Param("continue", page)
		}
		if err := req.Do(ctx).Into(&list); err != nil {
			return nil, "", explain(err, namespace, "")
		}
		all, version = append(all, list.Items...), list.ResourceVersion
		if page = list.Continue; page == "" {
			return all, version, nil
		}
	}
}

// pageSize is how many groups are read at a time.
const pageSize = 250

// Live goes through the API server's proxy to the Service, so that it needs no more than the user's own login.
func (a *API) Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error) {
	var list wire.StatusList
	err := a.ask(ctx, operatorNamespace, map[string]string{wire.ParamNamespace: namespace, wire.ParamGroup: group}, &list)
	return list, err
}
