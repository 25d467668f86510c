// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package render_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
	"github.com/mysql-mfg/mfg/operator/render"
)

// The list that the other tests stand on is that of a real mysqld. With another version: write what this prints into the file,
// and give what is new a category.
func TestOptionsAreThoseOfARealMySQL(t *testing.T) {
	got := mysqltest.OptionNames(t)
	if *update {
		if err := os.WriteFile(optionsFile, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(options(t), got); diff != "" {
		t.Errorf("run with -update, and give what is new a category (-have +mysqld):\n%s", diff)
	}
}

// harmful are settings in spellings that a real mysqld takes: with dashes, behind loose_ and disable_, with old words.
var harmful = map[string]string{
	"loose-general-log_file":                  "/srv/tmp/anywhere",
	"loose_init-connect":                      "SET @injected = 1",
	"performance-schema-max-thread-instances": "0",
	"slave_exec-mode":                         "IDEMPOTENT",
	"binlog_error-action":                     "IGNORE_ERROR",
	"mandatory_roles":                         "mallory",
	"enable-activate-all-roles-on-login":      "1",
	"default-password-lifetime":               "1",
	"log_raw":                                 "ON",
	// Without its component a server knows nothing of it, and starts because of the prefix.
	"loose_connection-control-failed-connections-threshold": "1",
}

// A real mysqld neither takes capitals nor the beginning of a name: with one it does not start at all. So nothing of that kind may
// be written.
func TestARealMySQLStartsWithWhatIsPassedOn(t *testing.T) {
	in := input(func(in *render.Input) {
		in.Group.Spec.MysqlConf = map[string]string{"Max-Connections": "78", "max_connectio": "1", "SLOW_QUERY_LOG": "ON", "loose-nothing": "1", "skip-show-database": ""}
	})
	s := mysqltest.Start(t, mysqltest.Options{Config: lines(in)})
	var connections int
	if err := s.Root(t).QueryRowContext(t.Context(), "SELECT @@max_connections").Scan(&connections); err != nil || connections != 78 {
		t.Errorf("max_connections is %d, %v", connections, err)
	}
}

// lines are what the option file has of spec.mysqlConf.
func lines(in render.Input) []string {
	text := render.ConfigMap(in, in.Group.Spec.Sites[0]).Data[render.ConfigKeyMyCnf]
	_, mine, _ := strings.Cut(text, "# From spec.mysqlConf.\n")
	mine, _, _ = strings.Cut(mine, "\n# Owned")
	return strings.Split(strings.TrimSpace(mine), "\n")
}

// What the refused settings do, on a server that has them as they stand; and that one with the rendered ones has nothing of it.
func TestHarmfulSettingsNeverReachARealMySQL(t *testing.T) {
	conf := map[string]string{"GENERAL-LOG": "ON", "max_connections": "77"}
	raw := []string{"general_log=ON"}
	for key, value := range harmful {
		conf[key] = value
		raw = append(raw, key+"="+value)
	}
	in := input(func(in *render.Input) { in.Group.Spec.MysqlConf = conf })
	if passed := lines(in); !slices.Equal(passed, []string{"general-log=ON", "max_connections=77"}) {
		t.Errorf("passed on: %v", passed)
	}
	for name, tt := range map[string]struct {
		lines []string
		harm  bool
	}{"as they stand": {raw, true}, "as rendered": {lines(in), false}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{Config: tt.lines})
			s.Exec(t, "SET GLOBAL super_read_only=OFF", "SET GLOBAL read_only=OFF", "CREATE USER guest IDENTIFIED BY 'g'")
			for what, is := range harms(t, s) {
				if is != tt.harm {
					t.Errorf("%s: %t, want %t", what, is, tt.harm)
				}
			}
		})
	}
}

func harms(t *testing.T, s *mysqltest.Server) map[string]bool {
	t.Helper()
	root, guest := s.Root(t), s.Client(t, "guest", "g")
	ask := func(query string) (is bool) {
		t.Helper()
		if err := root.QueryRowContext(t.Context(), query).Scan(&is); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return is
	}
	_, err := os.Stat(filepath.Join(s.Dir, "tmp", "anywhere"))
	out := map[string]bool{
		"mysqld writes a file of the user's choice":    err == nil,
		"the sessions of clients are not to be seen":   ask("SELECT COUNT(*) = 0 FROM performance_schema.threads"),
		"rows that differ are passed over":             ask("SELECT @@replica_exec_mode = 'IDEMPOTENT'"),
		"passwords stand in the log":                   ask("SELECT @@log_raw"),
		"commits go on without a binary log":           ask("SELECT @@binlog_error_action = 'IGNORE_ERROR'"),
		"every account has a role that nobody granted": ask("SELECT @@mandatory_roles <> '' AND @@activate_all_roles_on_login"),
		"passwords of our accounts end":                ask("SELECT @@default_password_lifetime > 0"),
	}
	var injected bool
	if err := guest.QueryRowContext(t.Context(), "SELECT @injected IS NOT NULL").Scan(&injected); err != nil {
		t.Fatal(err)
	}
	out["SQL runs in the sessions of others"] = injected
	return out
}
