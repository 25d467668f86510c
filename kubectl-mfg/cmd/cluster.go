// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"crypto/x509"
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
	"github.com/mysql-mfg/mfg/tui"
)

const (
	resource = "mysqlfailovergroups"
	// auxiliaryService is the Service in front of the operator's status listener.
	auxiliaryService = "mfg-auxiliary"
	// operatorSelector finds the pods of the operator.
	operatorSelector = "app.kubernetes.io/name=mfg"
	// liveTimeout bounds how long a command waits for the operator before it makes do with the custom resource.
	liveTimeout = 3 * time.Second
	// proxyTimeout is the part of it that the Service proxy has; the rest is for a forwarded port.
	proxyTimeout = 2 * time.Second
)

// Operator is what an operator is asked; each question names the namespace in which it runs.
type Operator interface {
	// Live asks for the status of a group, or of all groups for empty names.
	Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error)
	// Explain asks why it decided about a group as it did.
	Explain(ctx context.Context, operatorNamespace, namespace, group string) (wire.ExplainedList, error)
	// Routes are the ways to its stream, the best first.
	Routes(operatorNamespace, namespace string) []tui.Route
	// EscrowChain is what its escrow endpoint shows of itself.
	EscrowChain(ctx context.Context, operatorNamespace string) ([]*x509.Certificate, error)
}

// Cluster is what the commands ask of Kubernetes and, through it, of the operator.
type Cluster interface {
	Operator
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Groups lists a namespace, or all namespaces for "".
	Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error)
	// Annotate changes annotations of a group if nobody changed it since it was read.
	Annotate(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, change map[string]string, dryRun bool) (*v1alpha1.MysqlFailoverGroup, error)
	// Exec runs a command in a container.
	Exec(ctx context.Context, e execution) error
	// Clock is the time of the API server, and how long it took to answer.
	Clock(ctx context.Context) (server time.Time, took time.Duration, err error)
	// Watch follows the groups of a namespace, or of all for "", until the context ends.
	Watch(ctx context.Context, namespace string, deliver func(tui.Objects))
	// Kube is everything else that Kubernetes holds.
	Kube() kubernetes.Interface
}

// api is a Cluster behind a real API server.
type api struct {
	groups, core *rest.RESTClient
	kube         kubernetes.Interface
	config       *rest.Config
	// total and proxy bound a question to the operator, and its first way.
	total, proxy time.Duration
	// forwards is true once a forwarded port has led to the operator where the Service proxy did not: a watch must not wait for
	// the latter with each look.
	forwards atomic.Bool
}

// connect makes the clients; nothing is sent yet.
func connect(flags *genericclioptions.ConfigFlags) (Cluster, error) {
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
	return &api{groups: groups, core: core, kube: kube, config: config, total: liveTimeout, proxy: proxyTimeout}, nil
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

func (a *api) Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error) {
	var g v1alpha1.MysqlFailoverGroup
	err := a.groups.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Into(&g)
	return &g, explain(err, namespace, name)
}

func (a *api) Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error) {
	all, _, err := a.list(ctx, namespace)
	return all, err
}

// list also says from which version on a watch tells what changes.
func (a *api) list(ctx context.Context, namespace string) (all []v1alpha1.MysqlFailoverGroup, version string, err error) {
	for page := ""; ; {
		var list v1alpha1.MysqlFailoverGroupList
		req := a.groups.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource)
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
func (a *api) Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error) {
	var list wire.StatusList
	err := a.ask(ctx, operatorNamespace, map[string]string{wire.ParamNamespace: namespace, wire.ParamGroup: group}, &list)
	return list, err
}
