// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// secretsAtRest looks at the command lines of the API servers, if they run as pods that can be seen. What their
// configuration encrypts is not visible from here.
func secretsAtRest(ctx context.Context, w World) []Finding {
	manual := wire.Remedy{Text: "ask the people who run the control plane whether Secrets are encrypted at rest, and by which provider"}
	list, err := w.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	if err != nil {
		found := cannotSee(err, "list", "pods", metav1.NamespaceSystem)
		found[0] = found[0].advised(manual)
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
		return one(Fail, wire.Remedy{Text: "https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/"},
			"%s without --encryption-provider-config: passwords and keys of the group lie in etcd in the clear", strings.Join(plain, ", "))
	}
	return one(OK, wire.Remedy{}, "every API server has an --encryption-provider-config; see there that secrets are among its resources")
}

// Groups of Kubernetes that nobody is put into by name.
const (
	loggedIn        = "system:authenticated"
	anonymous       = "system:unauthenticated"
	serviceAccounts = "system:serviceaccounts"
)

// everybody lists groups that hold anyone who is logged in, or even anyone at all.
var everybody = []string{loggedIn, anonymous, serviceAccounts}

// secretReaders lists who can read the Secrets of the namespace. Anyone who can holds root of every site.
func secretReaders(ctx context.Context, w World) []Finding {
	a, problem := accessIn(ctx, w, w.Group.Namespace)
	if problem != nil {
		return problem
	}
	return a.judge()
}

// keyReaders lists who can read the Secrets of the operator's namespace. Anyone who can has the signing keys, and can open any site.
func keyReaders(ctx context.Context, w World) []Finding {
	a, problem := accessIn(ctx, w, w.OperatorNamespace)
	if problem != nil {
		return problem
	}
	if who := openTo(a.all, a.pods); who != "" {
		return one(Fail, wire.Remedy{Text: "take away from them in " + w.OperatorNamespace + ": get, list and watch of secrets, create of pods and of what makes pods, exec, attach and ephemeralcontainers of pods"},
			"%s can read the keys in %s with which sites of every group are opened and fenced", who, w.OperatorNamespace)
	}
	maps.Copy(a.all, a.pods)
	return one(OK, wire.Remedy{}, "%d can read the keys in %s with which sites of every group are opened and fenced%s", len(a.all), w.OperatorNamespace, listed(a.all))
}

// accessIn returns who may read Secrets and enter pods in a namespace, or the findings if it cannot look.
func accessIn(ctx context.Context, w World, ns string) (access, []Finding) {
	a := access{all: map[string]bool{}, named: map[string]bool{}, pods: map[string]bool{}}
	rules, err := rulesOf(ctx, w, ns)
	if err != nil {
		return a, cannotSee(err, "list", "roles,clusterroles.rbac.authorization.k8s.io", "")
	}
	local, err := w.Kube.RbacV1().RoleBindings(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return a, cannotSee(err, "list", "rolebindings.rbac.authorization.k8s.io", ns)
	}
	global, err := w.Kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return a, cannotSee(err, "list", "clusterrolebindings.rbac.authorization.k8s.io", "")
	}
	for _, b := range local.Items {
		a.add(w.Group, rules[b.RoleRef.Kind+"/"+b.RoleRef.Name], b.Subjects)
	}
	for _, b := range global.Items {
		a.add(w.Group, rules["ClusterRole/"+b.RoleRef.Name], b.Subjects)
	}
	return a, nil
}

// access is who may read all Secrets of the namespace, Secrets of the group that a rule names, and who may make pods, or run
// commands in them, and so see what is mounted there.
type access struct{ all, named, pods map[string]bool }

func (a access) add(g *v1alpha1.MysqlFailoverGroup, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) {
	for _, r := range rules {
		switch {
		case !readsSecrets(r):
		case len(r.ResourceNames) == 0:
			addSubjects(a.all, subjects)
		case slices.ContainsFunc(r.ResourceNames, func(name string) bool { return isOurs(g, name) }):
			addSubjects(a.named, subjects)
		}
		if entersPods(r) {
			addSubjects(a.pods, subjects)
		}
	}
}

// isOurs is true for the names of Secrets that hold a password or a key of the group: of any version, and of any site, also one
// that has left the group and whose keyrings are kept.
func isOurs(g *v1alpha1.MysqlFailoverGroup, name string) bool {
	if g.Spec.TLS != nil && name == g.Spec.TLS.Secret(g.Name) {
		return true
	}
	if slices.Contains([]string{v1alpha1.AuthoritySecretOfTLS(g.Name), v1alpha1.RootSecret(g.Name), v1alpha1.AccountsSecret(g.Name), v1alpha1.FormerAuthoritySecret(g.Name), v1alpha1.CacheAuthSecret(g.Name), report.CachePasswordSecret(g)}, name) {
		return true
	}
	rest, of := strings.CutPrefix(name, v1alpha1.SiteName(g.Name, ""))
	return of && strings.Index(rest, "-keyring-") > 0
}

// rulesOf returns the rules of every role that can be bound in the namespace, by kind and name.
func rulesOf(ctx context.Context, w World, ns string) (map[string][]rbacv1.PolicyRule, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	roles, err := w.Kube.RbacV1().Roles(ns).List(ctx, metav1.ListOptions{})
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

// readsSecrets is true if a rule allows reading Secrets: all, or those that it names.
func readsSecrets(r rbacv1.PolicyRule) bool { return allows(r, "secrets", "get", "list", "watch") }

// podMakers are the kinds that make pods.
var podMakers = []struct{ group, kind string }{
	{"", "pods"}, {"", "replicationcontrollers"}, {"apps", "deployments"}, {"apps", "statefulsets"}, {"apps", "daemonsets"},
	{"apps", "replicasets"}, {"batch", "jobs"}, {"batch", "cronjobs"},
}

// entersPods is true if a rule allows making pods, by any kind, which can mount any Secret of the namespace, or running
// commands in them.
func entersPods(r rbacv1.PolicyRule) bool {
	for _, m := range podMakers {
		if len(r.ResourceNames) == 0 && allowsIn(r, m.group, m.kind, "create") {
			return true
		}
	}
	return allows(r, "pods/exec", "create", "get") || allows(r, "pods/attach", "create", "get") || allows(r, "pods/ephemeralcontainers", "update", "patch")
}

// allows is true if a rule allows one of the verbs on a kind of the core group.
func allows(r rbacv1.PolicyRule, kind string, verbs ...string) bool {
	return allowsIn(r, "", kind, verbs...)
}

func allowsIn(r rbacv1.PolicyRule, group, kind string, verbs ...string) bool {
	holds := func(all []string, wanted ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return s == rbacv1.VerbAll || slices.Contains(wanted, s) })
	}
	_, sub, is := strings.Cut(kind, "/")
	return holds(r.APIGroups, group) && (holds(r.Resources, kind) || is && holds(r.Resources, "*/"+sub)) && holds(r.Verbs, verbs...)
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

func (a access) judge() []Finding {
	if who := openTo(a.all, a.named); who != "" {
		return one(Fail, wire.Remedy{Text: "take get, list and watch of secrets away from them"}, "%s can read Secrets with passwords or keys of the group", who)
	}
	if who := openTo(a.pods); who != "" {
		return one(Fail, wire.Remedy{Text: "take away from them: create of pods and of what makes pods, exec, attach and ephemeralcontainers of pods"},
			"%s can make pods or run commands in them, and see there the Secrets with passwords and keys of the group", who)
	}
	words := fmt.Sprintf("%d can read all Secrets of the namespace, and with them log in as root of every site%s", len(a.all), listed(a.all))
	for name := range a.all {
		delete(a.named, name)
		delete(a.pods, name)
	}
	if len(a.named) > 0 {
		words += fmt.Sprintf("; %d more can read Secrets with passwords or keys of the group by name%s", len(a.named), listed(a.named))
	}
	if len(a.pods) > 0 {
		words += fmt.Sprintf("; note that anyone who makes pods or runs commands in them sees what is mounted there: %d can%s", len(a.pods), listed(a.pods))
	}
	return one(OK, wire.Remedy{}, "%s", words)
}

// openTo says who they are, where those hold a group of everybody or one below it; empty if they hold none.
func openTo(those ...map[string]bool) string {
	var open []string
	for _, who := range those {
		for name := range who {
			group, is := strings.CutPrefix(name, "group ")
			if !is || !slices.ContainsFunc(everybody, func(all string) bool { return group == all || strings.HasPrefix(group, all+":") }) {
				continue
			}
			if words := membersOf(group); !slices.Contains(open, words) {
				open = append(open, words)
			}
		}
	}
	slices.Sort(open)
	return strings.Join(open, ", and ")
}

// membersOf says who is in a group of everybody.
func membersOf(group string) string {
	who := "every member"
	switch namespace, below := strings.CutPrefix(group, serviceAccounts+":"); {
	case below:
		who = "every service account of namespace " + namespace
	case group == serviceAccounts:
		who = "every service account"
	case group == loggedIn:
		who = "every user and service account that logs in"
	case group == anonymous:
		who = "everyone who reaches the API server without logging in"
	}
	return who + " (group " + group + ")"
}

// listed names a few, after a colon.
func listed(who map[string]bool) string {
	const shown = 8
	names := slices.Sorted(maps.Keys(who))
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf(": %s, and %d more", strings.Join(names[:shown], ", "), more)
	}
	return ": " + strings.Join(names, ", ")
}
