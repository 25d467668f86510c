// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/datadir"
)

const (
	// startTimeout bounds the start of a mysqld, with its recovery; stopTimeout its clean end.
	startTimeout = 10 * time.Minute
	stopTimeout  = 10 * time.Minute
	// initTimeout bounds the making of an empty data directory.
	initTimeout = 5 * time.Minute
	// ready is what mysqld says once its init file was run and it takes connections.
	ready = "ready for connections"
	// loader is an account that lives as long as a load. It is there because nobody knows the password of root in a backup.
	loader = "mfg_load"
	// dialTimeout bounds a connection to the socket.
	dialTimeout = 10 * time.Second
)

// Server is a mysqld that nobody but us reaches, with its data directory: it has a socket in a directory of ours, and no network.
type Server struct {
	Config terms.Server
	Log    *slog.Logger
	// Extra are further arguments, which begin to count when it starts.
	Extra []string

	cmd *exec.Cmd
	// pid is that of the process; 0 while there is none.
	pid   atomic.Int64
	done  chan struct{}
	state error // of the process, once done is closed
	said  *tailBuffer
	pool  *sql.DB
}

// Why is the end of mysqld's log, where the reason is.
func (s *Server) Why() string { return s.said.end() }

// Done is closed once mysqld has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Pool are the connections to it; they last until it ends, or until Disconnect.
func (s *Server) Pool() *sql.DB { return s.pool }

// args are those of every mysqld that runs here. Later ones count, so the defaults file cannot undo them.
func (s *Server) args(more ...string) []string {
	c := s.Config
	defaults := "--no-defaults"
	if c.DefaultsFile != "" {
		defaults = "--defaults-file=" + c.DefaultsFile
	}
	tmp := c.TmpDir
	if tmp == "" {
		tmp = c.RunDir
	}
	args := []string{
		defaults, "--datadir=" + c.Dir, "--tmpdir=" + tmp, "--secure-file-priv=NULL", "--mysqlx=OFF", "--persisted-globals-load=OFF",
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-error-verbosity=2", "--log-error-services=log_filter_internal; log_sink_internal",
		"--log-error-suppression-list=", "--innodb-buffer-pool-load-at-startup=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF",
	}
	if c.DefaultsFile == "" {
		args = append(args, "--skip-log-bin")
	}
	if c.PluginDir != "" {
		args = append(args, "--plugin-dir="+c.PluginDir)
	}
	if c.BufferPoolBytes > 0 {
		args = append(args, "--innodb-buffer-pool-size="+strconv.FormatInt(c.BufferPoolBytes, 10))
	}
	if c.KeyringFile != "" && c.DefaultsFile == "" {
		args = append(args, encrypted...)
	}
	return append(append(args, s.Extra...), more...)
}

// encrypted are the settings of a server of ours whose disk must hold nothing in the clear.
var encrypted = []string{"--default-table-encryption=ON", "--innodb-redo-log-encrypt=ON", "--innodb-undo-log-encrypt=ON"}

// Initialise makes an empty data directory.
func (s *Server) Initialise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	args := []string{"--initialize-insecure"}
	if tmp := s.Config.TmpDir; tmp != "" {
		options, remove, err := datadir.ForInitialize(tmp)
		if err != nil {
			return terms.Fail(terms.BadConfig, err)
		}
		defer func() { _ = remove() }() // else the next try removes it
		args = append(args, options...)
	}
	cmd := exec.CommandContext(ctx, "mysqld", s.args(args...)...)
	s.said = &tailBuffer{}
	cmd.Stderr, cmd.Stdout = s.said, s.said
	cmd.WaitDelay = childDelay
	cmd.SysProcAttr = endsWithUs()
	defer lockThread()()
	if err := cmd.Run(); err != nil {
		return terms.Fail(terms.ServerFailed, fmt.Errorf("initialise a data directory: %w: %s", err, s.Why()))
	}
	return nil
}

// Start starts mysqld, and waits until it has made our account and takes connections. It ends with ctx.
func (s *Server) Start(ctx context.Context) error {
	init, err := memoryFile(strings.Join(loaderStatements(), ";\n") + ";\n")
	if err != nil {
		return err
	}
	defer func() { _ = init.Close() }()
	socket := s.socket()
	_ = os.Remove(socket)
	_ = os.Remove(socket + ".lock")

	s.cmd = exec.CommandContext(ctx, "mysqld", s.args("--skip-networking", "--socket="+socket, "--pid-file="+filepath.Join(s.Config.RunDir, "load.pid"),
		"--init-file="+childFile, "--super-read-only=OFF", "--read-only=OFF", "--offline-mode=OFF", "--skip-replica-start=ON", "--event-scheduler=OFF",
		"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0", "--max-allowed-packet=1G", "--innodb-doublewrite=OFF", "--require-secure-transport=OFF",
		// What the site sets for its clients must not end a load that its scratch server, without these, has verified.
		"--max-execution-time=0", "--sql-require-primary-key=OFF", "--sql-generate-invisible-primary-key=OFF", "--disabled-storage-engines=")...)
	s.cmd.ExtraFiles = []*os.File{init}
	s.cmd.WaitDelay = childDelay
	// CLONE ends mysqld to have it started again, and does it cleanly only if it believes that there is somebody who does.
	s.cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID="+strconv.Itoa(os.Getpid()))
	s.cmd.SysProcAttr = endsWithUs()
	s.done, s.said = make(chan struct{}), &tailBuffer{}
	if err := s.launch(); err != nil {
		return err
	}
	if s.pool, err = mysql.Pool(mysql.Target{Addr: socket, User: loader, Password: loaderPassword, DialTimeout: dialTimeout, Program: "mfg backup", Unbounded: true}); err != nil {
		return err
	}
	s.pool.SetMaxOpenConns(8)
	return nil
}

// socket is where it takes connections.
func (s *Server) socket() string { return filepath.Join(s.Config.RunDir, "load.sock") }

// launch starts the process on a thread that lives as long as it does, and waits until it is ready.
func (s *Server) launch() error {
	output, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	started, up := make(chan error), make(chan struct{})
	go func() {
		defer lockThread()()
		err := s.cmd.Start()
		if err == nil {
			s.pid.Store(int64(s.cmd.Process.Pid))
		}
		started <- err
		if err != nil {
			return
		}
		s.listen(output, up)
		s.state = s.cmd.Wait()
		s.pid.Store(0)
		close(s.done)
	}()
	if err := <-started; err != nil {
		return terms.Fail(terms.BadConfig, fmt.Errorf("start mysqld: %w", err))
	}
	select {
	case <-up:
		return nil
	case <-s.done:
		return terms.Fail(terms.ServerFailed, fmt.Errorf("mysqld ended before it was ready: %w: %s", s.state, s.Why()))
	case <-time.After(startTimeout):
		s.Kill()
		return terms.Fail(terms.ServerFailed, fmt.Errorf("mysqld was not ready after %s: %s", startTimeout, s.Why()))
	}
}

// listen logs what mysqld says until it ends. The line about a failing statement of the init file quotes it, passwords and all.
func (s *Server) listen(output io.Reader, up chan<- struct{}) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	open := false
	for lines.Scan() {
		line := lines.Text()
		if strings.Contains(line, "MY-000061") {
			line = "MY-000061: a statement of the init file failed (text withheld)"
		}
		_, _ = s.said.Write([]byte(line + "\n"))
		s.Log.Debug("mysqld says", "line", line)
		if !open && strings.Contains(line, ready) {
			open = true
			close(up)
		}
	}
	_, _ = io.Copy(io.Discard, output) // what is left unread must not block mysqld
}

// Stop ends mysqld cleanly: its directory is whole on the disk afterwards.
func (s *Server) Stop() error {
	s.Disconnect()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return terms.Fail(terms.ServerFailed, fmt.Errorf("end mysqld: %w", err))
	}
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		s.Kill()
		return terms.Fail(terms.ServerFailed, fmt.Errorf("mysqld did not end within %s", stopTimeout))
	}
	if s.state != nil {
		return terms.Fail(terms.ServerFailed, fmt.Errorf("mysqld ended uncleanly: %w: %s", s.state, s.Why()))
	}
	return nil
}

// Kill ends mysqld at once. What it had is worth nothing.
func (s *Server) Kill() {
	s.Disconnect()
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Disconnect closes the connections, of a server that has ended.
func (s *Server) Disconnect() {
	if s.pool != nil {
		_ = s.pool.Close()
		s.pool = nil
	}
}

// loaderPassword is of one run of this program, and in memory alone.
var loaderPassword = rand.Text()

// loaderStatements make the account that loads; they are run by the server itself.
func loaderStatements() []string {
	account := "'" + loader + "'@'localhost'"
	return []string{
		"SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''", "DROP USER IF EXISTS " + account,
		"CREATE USER " + account + " IDENTIFIED BY '" + loaderPassword + "'", "GRANT ALL ON *.* TO " + account + " WITH GRANT OPTION",
	}
}

// Leave removes our account. The connection outlives it.
func Leave(ctx context.Context, conn *sql.Conn) error {
	return Run(ctx, conn, "DROP USER '"+loader+"'@'localhost'")
}

// Client is the program mysql, which logs in by our account, with further options of its own.
func (s *Server) Client(ctx context.Context, options string) (*Child, error) {
	c, err := NewChild(ctx, "[client]\n"+OptionLine("user", loader)+OptionLine("password", loaderPassword)+OptionLine("socket", s.socket())+"[mysql]\n"+options, "mysql")
	if err != nil {
		return nil, err
	}
	c.Secret, c.Stdout = loaderPassword, c.Stderr
	return c, nil
}

// Conn is a connection that leaves no transaction.
func (s *Server) Conn(ctx context.Context) (*sql.Conn, error) {
	c, err := s.pool.Conn(ctx)
	if err != nil {
		return nil, terms.Fail(terms.ServerFailed, fmt.Errorf("reach the mysqld here: %w: %s", err, s.Why()))
	}
	err = Run(ctx, c, "SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''", "SET SESSION time_zone = '+00:00'")
	if err != nil {
		return nil, errors.Join(terms.Fail(terms.ServerFailed, err), c.Close())
	}
	return c, nil
}
