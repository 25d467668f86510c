// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// need is an operation that fails without a right. It leaves the server fenced and without replication.
type need func(t *testing.T, s *mysqltest.Server, target mysql.Target) error

// withDB runs one call of the package as the account in question.
func withDB(call func(context.Context, *mysql.DB) error) need {
	return func(t *testing.T, _ *mysqltest.Server, target mysql.Target) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		return call(ctx, mysqltest.Open(t, target))
	}
}

func sees(ctx context.Context, db *mysql.DB) error {
	st, err := db.Status(ctx)
	if err == nil && !st.HasDatabases {
		err = errors.New("sees no database")
	}
	return err
}

func fences(ctx context.Context, db *mysql.DB) error {
	_, err := db.Fence(ctx, mysql.FenceOptions{})
	return err
}

func opensAndFences(ctx context.Context, db *mysql.DB) error {
	if err := db.OpenWrites(ctx); err != nil {
		return err
	}
	return fences(ctx, db)
}

func followsAndDrops(ctx context.Context, db *mysql.DB) error {
	if err := db.Follow(ctx, mysql.Source{Host: "127.0.0.1", Port: 1, User: "u"}); err != nil {
		return err
	}
	return db.DropReplication(ctx)
}

// fencesRoot must kill a session of root's.
func fencesRoot(t *testing.T, s *mysqltest.Server, target mysql.Target) error {
	conn := session(t, s.Root(t), "SET GLOBAL read_only = OFF", "LOCK TABLES app.t WRITE")
	defer func() {
		_, _ = conn.ExecContext(t.Context(), "UNLOCK TABLES")
		s.Exec(t, "SET GLOBAL super_read_only = ON")
	}()
	return withDB(fences)(t, s, target)
}

// clones must get beyond the recipient's own checks: the donor is not there.
func clones(ctx context.Context, db *mysql.DB) error {
	err := db.Clone(ctx, mysql.Donor{Host: "127.0.0.1", Port: 1, User: "u"})
	if serverNumber(err) == 3862 {
		return nil
	}
	return err
}

// rotates gives the server new master keys, in a window.
func rotates(ctx context.Context, db *mysql.DB) error {
	if err := db.BeginWindow(ctx); err != nil {
		return err
	}
	return errors.Join(db.RotateMasterKeys(ctx), db.EndWindow(ctx))
}

// readsBinlogs must see how much room binary logs take.
func readsBinlogs(ctx context.Context, db *mysql.DB) error {
	_, err := db.Binlogs(ctx)
	return err
}

// covers must see a tablespace in the clear, and encrypt those that MySQL made.
func covers(t *testing.T, s *mysqltest.Server, target mysql.Target) error {
	s.Exec(t, "SET GLOBAL read_only = OFF", "ALTER TABLESPACE mysql ENCRYPTION = 'N'", "ALTER TABLE sys.sys_config ENCRYPTION = 'N'")
	defer s.Exec(t, "SET GLOBAL super_read_only = ON")
	db := mysqltest.Open(t, target)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	// The wait for the checkpoint needs no right.
	if err := db.EncryptSystemTablespaces(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	c, err := db.Coverage(budget(t))
	if err == nil && !c.SystemTablespace {
		err = fmt.Errorf("covers %+v", c)
	}
	return err
}

// rights are, for each right of an account, an operation that needs it.
var (
	commonNeeds = map[string]need{
		"SYSTEM_VARIABLES_ADMIN":         withDB(opensAndFences),
		"CONNECTION_ADMIN":               fencesRoot,
		"SYSTEM_USER":                    fencesRoot,
		"SERVICE_CONNECTION_ADMIN":       withDB(sees),
		"XA_RECOVER_ADMIN":               withDB(opensAndFences),
		"SHOW DATABASES":                 withDB(sees),
		"SELECT ON performance_schema.*": withDB(sees),
	}
	ownPasswordNeeds = map[string]need{"APPLICATION_PASSWORD_ADMIN": hasTwoPasswords}
	operatorNeeds    = map[string]need{
		"REPLICATION_SLAVE_ADMIN": withDB(followsAndDrops),
		"RELOAD":                  withDB(followsAndDrops),
		"CLONE_ADMIN":             withDB(clones),
		"ENCRYPTION_KEY_ADMIN":    withDB(rotates),
		"BINLOG_ENCRYPTION_ADMIN": withDB(rotates),
		"REPLICATION CLIENT":      withDB(readsBinlogs),
	}
	sidecarNeeds = map[string]need{
		"PROCESS":                 covers,
		"CREATE TABLESPACE":       covers,
		"TABLE_ENCRYPTION_ADMIN":  covers,
		"ALTER ON sys.sys_config": covers,
	}
	probeNeeds = map[string]need{
		"SESSION_VARIABLES_ADMIN":  probes,
		"SELECT ON sys.sys_config": probes,
		"INSERT ON sys.sys_config": probes,
		"DELETE ON sys.sys_config": probes,
	}
)

// probes must commit on a server that is open meanwhile.
func probes(t *testing.T, s *mysqltest.Server, target mysql.Target) error {
	target.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	s.Exec(t, "SET GLOBAL read_only = OFF")
	defer s.Exec(t, "SET GLOBAL super_read_only = ON")
	return mysqltest.Open(t, target).ProbeWrite(budget(t))
}

// hasTwoPasswords must take a second password, and let it go again.
func hasTwoPasswords(t *testing.T, s *mysqltest.Server, target mysql.Target) error {
	target.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	s.Exec(t, "SET GLOBAL read_only = OFF")
	defer s.Exec(t, "SET GLOBAL super_read_only = ON")
	if err := mysql.IntroducePassword(t.Context(), target, "another"); err != nil {
		return err
	}
	return mysql.RetirePasswords(t.Context(), target)
}

// TestRightsAreNeeded takes each right away in turn: what it is for must fail, and work again when it is back. Together with
// the list of grants this shows that no account has a right for nothing.
func TestRightsAreNeeded(t *testing.T) {
	t.Parallel()
	s := writable(t, mysqltest.Options{Keyring: true})
	s.Exec(t, "SET GLOBAL super_read_only = ON")
	operator, sidecar := maps.Clone(commonNeeds), maps.Clone(commonNeeds)
	maps.Copy(operator, operatorNeeds)
	maps.Copy(sidecar, sidecarNeeds)
	for _, needs := range []map[string]need{operator, sidecar, probeNeeds} {
		maps.Copy(needs, ownPasswordNeeds)
	}
	for _, account := range []struct {
		target mysql.Target
		needs  map[string]need
	}{
		{s.Target(mysql.AccountOperator, mysqltest.Passwords.Operator), operator},
		{s.Target(mysql.AccountSidecar, mysqltest.Passwords.Sidecar), sidecar},
		{s.Target(mysql.AccountProbe, mysql.ProbePassword(mysqltest.Passwords.Sidecar)), probeNeeds},
	} {
		// What is asked is who may, and not how long a disk takes that others use too.
		account.target.QueryTimeout = time.Minute
		needed := slices.Sorted(maps.Keys(account.needs))
		if diff := cmp.Diff(needed, granted(t, s, account.target.User)); diff != "" {
			t.Errorf("%s (-needed +granted):\n%s", account.target.User, diff)
		}
		for right, do := range account.needs {
			t.Run(account.target.User+" "+right, func(t *testing.T) {
				if !strings.Contains(right, " ON ") {
					right += " ON *.*"
				}
				// Whatever happened, the next right is looked at on a fenced server without replication.
				defer s.Exec(t, "SET GLOBAL offline_mode = OFF", "STOP REPLICA IO_THREAD", "STOP REPLICA SQL_THREAD", "RESET REPLICA ALL")
				if err := do(t, s, account.target); err != nil {
					t.Fatalf("with the right: %v", err)
				}
				alter(t, s, "REVOKE "+right+" FROM "+account.target.User)
				err := do(t, s, account.target)
				alter(t, s, "GRANT "+right+" TO "+account.target.User)
				if err == nil {
					t.Error("nothing fails without it")
				}
			})
		}
	}
}

// alter changes rights on a fenced server.
func alter(t *testing.T, s *mysqltest.Server, statement string) {
	t.Helper()
	s.Exec(t, "SET SESSION sql_log_bin = 0", "SET GLOBAL super_read_only = OFF", statement, "SET GLOBAL super_read_only = ON")
}

// granted are the rights of an account, sorted.
func granted(t *testing.T, s *mysqltest.Server, user string) (rights []string) {
	t.Helper()
	rows, err := s.Root(t).QueryContext(t.Context(), "SHOW GRANTS FOR "+user)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			t.Fatal(err)
		}
		list, rest, _ := strings.Cut(strings.TrimPrefix(grant, "GRANT "), " ON ")
		on, _, _ := strings.Cut(rest, " TO ")
		for right := range strings.SplitSeq(list, ",") {
			if right = strings.TrimSpace(right); right == "USAGE" {
				continue // it means none
			}
			if on != "*.*" {
				right += " ON " + strings.ReplaceAll(on, "`", "")
			}
			rights = append(rights, right)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(rights)
	return rights
}

func TestAccountsRequireTLS(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{TLS: true})
	target := s.Target(mysql.AccountOperator, mysqltest.Passwords.Operator)
	target.TLS = nil
	if _, err := mysqltest.Open(t, target).Status(budget(t)); err == nil {
		t.Error("an account that requires TLS must not get in without")
	}
	status(t, s.Operator(t))
}

// TestInitializeStopsAtFailure shows what a bootstrap rests on: an initialisation that ends well has run every statement.
func TestInitializeStopsAtFailure(t *testing.T) {
	statements := append(mysql.AccountStatements(mysqltest.Passwords, false), "CREATE USER "+mysql.AccountOperator)
	if err := mysqltest.InitializeDatadir(t.Context(), filepath.Join(t.TempDir(), "home"), statements); err == nil {
		t.Error("an account that exists already must fail the initialisation")
	}
}
