// SPDX-License-Identifier: Apache-2.0

package mysqlclient

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
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// MySQL's error numbers for an account that is not let in.
const (
	numberDenied = 1045
	numberLocked = 3118
)

const (
	// Root is the account that may do everything; its password is in the Secret of AccountAdmin.
	Root = root

	// execTimeout bounds one run in a pod, including the way there.
	execTimeout = 30 * time.Second
	// outputMax bounds how much of a client's output is kept.
	outputMax = 64 << 10
)

// Server runs SQL in the pod of a site.
type Server struct {
	Cluster        Cluster
	Namespace, Pod string
}

// ServerOf finds the pod of a site; of the active one if site is empty.
func ServerOf(ctx context.Context, c Cluster, namespace, group, site string) (Server, error) {
	find := Op{Namespace: namespace, Group: group, Site: site}
	pod, err := find.Pod(ctx, c)
	return Server{c, namespace, pod}, err
}

// failed is an error of the mysql client.
type failed struct {
	// number is MySQL's error number; 0 if the client gave none.
	number int
	said   string
}

func (f *failed) Error() string { return f.said }

var numberOf = regexp.MustCompile(`(?m)^ERROR ([0-9]+)`)

// Run runs statements as a user and returns what the client printed. Passwords and statements go through stdin: the command line of an exec is in
// the audit log of the API server. The first statement that fails ends it; Number has MySQL's number of the error.
func (s Server) Run(ctx context.Context, user, password string, statements ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	var out, errOut bounded
	command, in := WithPassword(password, strings.NewReader(strings.Join(statements, ";\n")+";\n"),
		"mysql", "--no-defaults", "--user="+user, "--socket="+pods.MysqlSocket, "--batch", "--skip-column-names", "--connect-timeout=10")
	err := s.Cluster.Exec(ctx, pods.Execution{
		Namespace: s.Namespace, Pod: s.Pod, Container: pods.ContainerMySQL, Command: command, In: in, Out: &out, ErrOut: &errOut,
	})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		said := strings.TrimSpace(escape.Text(errOut.String()))
		f := &failed{said: "mysql in pod " + s.Pod + ": " + said}
		if m := numberOf.FindStringSubmatch(errOut.String()); m != nil {
			f.number, _ = strconv.Atoi(m[1]) // only digits
		}
		return "", f
	}
	if err != nil {
		return "", fmt.Errorf("exec into pod %s: %w", s.Pod, err)
	}
	return out.String(), nil
}

// Accepts is true if a password lets the account in. If the server says neither yes nor no, that is unknown: an error.
func (s Server) Accepts(ctx context.Context, user, password string) (bool, error) {
	_, err := s.Run(ctx, user, password, "DO 0")
	switch Number(err) {
	case numberDenied, numberLocked:
		return false, nil
	}
	return err == nil, err
}

// Number is MySQL's number of an error of Run; 0 if it has none.
func Number(err error) int {
	var f *failed
	if errors.As(err, &f) {
		return f.number
	}
	return 0
}

// Quote makes a literal of a text, for a session in which backslashes are escapes, as they are with an empty sql_mode.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, outputMax-b.Len()))])
	return len(p), nil
}
