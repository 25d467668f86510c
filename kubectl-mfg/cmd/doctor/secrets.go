// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretsAtRest looks at the command lines of the API servers, where they run as pods that can be seen. What their
// configuration encrypts is not visible from here.
func secretsAtRest(ctx context.Context, w World) []Finding {
	manual := "ask whoever runs the control plane whether Secrets are encrypted at rest, and by which provider"
	list, err := w.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	if err != nil {
		found := cannotSee(err, "list", "pods", metav1.NamespaceSystem)
		found[0].Remedy = manual
		return found
	}
	if len(list.Items) == 0 {
		return one(Unknown, manual, "the API server does not run as a pod here: how it keeps Secrets cannot be seen")
	}
	var plain []string
	for _, pod := range list.Items {
		encrypts := false
		for _, c := range pod.Spec.Containers {
			for _, arg := range slices.Concat(c.Command, c.Args) {
				encrypts = encrypts || strings.HasPrefix(arg, "--encryption-provider-config")
			}
		}
		if !encrypts {
			plain = append(plain, pod.Name)
		}
	}
	if len(plain) > 0 {
		return one(Fail, "https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/",
			"%s without --encryption-provider-config: passwords and keys of the group lie in etcd in the clear", strings.Join(plain, ", "))
	}
	return one(OK, "", "every API server has an --encryption-provider-config; see there that secrets are among its resources")
}

// everybody are groups that hold anyone who is logged in, or not even that.
var everybody = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}

// secretReaders lists who can read the Secrets of the namespace. Whoever can holds root of every site.
func secretReaders(ctx context.Context, w World) []Finding {
	ns := w.Group.Namespace
	rules, err := rulesOf(ctx, w)
	if err != nil {
		return cannotSee(err, "list", "roles,clusterroles.rbac.authorization.k8s.io", "")
	}
	local, err := w.Kube.RbacV1().RoleBindings(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return cannotSee(err, "list", "rolebindings.rbac.authorization.k8s.io", ns)
	}
	global, err := w.Kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return cannotSee(err, "list", "clusterrolebindings.rbac.authorization.k8s.io", "")
	}
	readers := map[string]bool{}
	for _, b := range local.Items {
		if readsSecrets(rules[b.RoleRef.Kind+"/"+b.RoleRef.Name]) {
			addSubjects(readers, b.Subjects)
		}
	}
	for _, b := range global.Items {
		if readsSecrets(rules["ClusterRole/"+b.RoleRef.Name]) {
			addSubjects(readers, b.Subjects)
		}
	}
	return judgeReaders(readers)
}

// rulesOf are the rules of every role that can be bound in the namespace, by kind and name.
func rulesOf(ctx context.Context, w World) (map[string][]rbacv1.PolicyRule, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	roles, err := w.Kube.RbacV1().Roles(w.Group.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range roles.Items {
		rules["Role/"+r.Name] = r.Rules
	}
	clusterRoles, err := w.Kube.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range clusterRoles.Items {
		rules["ClusterRole/"+r.Name] = r.Rules
	}
	return rules, nil
}

// readsSecrets is true if rules allow to read any Secret, also one that is named: it may be ours.
func readsSecrets(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		group := slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, rbacv1.APIGroupAll)
		kind := slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, rbacv1.ResourceAll)
		verb := slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "get" || v == "list" || v == "watch" || v == rbacv1.VerbAll })
		return group && kind && verb && len(r.ResourceNames) == 0
	})
}

func addSubjects(readers map[string]bool, subjects []rbacv1.Subject) {
	for _, s := range subjects {
		name := strings.ToLower(s.Kind) + " " + s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			name = "serviceaccount " + s.Namespace + "/" + s.Name
		}
		readers[name] = true
	}
}

func judgeReaders(readers map[string]bool) []Finding {
	var names, open []string
	for name := range readers {
		names = append(names, name)
		for _, all := range everybody {
			if name == "group "+all || strings.HasPrefix(name, "group "+all+":") {
				open = append(open, all)
			}
		}
	}
	slices.Sort(names)
	if len(open) > 0 {
		return one(Fail, "take get, list and watch of secrets away from them", "anybody in %s can read every Secret of the namespace, and with them log in as root of every site", strings.Join(open, ", "))
	}
	const shown = 8
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(", and %d more", len(names)-shown)
		names = names[:shown]
	}
	return one(OK, "", "%d can read all Secrets of the namespace, and with them log in as root of every site: %s%s", len(readers), strings.Join(names, ", "), more)
}
