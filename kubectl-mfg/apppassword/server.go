// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// MySQL's error numbers.
const (
	numberDenied  = 1045
	numberLocked  = 3118
	numberReused  = 3638
	numberNotFree = 3141
)

const (
	// execTimeout bounds one statement in a pod, including the way there.
	execTimeout = 30 * time.Second
	// outputMax bounds how much of a client's output is kept.
	outputMax = 64 << 10
)

// server runs SQL in the pod of a site.
type server struct {
	c              mysqlclient.Cluster
	namespace, pod string
}

// failed is an error of the mysql client.
type failed struct {
	// number is MySQL's error number; 0 if the client gave none.
	number int
	said   string
}

func (f *failed) Error() string { return f.said }

var numberOf = regexp.MustCompile(`(?m)^ERROR ([0-9]+)`)

// run runs statements as a user and returns what the client printed. Passwords and statements go through stdin: the command line of an exec is in
// the audit log of the API server. The first statement that fails ends it.
func (s server) run(ctx context.Context, user, password string, statements ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	var out, errOut bounded
	command, in := mysqlclient.WithPassword(password, strings.NewReader(strings.Join(statements, ";\n")+";\n"),
		"mysql", "--no-defaults", "--user="+user, "--socket="+pods.MysqlSocket, "--batch", "--skip-column-names", "--connect-timeout=10")
	err := s.c.Exec(ctx, pods.Execution{
		Namespace: s.namespace, Pod: s.pod, Container: pods.ContainerMySQL, Command: command, In: in, Out: &out, ErrOut: &errOut,
	})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		said := strings.TrimSpace(escape.Text(errOut.String()))
		f := &failed{said: "mysql in pod " + s.pod + ": " + said}
		if m := numberOf.FindStringSubmatch(errOut.String()); m != nil {
			f.number, _ = strconv.Atoi(m[1]) // only digits
		}
		return "", f
	}
	if err != nil {
		return "", fmt.Errorf("exec into pod %s: %w", s.pod, err)
	}
	return out.String(), nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, outputMax-b.Len()))])
	return len(p), nil
}

func number(err error) int {
	var f *failed
	if errors.As(err, &f) {
		return f.number
	}
	return 0
}

// accepts is true if a password lets the account in. If the server says neither yes nor no, that is unknown: an error.
func (s server) accepts(ctx context.Context, user, password string) (bool, error) {
	_, err := s.run(ctx, user, password, "DO 0")
	switch number(err) {
	case numberDenied, numberLocked:
		return false, nil
	}
	return err == nil, err
}

// account is what a server knows of the account.
type account struct {
	exists, retained, open bool
	sessions               int
}

// look asks as root.
func (s server) look(ctx context.Context, rootPassword, user string) (account, error) {
	said, err := s.run(ctx, root, rootPassword, lookStatement(user))
	if err != nil {
		return account{}, err
	}
	fields := strings.Fields(said)
	if len(fields) != 4 {
		return account{}, fmt.Errorf("mysql in pod %s answered %q, not four numbers", s.pod, escape.Text(said))
	}
	var n [4]int
	for i, f := range fields {
		if n[i], err = strconv.Atoi(f); err != nil {
			return account{}, fmt.Errorf("mysql in pod %s answered %q, not four numbers", s.pod, escape.Text(said))
		}
	}
	return account{exists: n[0] > 0, retained: n[1] > 0, open: n[2] == 0, sessions: n[3]}, nil
}

const (
	root = "root"
	// attributeRetained is where MySQL keeps the older one of two passwords.
	attributeRetained = "User_attributes->>'$.additional_password' IS NOT NULL"
	// lock keeps two people from doing this at once.
	lock = "mfg_app_password"
)

func lookStatement(user string) string {
	return "SELECT COUNT(*), COALESCE(SUM(" + attributeRetained + "), 0), @@GLOBAL.read_only, (SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = " + quote(user) + ")" +
		" FROM mysql.user WHERE User = " + quote(user) + " AND Host = '%'"
}

// introduceStatements gives the account a password beside its present one. An earlier statement fails unless it has exactly one: with two, MySQL would
// end the older. The lock keeps out other sessions of ours.
func introduceStatements(user, password string) []string {
	free := "GET_LOCK('" + lock + "', 5) = 1 AND (SELECT COUNT(*) FROM mysql.user WHERE User = " + quote(user) + " AND Host = '%' AND NOT (" + attributeRetained + ")) = 1"
	return []string{
		"SET SESSION sql_mode = ''", // backslashes are escapes
		"DO CAST(IF(" + free + ", '0', 'the account has two passwords') AS JSON)",
		"ALTER USER " + quote(user) + "@'%' IDENTIFIED BY " + quote(password) + " RETAIN CURRENT PASSWORD",
	}
}

// ownStatements makes a password the account's primary one. The other stays beside it.
func ownStatements(user, password string) []string {
	return []string{"SET SESSION sql_mode = ''", "ALTER USER " + quote(user) + "@'%' IDENTIFIED BY " + quote(password)}
}

// discardStatement ends the older password.
func discardStatement(user string) string {
	return "ALTER USER " + quote(user) + "@'%' DISCARD OLD PASSWORD"
}

// quote needs a session where backslashes are escapes.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
