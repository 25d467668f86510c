// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// keyringOp is `kubectl mfg keyring list` and `verify`.
type keyringOp struct {
	Namespace string
	Group     string
	Verify    bool
	Color     string
	Output    output
}

func (a *app) keyringCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keyring",
		Short: "Show and check the keyrings in escrow",
		Long: `Show and check the keyrings in escrow: which versions there are, with which digests, and which one each site is sealed
with. No byte of a key is ever shown.

` + exitCodes,
		Example: `  # Versions, digests, and which one each site is sealed with
  kubectl mfg keyring list orders

  # Read every keyring, hash it again, and compare; exit code 3 if something does not fit
  kubectl mfg keyring verify orders`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usage("unknown command %q; there are list and verify", args[0])
		},
	}
	cmd.AddCommand(a.keyringListCommand(), a.keyringVerifyCommand())
	return cmd
}

func (a *app) keyringListCommand() *cobra.Command {
	return a.keyringLook(&cobra.Command{
		Use:   "list GROUP",
		Short: "Show versions, digests, and which one each site is sealed with",
		Long: `Show the keyrings in escrow: versions, the digests that they were stored with, and which one each site is sealed with. Only
the metadata of Secrets is asked for, no content. Exit code 3 if a Secret is missing that a site is sealed with.

` + exitCodes,
		Example: `  # Versions, digests, and which one each site is sealed with
  kubectl mfg keyring list orders

  # Whole digests, names of Secrets, and what each pod has mounted
  kubectl mfg keyring list orders -o wide`,
	}, &keyringOp{})
}

func (a *app) keyringVerifyCommand() *cobra.Command {
	return a.keyringLook(&cobra.Command{
		Use:   "verify GROUP",
		Short: "Read every keyring in escrow, hash it again, and compare",
		Long: `Read every keyring in escrow, hash it again, and compare it with what status says that the site is sealed with, and with
what it was stored with; check that it is protected, and that the pod has the same. The content is hashed and never shown. It
needs the right to read Secrets.

Exit code 3 if something does not fit; each finding says what to do next.

` + exitCodes,
		Example: `  # Before a drain of nodes, an upgrade, and once in a while
  kubectl mfg keyring verify orders

  # Only what does not fit
  kubectl mfg keyring verify orders -o jsonpath='{range .findings[?(@.level=="FAIL")]}{.site}: {.message}{"\n"}{end}'`,
	}, &keyringOp{Verify: true})
}

// keyringLook is what both have in common.
func (a *app) keyringLook(cmd *cobra.Command, op *keyringOp) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactly("GROUP"), a.completeGroup
	cmd.Flags().StringVar(&op.Color, "color", colorAuto, "Colour: "+strings.Join(colors, "|")+".")
	out := addOutputFlag(cmd, outputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), op)
	}
	return cmd
}

func (op *keyringOp) validate() error {
	if !slices.Contains(colors, op.Color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(colors, ", "))
	}
	return nil
}

func (op *keyringOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return exitError, err
	}
	if e := g.Spec.EncryptionAtRest; e == nil || !e.Enabled {
		return exitError, fmt.Errorf("%s is not encrypted (spec.encryptionAtRest.enabled), so it has no keyrings", op.Group)
	}
	f := keyrings.Facts{Group: g, Verify: op.Verify}
	if f.Secrets, err = op.secrets(ctx, c, g); err != nil {
		return exitError, err
	}
	pods, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: podSelector(op.Group, "")})
	if err != nil {
		f.PodsUnseen = err.Error() // the keyrings can be judged without
	} else {
		f.Pods = pods.Items
	}
	if ctx.Err() != nil {
		return exitError, ctx.Err()
	}
	rep := keyrings.Build(f)
	for i := range f.Secrets {
		clear(f.Secrets[i].Data[v1alpha1.KeyringKey])
	}
	code := exitHealthy
	if rep.Lost() || !rep.Fits() {
		code = exitDegraded
	}
	if op.Output.printer != nil {
		return code, op.Output.print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Keyrings(rep, screen.Options{
		Width: width, Color: colored(op.Color, env), Now: env.Now(), Wide: op.Output.Format == outputWide,
	}))
	return code, nil
}

// secrets are all that are labelled as keyrings of the group, and those that status names whatever their labels.
func (op *keyringOp) secrets(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup) ([]corev1.Secret, error) {
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

// contents reads Secrets with what they hold: all of the group for "", or one by its name.
func (op *keyringOp) contents(ctx context.Context, c Cluster, name string) ([]corev1.Secret, error) {
	secrets := c.Kube().CoreV1().Secrets(op.Namespace)
	if name != "" {
		one, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, rightsHint(err, "get", "secrets/"+name, op.Namespace)
		}
		return []corev1.Secret{*one}, nil
	}
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: keyringSelector(op.Group)})
	if err != nil {
		return nil, rightsHint(err, "list", "secrets", op.Namespace)
	}
	return list.Items, nil
}

// Accept headers by which the API server leaves the content of objects out.
const (
	onlyMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	onlyMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// metadata reads the same without what they hold.
func (op *keyringOp) metadata(ctx context.Context, c Cluster, name string) ([]corev1.Secret, error) {
	req, verb := c.Kube().CoreV1().RESTClient().Get().Namespace(op.Namespace).Resource("secrets"), "list"
	if name != "" {
		req, verb = req.Name(name).SetHeader("Accept", onlyMetadata), "get"
	} else {
		req = req.Param("labelSelector", keyringSelector(op.Group)).SetHeader("Accept", onlyMetadataList)
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, rightsHint(err, verb, strings.TrimSuffix("secrets/"+name, "/"), op.Namespace)
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
