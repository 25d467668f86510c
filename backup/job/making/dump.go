// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// dumpOptions are those of mysqldump, in its option file, so that nothing of them is in the arguments.
//
//   - skip-network-timeout and net-write-timeout: mysqldump would have the server wait for days for somebody who is gone
//   - no-tablespaces: those are for NDB; general tablespaces are read apart
//   - skip-dump-date: two dumps of one state are the same
var dumpOptions = []string{
	"single-transaction", "set-gtid-purged=ON", "source-data=2", "routines", "events", "triggers", "hex-blob", "no-tablespaces", "opt",
	"skip-dump-date", "skip-network-timeout", "max-allowed-packet=1G", "net-buffer-length=1M", "default-character-set=utf8mb4", "tz-utc",
}

// netWriteTimeout is how long the site waits for a storage that does not take anything, before the dump is given up.
const netWriteTimeout = 600

// options are mysqldump's option file. It leaves the views out.
func options(s terms.Source, password string, without []terms.View) string {
	var b strings.Builder
	b.WriteString("[client]\n")
	for _, pair := range [][2]string{{"host", s.Host}, {"user", s.User}, {"password", password}, {"protocol", "tcp"}} {
		b.WriteString(mysqld.OptionLine(pair[0], pair[1]))
	}
	fmt.Fprintf(&b, "port=%d\n", s.Port)
	if s.CAFile != "" {
		b.WriteString(mysqld.OptionLine("ssl-mode", "VERIFY_IDENTITY") + mysqld.OptionLine("ssl-ca", s.CAFile))
	} else {
		// A group without TLS; the password is not sent in the clear all the same.
		b.WriteString("ssl-mode=PREFERRED\nget-server-public-key\n")
	}
	b.WriteString("[mysqldump]\n" + strings.Join(dumpOptions, "\n") + "\n")
	for _, v := range without {
		b.WriteString(mysqld.OptionLine("ignore-table", v.Schema+"."+v.Name))
	}
	b.WriteString(mysqld.OptionLine("init-command", fmt.Sprintf("SET SESSION lock_wait_timeout = %d, net_write_timeout = %d, max_execution_time = 0", lockWait(s), netWriteTimeout)))
	return b.String()
}

// dump streams a dump of the databases into out, with the option file. It ends the sessions on the site before it ends mysqldump.
func dump(ctx context.Context, options string, src *source, schemas []string, out io.Writer) (gtid.Set, []terms.TableRows, error) {
	if err := ctx.Err(); err != nil {
		return gtid.Set{}, nil, err
	}
	child, err := mysqld.NewChild(ctx, options, "mysqldump", append([]string{"--databases", "--"}, schemas...)...)
	if err != nil {
		return gtid.Set{}, nil, err
	}
	defer child.Close()
	child.Secret = src.password
	child.Cancel = func() error {
		// The locks first, and only then the program that has them: the server may take long to notice that it is gone.
		return errors.Join(src.end(), child.Process.Kill())
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return gtid.Set{}, nil, err
	}
	if err := child.Start(); err != nil {
		return gtid.Set{}, nil, terms.Fail(terms.BadConfig, fmt.Errorf("start mysqldump: %w", err))
	}
	// The set stands at the beginning, and mysqldump has its snapshot by then.
	scan := &scanner{settled: func() error { return src.checkXA(ctx) }}
	copied := mysqld.Pour(stdout, io.MultiWriter(scan, out))
	if copied != nil {
		_ = src.end() // nobody reads any more: the dump is worth nothing, and must not hold its locks
		_ = child.Process.Kill()
	}
	waited := child.Wait()
	if copied != nil {
		return gtid.Set{}, nil, copied
	}
	if waited != nil {
		return gtid.Set{}, nil, dumpError(waited, child.Said())
	}
	set, err := scan.complete()
	return set, scan.tables, terms.Fail(terms.DumpFailed, err)
}

var saidNumber = regexp.MustCompile(`\((\d{4})\)|[Ee]rror:? (\d{4})`)

// dumpError is why mysqldump ended.
func dumpError(waited error, said string) error {
	err := fmt.Errorf("mysqldump: %w: %s", waited, said)
	m := saidNumber.FindStringSubmatch(said)
	if m == nil {
		return terms.Fail(terms.DumpFailed, err)
	}
	switch m[1] + m[2] {
	case "2003", "2005":
		return terms.Fail(terms.SourceUnreachable, err)
	case "2006", "2013", "1317", "3032", "1053", "3168", "4031":
		return terms.Fail(terms.SourceLost, err)
	case "1205":
		return terms.Fail(terms.SourceBusy, err)
	case "1045", "1044", "1142", "1227", "2026":
		return terms.Fail(terms.SourceRefused, err)
	}
	return terms.Fail(terms.DumpFailed, err)
}

// toolVersion is what mysqldump says of itself.
func toolVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "mysqldump", "--version").Output()
	if err != nil {
		return "", terms.Fail(terms.BadConfig, fmt.Errorf("ask mysqldump for its version: %w", err))
	}
	return terms.Clip(oneLine(string(out)), 200), nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
