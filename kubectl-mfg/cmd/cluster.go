// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that kubectl knows
	"k8s.io/client-go/rest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	resource = "mysqlfailovergroups"
	// auxiliaryService is the Service in front of the operator's status listener.
	auxiliaryService = "mfg-auxiliary"
	// liveTimeout bounds how long a command waits for the operator before it makes do with the custom resource.
	liveTimeout = 3 * time.Second
)

// Cluster is what the commands ask of Kubernetes and, through it, of the operator.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Groups lists a namespace, or all namespaces for "".
	Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error)
	// Live asks the operator in a namespace for its status of a group, or of all groups for empty names.
	Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error)
}

// api is a Cluster behind a real API server.
type api struct{ groups, core *rest.RESTClient }

// connect makes the clients; nothing is sent yet.
func connect(flags *genericclioptions.ConfigFlags) (Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
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
	return &api{groups: groups, core: core}, nil
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
	var all []v1alpha1.MysqlFailoverGroup
	for page := ""; ; {
		var list v1alpha1.MysqlFailoverGroupList
		req := a.groups.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource)
		req = req.Param("limit", strconv.Itoa(pageSize))
		if page != "" {
			req = req.Param("continue", page)
		}
		if err := req.Do(ctx).Into(&list); err != nil {
			return nil, explain(err, namespace, "")
		}
		all = append(all, list.Items...)
		if page = list.Continue; page == "" {
			return all, nil
		}
	}
}

// pageSize is how many groups are read at a time.
const pageSize = 250

// Live goes through the API server's proxy to the Service, so that it needs no more than the user's own login.
func (a *api) Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	req := a.core.Get().Namespace(operatorNamespace).Resource("services").
		Name(auxiliaryService + ":" + strconv.Itoa(wire.PortOperatorAuxiliary)).SubResource("proxy").Suffix(wire.PathStatus)
	for param, value := range map[string]string{wire.ParamNamespace: namespace, wire.ParamGroup: group} {
		if value != "" {
			req = req.Param(param, value)
		}
	}
	// One try: the custom resource is there to fall back on, and a watch asks again anyway.
	result := req.MaxRetries(0).Do(ctx)
	raw, _ := result.Raw() // its error is that of Error, which knows more
	var list wire.StatusList
	if err := result.Error(); err != nil {
		return list, operatorError(raw, err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("read the operator's answer: %w", err)
	}
	return list, nil
}
