// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// backups is the name of the kind MysqlBackup in the paths of the API server.
const backups = "mysqlbackups"

// Backups lists the backups of a group, or of all groups of a namespace for "".
func (a *API) Backups(ctx context.Context, namespace, group string) ([]v1alpha1.MysqlBackup, error) {
	var all []v1alpha1.MysqlBackup
	for page := ""; ; {
		var list v1alpha1.MysqlBackupList
		req := a.groups.Get().Namespace(namespace).Resource(backups).Param("limit", strconv.Itoa(pageSize))
		if group != "" {
			req = req.Param("fieldSelector", "spec.group="+group)
		}
		if page != "" {
			req = req.Param("continue", page)
		}
		if err := req.Do(ctx).Into(&list); err != nil {
			return nil, explainBackup(err, "list", namespace, "")
		}
		all = append(all, list.Items...)
		if page = list.Continue; page == "" {
			return all, nil
		}
	}
}

// Backup reads one backup.
func (a *API) Backup(ctx context.Context, namespace, name string) (*v1alpha1.MysqlBackup, error) {
	var b v1alpha1.MysqlBackup
	err := a.groups.Get().Namespace(namespace).Resource(backups).Name(name).Do(ctx).Into(&b)
	return &b, explainBackup(err, "get", namespace, name)
}

// CreateBackup makes the object that requests a backup.
func (a *API) CreateBackup(ctx context.Context, b *v1alpha1.MysqlBackup) (*v1alpha1.MysqlBackup, error) {
	b = b.DeepCopy()
	b.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlBackup"))
	var out v1alpha1.MysqlBackup
	err := a.groups.Post().Namespace(b.Namespace).Resource(backups).Param("fieldManager", cli.FieldManager).Body(b).Do(ctx).Into(&out)
	return &out, explainBackup(err, "create", b.Namespace, b.Name)
}

// AnnotateBackup changes annotations of a backup if no one changed it since it was read.
func (a *API) AnnotateBackup(ctx context.Context, b *v1alpha1.MysqlBackup, change map[string]string) (*v1alpha1.MysqlBackup, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": b.ResourceVersion, "uid": b.UID, "annotations": change,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	var out v1alpha1.MysqlBackup
	err = a.groups.Patch(types.MergePatchType).Namespace(b.Namespace).Resource(backups).Name(b.Name).
		Param("fieldManager", cli.FieldManager).Body(body).Do(ctx).Into(&out)
	return &out, explainBackup(err, "patch", b.Namespace, b.Name)
}

// DeleteBackup deletes that backup, and no later one of its name.
func (a *API) DeleteBackup(ctx context.Context, b *v1alpha1.MysqlBackup) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &b.UID}}
	err := a.groups.Delete().Namespace(b.Namespace).Resource(backups).Name(b.Name).Body(options).Do(ctx).Error()
	return explainBackup(err, "delete", b.Namespace, b.Name)
}

// CreateGroup makes a group, or lets the API server only check it.
func (a *API) CreateGroup(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, dryRun bool) (*v1alpha1.MysqlFailoverGroup, error) {
	g = g.DeepCopy()
	g.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))
	req := a.groups.Post().Namespace(g.Namespace).Resource(cli.Resource).Param("fieldManager", cli.FieldManager).Body(g)
	if dryRun {
		req = req.Param("dryRun", metav1.DryRunAll)
	}
	var out v1alpha1.MysqlFailoverGroup
	err := req.Do(ctx).Into(&out)
	if apierrors.IsForbidden(err) {
		return nil, cli.RightsHint(err, "create", cli.Resource+"."+v1alpha1.GroupVersion.Group, g.Namespace)
	}
	return &out, err
}

// explainBackup adds to an error of the API server what to do next. The caller explains a refusal and a name that is taken.
func explainBackup(err error, verb, namespace, name string) error {
	switch {
	case err == nil, apierrors.IsInvalid(err), apierrors.IsAlreadyExists(err):
		return err
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err):
		return fmt.Errorf(`this cluster does not know the kind MysqlBackup (%s): it has definitions of an earlier version of mfg
  bring those of this version: helm upgrade mfg charts/mfg --namespace mfg-system --reset-then-reuse-values`, v1alpha1.GroupVersion)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("no backup %q in namespace %q: %w\n  list those that there are: kubectl mfg backup list -n %s", name, namespace, err, namespace)
	case apierrors.IsForbidden(err):
		return cli.RightsHint(err, verb, backups+"."+v1alpha1.GroupVersion.Group, namespace)
	}
	return explain(err, namespace, name)
}
