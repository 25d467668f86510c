// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// A dump says of each database, and of each table that differs from its database, whether it is encrypted, and so do archived logs. In a group
// whose tables are encrypted, what comes from one without encryption would stay in the clear, and so would tables that are made later in its
// databases. So the dump is changed on its way, which keeps rows in the clear from the disk, and what is left after the replay is altered.

// What comes from an encrypted group is loaded as it was there: its people chose what is in the clear, and a table in the system tablespace cannot be
// encrypted. A backup must not be lost for that.

// encryptsTables is true if the tables of this server are encrypted unless somebody chooses otherwise.
func encryptsTables(ctx context.Context, conn *sql.Conn, keyring string) (bool, error) {
	if keyring == "" {
		return false, nil
	}
	var on bool
	err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.default_table_encryption").Scan(&on)
	return on, err
}

const (
	choice = "ENCRYPTION="
	// statementHead is how much of a statement is looked at: a mode is at most a third of it.
	statementHead = 2 << 10
)

// encrypting has a dump make encrypted databases and tables. It follows the statements, so that it changes no name and no value.
type encrypting struct {
	in    io.Reader
	lexer mysqld.Lexer
	// head is the beginning of the statement, or of the line if that is no statement.
	head []byte
	// behind is true between the end of a statement and that of its line, and in rows, which have no line breaks.
	behind bool
	// delimited is true between DELIMITER ;; and DELIMITER ;, ending behind the first semicolon of two.
	delimited, ending bool
	// matched is how much of the choice was read: all of it, and one more for the quote behind it.
	matched int
}

func (e *encrypting) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	for i := 0; i < n; i++ {
		if e.behind {
			end := bytes.IndexByte(p[i:n], '\n')
			if end < 0 {
				break
			}
			i += end
			e.begin()
			continue
		}
		p[i] = e.next(p[i])
	}
	return n, err
}

func (e *encrypting) next(b byte) byte {
	if len(e.head) < statementHead {
		e.head = append(e.head, b)
	}
	code := e.lexer.Code(b)
	switch {
	case b == '\n' && (e.is("--") || e.is("\n")):
		e.begin()
	case b == '\n' && e.is("DELIMITER "):
		e.delimited = !e.is("DELIMITER ;\n")
		e.begin()
	case code && b == ';' && (e.ending || !e.delimited) && !e.is("DELIMITER "):
		if e.is("/*!50003 SET sql_mode ") {
			e.lexer.Literal = bytes.Contains(e.head, []byte("NO_BACKSLASH_ESCAPES"))
		}
		e.behind = true
	case code && b == 'V' && e.is("INSERT INTO ") && !e.delimited:
		e.behind = true // the words before it hold no V
	}
	e.ending = code && b == ';'
	return e.chosen(b, code)
}

func (e *encrypting) begin() {
	e.head, e.behind, e.ending, e.matched = e.head[:0], false, false, 0
	e.lexer = mysqld.Lexer{Literal: e.lexer.Literal}
}

func (e *encrypting) is(head string) bool { return bytes.HasPrefix(e.head, []byte(head)) }

// chosen makes an N behind the choice a Y.
func (e *encrypting) chosen(b byte, code bool) byte {
	switch {
	case code && e.matched < len(choice) && b == choice[e.matched]:
		e.matched++
	case code && b == choice[0]:
		e.matched = 1
	case !code && e.matched == len(choice) && b == '\'':
		e.matched++
	case !code && e.matched > len(choice) && b == 'N' && (e.is("CREATE DATABASE ") || e.is("CREATE TABLE ")):
		e.matched = 0
		return 'Y'
	default:
		e.matched = 0
	}
	return b
}

// What is in the clear. A table in a general tablespace is what that is.
const (
	plainDatabases   = "SELECT schema_name FROM information_schema.schemata WHERE default_encryption <> 'YES' AND " + mysqld.UserSchemas
	plainTablespaces = "SELECT name FROM information_schema.innodb_tablespaces WHERE encryption <> 'Y' AND space_type = 'General' AND name <> 'mysql'"
	// plainFiles counts the files of InnoDB, but for those in databases of the server, which no dump has, and the tables in the system tablespace, which cannot be.
	plainFiles = "SELECT (SELECT COUNT(*) FROM information_schema.innodb_tablespaces WHERE encryption <> 'Y' AND space_type IN ('Single', 'General') AND name <> 'mysql' AND name NOT LIKE 'mysql/%' AND name NOT LIKE 'sys/%') + " +
		"(SELECT COUNT(*) FROM information_schema.innodb_tables WHERE space = 0 AND name LIKE '%/%')"
	// Conditions of Server.TablesThat. Tables of the last engines have no rows here.
	plainTables = "engine = 'InnoDB' AND create_options NOT LIKE '%ENCRYPTION=_Y_%' AND "
	strangers   = "engine NOT IN ('InnoDB', 'BLACKHOLE', 'FEDERATED', 'MRG_MYISAM', 'MEMORY') AND "
)

// encryptRest encrypts what is in the clear of databases, tablespaces and tables, and fails unless nothing of InnoDB is in the end.
func (l *loading) encryptRest(ctx context.Context) error {
	if !l.encrypts {
		return nil
	}
	conn, err := l.server.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for what, statement := range map[string]string{plainDatabases: "ALTER DATABASE %s ENCRYPTION = 'Y'", plainTablespaces: "ALTER TABLESPACE %s ENCRYPTION = 'Y'"} {
		names, err := mysqld.Texts(ctx, conn, what)
		if err != nil {
			return terms.Fail(terms.ServerFailed, err)
		}
		for _, name := range names {
			if err := mysqld.Run(ctx, conn, fmt.Sprintf(statement, mysqld.QuoteName(name))); err != nil {
				return terms.Fail(terms.LoadFailed, fmt.Errorf("encrypt %s: %w", name, err))
			}
		}
	}
	if err := l.encryptTables(ctx, conn); err != nil {
		return err
	}
	left, err := l.server.TablesThat(ctx, strangers)
	for _, t := range left {
		l.warnings = append(l.warnings, fmt.Sprintf("table %s.%s is not InnoDB's, so it is in the clear", t.Schema, t.Table))
	}
	return err
}

func (l *loading) encryptTables(ctx context.Context, conn *sql.Conn) error {
	count := func() (n int, err error) {
		return n, terms.Fail(terms.ServerFailed, conn.QueryRowContext(ctx, plainFiles).Scan(&n))
	}
	if n, err := count(); err != nil || n == 0 {
		return err
	}
	tables, err := l.server.TablesThat(ctx, plainTables)
	if err != nil {
		return err
	}
	// No date of the data is changed by its copy, and no table is held up by what refers to it.
	if err := mysqld.Run(ctx, conn, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', SESSION foreign_key_checks = 0"); err != nil {
		return terms.Fail(terms.ServerFailed, err)
	}
	for _, t := range tables {
		if err := mysqld.Run(ctx, conn, "ALTER TABLE "+mysqld.QuoteName(t.Schema)+"."+mysqld.QuoteName(t.Table)+" ENCRYPTION = 'Y'"); err != nil {
			return terms.Fail(terms.LoadFailed, fmt.Errorf("encrypt table %s.%s: %w", t.Schema, t.Table, err))
		}
	}
	n, err := count()
	if err == nil && n > 0 {
		// The safe answer: the group promises that its tables are encrypted.
		err = terms.Fail(terms.LoadFailed, fmt.Errorf("%d tables would be in the clear in this encrypted group: move those in InnoDB's system tablespace to files "+
			"of their own where the backup was made, and take another backup", n))
	}
	return err
}
