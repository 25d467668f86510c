// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Keyring is `kubectl mfg keyring list` and `verify`.
type Keyring struct {
	Namespace string
	Group     string
	Verify    bool
	Color     string
	Output    cli.Output
}

// Validate checks only the command line.
func (op *Keyring) Validate() error {
	if !slices.Contains(cli.Colors, op.Color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	return nil
}

// Run looks and shows it.
func (op *Keyring) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	if e := g.Spec.EncryptionAtRest; e == nil || !e.Enabled {
		return cli.ExitError, fmt.Errorf("%s is not encrypted (spec.encryptionAtRest.enabled), so it has no keyrings", op.Group)
	}
	f := keyrings.Facts{Group: g, Verify: op.Verify}
	if f.Secrets, err = op.secrets(ctx, c, g); err != nil {
		return cli.ExitError, err
	}
	pods, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(op.Group, "")})
	if err != nil {
		f.PodsUnseen = err.Error() // the keyrings can be judged without
	} else {
		f.Pods = pods.Items
	}
	if ctx.Err() != nil {
		return cli.ExitError, ctx.Err()
	}
	rep := keyrings.Build(f)
	for i := range f.Secrets {
		clear(f.Secrets[i].Data[v1alpha1.KeyringKey])
	}
	code := cli.ExitHealthy
	if rep.Lost() || !rep.Fits() {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Keyrings(rep, screen.Options{
		Width: width, Color: cli.Colored(op.Color, env), Now: env.Now(), Wide: op.Output.Format == cli.OutputWide,
	}))
	return code, nil
}

// secrets returns all Secrets labelled as keyrings of the group, and those that status names, with any labels.
func (op *Keyring) secrets(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) ([]corev1.Secret, error) {
	read := op.metadata
	if op.Verify {
		read = op.contents
	}
	all, err := read(ctx, c, "")
	if err != nil {
		return nil, err
	}
	if g.Status.EncryptionAtRest == nil {
		return all, nil
	}
	for _, st := range g.Status.EncryptionAtRest.Sites {
		named := func(s corev1.Secret) bool { return s.Name == st.KeyringSecret }
		if st.KeyringSecret == "" || slices.ContainsFunc(all, named) {
			continue
		}
		one, err := read(ctx, c, st.KeyringSecret)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func keyringSelector(group string) string {
	return labels.Set{v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelGroup: group}.String()
}

// contents reads Secrets with their data: all of the group for "", or one by its name.
func (op *Keyring) contents(ctx context.Context, c Cluster, name string) ([]corev1.Secret, error) {
	secrets := c.Kube().CoreV1().Secrets(op.Namespace)
	if name != "" {
		one, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, cli.RightsHint(err, "get", "secrets/"+name, op.Namespace)
		}
		return []corev1.Secret{*one}, nil
	}
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: keyringSelector(op.Group)})
	if err != nil {
		return nil, cli.RightsHint(err, "list", "secrets", op.Namespace)
	}
	return list.Items, nil
}

// Accept headers that make the API server leave out the content of objects.
const (
	onlyMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	onlyMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// metadata reads the same without their data.
func (op *Keyring) metadata(ctx context.Context, c Cluster, name string) ([]corev1.Secret, error) {
	req, verb := c.Kube().CoreV1().RESTClient().Get().Namespace(op.Namespace).Resource("secrets"), "list"
	if name != "" {
		req, verb = req.Name(name).SetHeader("Accept", onlyMetadata), "get"
	} else {
		req = req.Param("labelSelector", keyringSelector(op.Group)).SetHeader("Accept", onlyMetadataList)
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, cli.RightsHint(err, verb, strings.TrimSuffix("secrets/"+name, "/"), op.Namespace)
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	var list metav1.PartialObjectMetadataList
	if name != "" {
		list.Items = make([]metav1.PartialObjectMetadata, 1)
		err = json.Unmarshal(raw, &list.Items[0])
	} else {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	var out []corev1.Secret
	for _, item := range list.Items {
		out = append(out, corev1.Secret{ObjectMeta: item.ObjectMeta})
	}
	return out, nil
}
