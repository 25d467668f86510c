// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// The application's schema and account. The account has rights on that schema and on nothing else, so that it is cut
// and refused like any client.
const (
	appUser  = "app"
	appTable = "app.writes"
)

// Pod is the pod of a site that is not on its way out, the newest if there are several.
func (g *Group) Pod(ctx context.Context, site string) (*corev1.Pod, error) {
	pods, err := g.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var found *corev1.Pod
	for i, p := range pods {
		if p.Labels[v1alpha1.LabelSite] != site || p.DeletionTimestamp != nil || !live(p) {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&p.CreationTimestamp) {
			found = &pods[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("site %s has no pod", site)
	}
	return found, nil
}

func live(p corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Pods are all MySQL pods of the group.
func (g *Group) Pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := g.Kube.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels{
		v1alpha1.LabelGroup: g.Name, v1alpha1.LabelName: v1alpha1.NameMySQL,
	}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods.Items, nil
}

// Exec runs a command in the mysql container of a site.
func (g *Group) Exec(ctx context.Context, site string, argv ...string) (string, error) {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return "", err
	}
	args := append([]string{"-n", g.Namespace, "exec", pod.Name, "-c", "mysql", "--"}, argv...)
	return g.Lab.Kubectl(ctx, args...)
}

// RootSQL runs statements on a site as root, over the socket in the pod, and returns what they print.
func (g *Group) RootSQL(ctx context.Context, site, statements string) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.RootSecret(g.Name)}
	if err := g.Kube.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("read root password: %w", err)
	}
	return g.Exec(ctx, site, "env", "MYSQL_PWD="+string(secret.Data["password"]),
		"mysql", "--no-defaults", "-uroot", "--socket=/run/mfg/mysqld.sock", "-NB", "-e", statements)
}

// againLimit is how long ReadSQL and WriteSQL wait for a server that may take the statements again.
const againLimit = time.Minute

// sqlError finds the number in an error that the mysql client prints.
var sqlError = regexp.MustCompile(`ERROR (\d+) `)

// connectionErrors are those that another connection may mend: the server stops, ended the session or the statement, is in offline mode, or is
// not reached. numberReadOnly is how a fenced server refuses a write.
var connectionErrors = []string{"1053", "1317", "2002", "2003", "2006", "2013", "3032", "4031"}

const numberReadOnly = "1290"

// ReadSQL is RootSQL for statements that only read, and so may run twice. A site that is fenced for a moment ends the sessions of everybody,
// and a container that starts again refuses them: like any client, it connects again. It tells of each failure.
func (g *Group) ReadSQL(ctx context.Context, site, statements string) (string, error) {
	out, _, err := g.again(ctx, connectionErrors, statements, func(context.Context) (string, error) { return site, nil })
	return out, err
}

// WriteSQL runs statements that may run twice on the site that is active, which it looks up again before each try. It returns that site.
func (g *Group) WriteSQL(ctx context.Context, statements string) (site string, err error) {
	_, site, err = g.again(ctx, append([]string{numberReadOnly}, connectionErrors...), statements, func(ctx context.Context) (string, error) {
		now, err := g.Get(ctx)
		if err != nil {
			return "", err
		}
		return now.Status.ActiveSite, nil
	})
	return site, err
}

// again runs statements on a site until the server answers, or refuses them with another number than these.
func (g *Group) again(ctx context.Context, passing []string, statements string, find func(context.Context) (string, error)) (out, site string, err error) {
	var refused error
	// The limit is for another try. The statements themselves may take as long as the caller lets them.
	err = Poll(ctx, againLimit, "an answer of MySQL", func(context.Context) error {
		var failed error
		if site, failed = find(ctx); failed != nil {
			return failed
		}
		if out, failed = g.RootSQL(ctx, site, statements); failed == nil {
			return nil
		}
		if number := sqlError.FindStringSubmatch(failed.Error()); number != nil && !slices.Contains(passing, number[1]) {
			refused = failed
			return nil
		}
		g.Say("%s gave no answer: %v", site, failed)
		return failed
	})
	return out, site, cmp.Or(refused, err)
}

// EnsureApp creates the application's schema and account on the active site, from where they replicate.
func (g *Group) EnsureApp(ctx context.Context) error {
	require := "REQUIRE SSL"
	if g.ca == nil {
		require = "REQUIRE NONE"
	}
	statements := strings.Join([]string{
		"CREATE DATABASE IF NOT EXISTS app",
		load.Schema(appTable),
		fmt.Sprintf("CREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s' %s", appUser, g.password, require),
		fmt.Sprintf("ALTER USER '%s'@'%%' IDENTIFIED BY '%s' %s", appUser, g.password, require),
		fmt.Sprintf("GRANT SELECT, INSERT, DELETE ON app.* TO '%s'@'%%'", appUser),
	}, "; ")
	if _, err := g.WriteSQL(ctx, statements); err != nil {
		return fmt.Errorf("create the application's account: %w", err)
	}
	return nil
}

// tlsConfig accepts a server of the group under one of its Services' names.
func (g *Group) tlsConfig(service string) (*tls.Config, error) {
	if g.ca == nil {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(g.ca) {
		return nil, fmt.Errorf("read CA certificate of group %s: there is none", g.Name)
	}
	return &tls.Config{RootCAs: pool, ServerName: service + "." + g.Namespace + ".svc", MinVersion: tls.VersionTLS12}, nil
}

// Dial opens a pool as the application to a site's pod. The machine can reach every pod that is not cut off from it.
func (g *Group) Dial(ctx context.Context, site string) (*sql.DB, error) {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net = appUser, g.password, "tcp"
	cfg.Addr = net.JoinHostPort(pod.Status.PodIP, "3306")
	cfg.Timeout, cfg.ReadTimeout = 5*time.Second, 30*time.Second
	if cfg.TLS, err = g.tlsConfig(v1alpha1.SiteName(g.Name, site)); err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure connection to %s: %w", site, err)
	}
	return sql.OpenDB(connector), nil
}

// readersLimit is how long a site that just came back may keep its readers out: mysqld starts offline, and its sidecar
// lets readers in once it has looked.
const readersLimit = 30 * time.Second

// Rows are all rows that a site holds.
func (g *Group) Rows(ctx context.Context, site string) (map[journal.Key]bool, error) {
	var all map[journal.Key]bool
	err := Poll(ctx, readersLimit, "readers of "+site+" to be let in", func(ctx context.Context) error {
		var err error
		all, err = g.rows(ctx, site)
		return err
	})
	return all, err
}

func (g *Group) rows(ctx context.Context, site string) (map[journal.Key]bool, error) {
	db, err := g.Dial(ctx, site)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(ctx, "SELECT writer, worker, seq FROM "+appTable)
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", site, err)
	}
	defer func() { _ = rows.Close() }()
	all := map[journal.Key]bool{}
	for rows.Next() {
		var k journal.Key
		if err := rows.Scan(&k.Writer, &k.Worker, &k.Seq); err != nil {
			return nil, fmt.Errorf("read rows of %s: %w", site, err)
		}
		all[k] = true
	}
	return all, rows.Err()
}
