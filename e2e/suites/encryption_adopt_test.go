// SPDX-License-Identifier: Apache-2.0

//go:build lab && stories

package suites

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// TestEncryptionAtRestAdopted: a group that serves without encryption is adopted under load by `kubectl mfg adopt`. Nothing is
// lost; what it had stays in the clear, which is told, until the listed statements are run.
func TestEncryptionAtRestAdopted(t *testing.T) {
	v := adoptable(t)
	group, err := v.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	m := inTheClear(t, v.Group, group)
	w := witnesses(t, v.Group)
	at := load.Now()
	refusedFirst(t, v)
	keepLogs(t)
	stop := v.keepTokens(t)

	out := runbook(t, v, "adopt", "", withPlugin())
	for _, said := range []string{"the keyring of every site is sealed", "kubectl mfg adopt " + v.Name + " -n " + v.Namespace + " --tables"} {
		if !strings.Contains(out, said) {
			t.Errorf("the documented command does not say %q:\n%s", said, out)
		}
	}
	group = v.sealed(t, resealing)
	stop()
	for _, site := range stage.Sites {
		checkSealed(t, v, group, site)
		if n := keyringOf(group, site).Coverage.UnencryptedTablespaces; n == 0 {
			t.Errorf("%s: status tells of nothing in the clear", site)
		}
		if !markerInTables(t, v.Group, site, m) {
			t.Errorf("%s: the old table is not in the clear: the search proves nothing", site)
		}
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if verdict, _ := judge(t, w, at); len(verdict.Missing) > 0 || verdict.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(verdict.Missing), verdict.Lost)
	}
	noErrant(t, v.Group)
	rebuilt(t, v, m)
	nothingInLogs(t, v)
}

// adoptable makes a group without encryption.
func adoptable(t *testing.T) *vault {
	t.Helper()
	// One that a run before this one left behind may be half adopted.
	if err := (&stage.Group{Stage: lab, Namespace: "suite-adopted", Name: "adopted"}).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec("adopted")
	// Under load a replica whose pod was just replaced may take its time on a busy machine, and that is not the subject.
	spec.Failover.PlannedLagTimeout = metav1.Duration{Duration: 10 * time.Minute}
	g, err := lab.NewGroup(t.Context(), "suite-adopted", "adopted", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), "encryption-adopted")
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return &vault{Group: g, needles: map[string]string{}, began: time.Now()}
}

// refusedFirst turns encryption on, which the operator refuses without a word of a person.
func refusedFirst(t *testing.T, v *vault) {
	t.Helper()
	pluginRun{group: v.Group, args: []string{"adopt", v.Name, "--yes"}}.play(t).want(t, 5, nil).says(t, "not asked for in the specification")
	group, err := v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := group.DeepCopy()
	group.Spec.EncryptionAtRest = stage.EncryptedSpec(v.Name).EncryptionAtRest
	if err := v.Kube.Patch(t.Context(), group, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Await(t.Context(), time.Minute, "the adoption to be refused", func(group *v1alpha1.MysqlFailoverGroup) error {
		c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionEncryptionReady)
		if c == nil || c.Reason != "EncryptionAdoptionRefused" {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	checkEvent(t, v.Group, "EncryptionAdoptionRefused", "existing tablespaces would stay plaintext")
	pluginRun{group: v.Group, args: []string{"adopt", v.Name}}.play(t).want(t, 2, nil).says(t, "cannot be turned off again", "no --yes")
}

// rebuilt runs the statements that the plugin lists, as the list says it, and looks for what is left.
func rebuilt(t *testing.T, v *vault, m marks) {
	t.Helper()
	group := v.sealed(t, comeBack)
	active, table := group.Status.ActiveSite, m.schema+"`.`"+m.table
	list := pluginRun{group: v.Group, args: []string{"adopt", v.Name, "--tables"}}.play(t).want(t, 3, nil)
	list.says(t, "ALTER SCHEMA `"+m.schema+"` DEFAULT ENCRYPTION='Y';", "ALTER TABLE `"+table+"` ENCRYPTION='Y';")
	query(t, v.Group, active, fmt.Sprintf("CREATE TABLE `%s`.early (a INT PRIMARY KEY)", m.schema))
	list = pluginRun{group: v.Group, args: []string{"adopt", v.Name, "--tables"}}.play(t).want(t, 3, nil)
	// The documentation says so: a new table of an old schema is in the clear.
	list.says(t, "`early` ENCRYPTION='Y';")
	pluginRun{group: v.Group, args: []string{"mysql", v.Name, active}, stdin: list.out}.play(t).want(t, 0, nil)
	query(t, v.Group, active, fmt.Sprintf("CREATE TABLE `%s`.late (a INT PRIMARY KEY)", m.schema))
	pluginRun{group: v.Group, args: []string{"adopt", v.Name, "--tables"}}.play(t).want(t, 0, nil).says(t, "Nothing of users is in the clear")
	if _, err := v.Await(t.Context(), comeBack, "status to say that no table is in the clear", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, site := range stage.Sites {
			if c := keyringOf(group, site).Coverage; c.UnencryptedTablespaces != 0 || !c.SystemTablespaceEncrypted || !c.RedoLogEncrypted || !c.UndoLogEncrypted {
				return fmt.Errorf("%s: coverage %+v", site, c)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, site := range stage.Sites {
		if markerInTables(t, v.Group, site, m) {
			t.Errorf("%s: the marker is in a file of a table still", site)
		}
		if got := query(t, v.Group, site, fmt.Sprintf("SELECT COUNT(*) > 500 FROM `%s`", table)); got != "1" {
			t.Errorf("%s: the rows cannot be read: %s", site, got)
		}
	}
	newIsHidden(t, v)
	noErrant(t, v.Group)
}
