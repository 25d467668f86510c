// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// uid and gid of mysqld, as in the pod.
const uid = 999

// The paths inside the server's root file system; its own folder is mounted at home.
const (
	home    = "/srv"
	datadir = home + "/data"
	socket  = home + "/mysqld.sock"
)

// Passwords are those of every server that Start makes. They hold characters that are hard to quote.
var Passwords = mysql.Accounts{
	Operator: `op'er\ator";-- #`, Replication: `repl/*'\%_` + "`" + `~ 123`, Clone: `cl"o'n;e\`, Sidecar: "side\\'car", Root: "ro'ot",
}

// config is my.cnf as the operator renders it, but small and on the loopback.
func config(serverID, port, adminPort int, opts Options) string {
	lines := []string{
		"[mysqld]",
		"datadir=" + datadir, "socket=" + socket, "pid_file=" + home + "/mysqld.pid", "tmpdir=" + home + "/tmp",
		"bind_address=127.0.0.1", "admin_address=127.0.0.1", "create_admin_listener_thread=ON", "mysqlx=OFF", "secure_file_priv=NULL",
		"port=" + strconv.Itoa(port), "admin_port=" + strconv.Itoa(adminPort), "server_id=" + strconv.Itoa(serverID),
		"report_host=127.0.0.1", "report_port=" + strconv.Itoa(port),
		"gtid_mode=ON", "enforce_gtid_consistency=ON", "log_bin=binlog", "log_replica_updates=ON",
		"super_read_only=ON", "read_only=ON", "skip_replica_start=ON", "persisted_globals_load=OFF",
		"relay_log_recovery=0", "sync_relay_log=10", "replica_net_timeout=5", "replica_parallel_workers=4",
		"innodb_redo_log_capacity=8M", "innodb_buffer_pool_size=64M",
		// Tests kill servers, but not the machine: data that the kernel has is safe, and starts are faster.
		"innodb_flush_method=nosync", "innodb_doublewrite=OFF",
		// A start spends most of its time on the pages of memory that it fills, and tests start hundreds of servers. No test looks at these.
		"innodb_log_buffer_size=1M", "performance_schema_max_mutex_instances=0", "performance_schema_max_rwlock_instances=0",
		"performance_schema_max_cond_instances=0", "performance_schema_digests_size=100",
		"performance_schema_max_table_instances=500", "performance_schema_max_table_handles=500",
	}
	if !opts.NoClonePlugin {
		lines = append(lines, "plugin-load-add=mysql_clone.so")
	}
	if opts.TLS {
		lines = append(lines, "require_secure_transport=ON")
		for _, prefix := range []string{"", "clone_"} {
			lines = append(lines, prefix+"ssl_ca="+home+"/ca.crt", prefix+"ssl_cert="+home+"/tls.crt", prefix+"ssl_key="+home+"/tls.key")
		}
	}
	if opts.Keyring {
		lines = append(lines, Encrypted...)
	}
	return strings.Join(append(lines, opts.Config...), "\n") + "\n"
}

// template is an initialised data directory that servers are copied from.
func template(ctx context.Context, root string, requireTLS bool) (string, error) {
	statements := mysql.AccountStatements(Passwords, requireTLS)
	sum := sha256.Sum256([]byte(strings.Join(statements, "\n")))
	return cached("mysql-datadir-"+hex.EncodeToString(sum[:6]), func(dir string) error {
		if err := initialize(ctx, root, dir, statements); err != nil {
			return err
		}
		// Each copy makes its own server_uuid.
		return os.Remove(filepath.Join(dir, "data", "auto.cnf"))
	})
}

// InitializeDatadir makes dir with an initialised data directory in dir/data, in one step, as the sidecar's bootstrap
// does.
func InitializeDatadir(ctx context.Context, dir string, statements []string) error {
	root, err := rootfs(ctx)
	if err != nil {
		return err
	}
	return initialize(ctx, root, dir, statements)
}

func initialize(ctx context.Context, root, dir string, statements []string) error {
	if err := makeHome(dir); err != nil {
		return err
	}
	init := filepath.Join(dir, "init.sql")
	if err := writeOwned(init, strings.Join(statements, ";\n")+";\n"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(init) }()
	if err := writeOwned(filepath.Join(dir, "my.cnf"), config(1, 3306, 33062, Options{})); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := inRootfs(ctx, root, dir, "mysqld", "--defaults-file="+home+"/my.cnf", "--initialize-insecure", "--init-file="+home+"/init.sql")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initialize: %w\n%s", err, tail(string(out)))
	}
	return nil
}

func makeHome(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return err
		}
		if err := os.Chown(d, uid, uid); err != nil {
			return err
		}
	}
	return nil
}

// writeOwned writes a file that only mysqld's user may read.
func writeOwned(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chown(path, uid, uid)
}

// inRootfs runs a command as mysqld's user, as process 1 of a PID namespace of its own, with dir mounted at home. The
// mounts are in a namespace of their own too, and disappear with it; earlier mounts below dir are there, too.
//
// Every process in the chain dies with its parent, down to mysqld: a change of user clears what unshare --kill-child has
// set, so setpriv sets it again. The first process dies with the thread that starts the command: lock that thread.
func inRootfs(ctx context.Context, root, dir string, command ...string) *exec.Cmd {
	const script = `mount --rbind "$1" "$2` + home + `" && mount -t proc proc "$2/proc" || exit 1; ` + mountKeyring + `root=$2 && shift 2 && ` +
		`exec chroot "$root" setpriv --reuid=999 --regid=999 --clear-groups --pdeathsig=KILL "$@"`
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", dir, root}, command...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Ending process 1 first means that Wait returns only once it is gone and writes no more.
	cmd.Cancel = func() error {
		pid, err := childOf(cmd.Process.Pid)
		if err != nil {
			return cmd.Process.Kill()
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return cmd
}

// childOf is the only child of a process.
func childOf(parent int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
