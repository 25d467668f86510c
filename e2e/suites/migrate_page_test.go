// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// migration follows docs/migrate.md: what is dumped from a server, here a group itself, is on every site after the load, and not on the
// active one alone.
func migration(t *testing.T, g *stage.Group) {
	t.Helper()
	ctx := t.Context()
	group, err := g.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	app := applicationsSecret(t, g)
	// The page names the namespace and the database alike; the group of docs/install.md has both named after this test's namespace.
	file := filepath.Join(t.TempDir(), "old.sql")
	here := strings.NewReplacer("-n "+pageNamespace, "-n "+ownNamespace, "old.sql", file).Replace
	onLab(t, "rows of the old server", here(`kubectl mfg mysql orders -n shop --account app -e "CREATE TABLE moved (id INT PRIMARY KEY, t TEXT); INSERT moved VALUES (1, 'é'), (2, NULL)"`))
	onLab(t, "dump the old server", here(commandsOf(t, "migrate.md", "dump the old server")),
		"OLD_PASSWORD="+app["password"], "OLD_HOST="+v1alpha1.SiteName(g.Name, group.Status.ActiveSite), "OLD_USER="+app["username"], "OLD_DATABASE="+app["database"])
	onLab(t, "the table is gone", here(`kubectl mfg mysql orders -n shop --account app -e "DROP TABLE moved"`))
	onLab(t, "load the dump", here(strings.Replace(commandsOf(t, "migrate.md", "load the dump"), "-- shop", "-- "+app["database"], 1)))
	for _, site := range group.Spec.Sites {
		if err := stage.Poll(ctx, time.Minute, "the rows of the dump at "+site.Name, func(context.Context) error {
			out, err := g.RootSQL(ctx, site.Name, "SELECT CONCAT(COUNT(*), ' rows') FROM `"+app["database"]+"`.moved")
			if err == nil && !strings.Contains(out, "2 rows") {
				err = fmt.Errorf("it has %q", out)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}
