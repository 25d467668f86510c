// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/demo/tour"
)

// The commands that the demo prints after a failover that lost nothing work as they stand, in their order: the row that is written first is in the group that is
// restored last.
func TestBackupTour(t *testing.T) {
	const namespace, group = "suite-tour", "orders"
	s, id := storage(t, stage.S3Options{Name: "tour"}), identity(t)
	g := fresh(t, namespace, group, s.Grant)
	if err := lab.PutIdentity(t.Context(), namespace, identitySecret, id.String()); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec(group)
	spec.TLS, spec.Application = &v1alpha1.TLSSpec{}, &v1alpha1.ApplicationSpec{Database: "shop"}
	spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{
		Name: "nightly", Method: v1alpha1.BackupLogical, Storage: s.Storage(backupPrefix),
		Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}, IdentitySecretName: identitySecret},
	}}}
	g = ownGroup(t, g, spec)
	ready, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), time.Minute, "the application's account", func(group *v1alpha1.MysqlFailoverGroup) error {
		if !meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionApplicationReady) {
			return errors.New("it is not made yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	active := ready.Status.ActiveSite
	other := stage.Sites[0]
	if other == active {
		other = stage.Sites[1]
	}
	steps := tour.Steps(namespace, group, active, other, 0)
	var out string
	for _, step := range steps {
		start := time.Now()
		command := step.Command
		if strings.Contains(command, " status ") {
			command += " || [ $? = 3 ]" // it may be degraded: there is no backup yet
		}
		out = runDocumented(t, step.What, command, withPlugin())
		t.Logf("%s: %s", step.Command, time.Since(start).Round(100*time.Millisecond))
	}
	if rows := strings.Fields(out); len(rows) < 2 || rows[len(rows)-2] != "id" || rows[len(rows)-1] != "1" {
		t.Errorf("the row is not in the restored group: %q", out)
	}
}
