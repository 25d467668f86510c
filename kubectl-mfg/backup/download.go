// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/reader"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Fetcher is a cluster in whose pods commands can be run.
type Fetcher interface {
	Cluster
	Exec(ctx context.Context, e pods.Execution) error
}

// Download is `kubectl mfg backup download`. A pod reads the storage: it reaches what this machine may not, such as volumes, and the
// libraries of object storage stay out of the plugin.
type Download struct {
	Common
	Group string
	Name  string
	// File is where the tar goes, and must not exist; - is stdout.
	File string
	// Identity is a file with the age identity that opens the backup; empty leaves it as it is.
	Identity string
	// Image has the program backup; empty asks the operator's Deployment.
	Image             string
	OperatorNamespace string
}

// Validate checks only the command line.
func (op *Download) Validate() error {
	switch {
	case op.File == "":
		return errors.New("--file is missing: name a file that does not exist yet, or - for stdout")
	case op.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	}
	return nil
}

// identityMax bounds the file with the identity.
const identityMax = 64 << 10

// Run fetches the backup.
func (op *Download) Run(ctx context.Context, env cli.Environment, c Fetcher) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, op.Timeout)
	defer cancel()
	b, err := named(ctx, c, op.Namespace, op.Group, op.Name)
	if err != nil {
		return cli.ExitError, err
	}
	from, err := op.allowed(ctx, c, b)
	if err != nil {
		return cli.ExitError, err
	}
	keys, err := op.identities()
	if err != nil {
		return cli.ExitError, err
	}
	if b.Status.Encrypted && keys == nil {
		fmt.Fprintln(env.ErrOut, "The backup is encrypted, and stays so. To open it: --identity FILE")
	}
	install, err := reader.Installed(ctx, c.Kube(), op.Image, op.OperatorNamespace)
	if err != nil {
		return cli.ExitError, err
	}
	out, err := op.open(env)
	if err != nil {
		return cli.ExitError, err
	}
	f := fetch{backup: b, place: from, install: install, timeout: op.Timeout, keys: keys, out: out.w}
	n, err := f.run(ctx, c)
	if err = errors.Join(err, out.end(err)); err != nil {
		return cli.ExitError, err
	}
	fmt.Fprintf(env.ErrOut, "%s: %s, every object as its manifest says\n", op.Name, report.Bytes(n))
	return cli.ExitHealthy, nil
}

// allowed finds the storage of a backup that can be fetched.
func (op *Download) allowed(ctx context.Context, c Cluster, b *v1alpha1.MysqlBackup) (place, error) {
	if b.Status.Phase != v1alpha1.BackupCompleted {
		return place{}, cli.Refused("refused: backup %s is not complete\n  see why: %s", b.Name, show(op.Namespace, b.Name))
	}
	g, err := c.Group(ctx, op.Namespace, b.Spec.Group)
	if err != nil {
		return place{}, err
	}
	if g.Spec.Backup != nil {
		for _, p := range g.Spec.Backup.Profiles {
			if p.Name == b.Spec.Profile {
				return place{storage: p.Storage, pullSecrets: g.Spec.ImagePullSecrets}, nil
			}
		}
	}
	return place{}, cli.Refused("refused: group %s has no profile %s any more, so nothing says how its storage is reached\n  docs/backups.md says how what is in a bucket is read without mfg", b.Spec.Group, b.Spec.Profile)
}

// identities never leave this machine: the backup is opened here.
func (op *Download) identities() ([]age.Identity, error) {
	if op.Identity == "" {
		return nil, nil
	}
	file, err := os.Open(op.Identity)
	if err != nil {
		return nil, fmt.Errorf("read the age identity: %w", err)
	}
	defer func() { _ = file.Close() }()
	all, err := age.ParseIdentities(io.LimitReader(file, identityMax))
	if err != nil { // it may quote the key
		return nil, fmt.Errorf("%s is no age identity: it needs a line that begins with AGE-SECRET-KEY-", op.Identity)
	}
	return all, nil
}

// destination is where the tar goes.
type destination struct {
	w io.Writer
	// end keeps the tar, or removes the rest of a failed one.
	end func(failed error) error
}

func (op *Download) open(env cli.Environment) (destination, error) {
	if op.File == "-" {
		return destination{w: escape.Raw(env.Out), end: func(error) error { return nil }}, nil
	}
	file, err := os.OpenFile(op.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return destination{}, cli.Refused("refused: %s is there already, and nothing is overwritten\n  name another --file", op.File)
	} else if err != nil {
		return destination{}, fmt.Errorf("write the backup: %w", err)
	}
	return destination{w: file, end: func(failed error) error {
		if failed != nil {
			return errors.Join(file.Close(), os.Remove(op.File))
		}
		return errors.Join(file.Sync(), file.Close())
	}}, nil
}

// run makes the pod send the backup, and takes it apart on the way.
func (f *fetch) run(ctx context.Context, c Fetcher) (int64, error) {
	pod := f.pod(c)
	name, err := pod.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer pod.Remove(ctx, name)
	if err := pod.Await(ctx, name); err != nil {
		return 0, err
	}
	from, to := io.Pipe()
	said, sent := &tail{}, make(chan error, 1)
	// Exec reads all that a pod sends, whether or not anybody takes it: what nobody wants any more has to be called off.
	sending, callOff := context.WithCancel(ctx)
	defer callOff()
	go func() {
		err := c.Exec(sending, pods.Execution{Namespace: f.backup.Namespace, Pod: name, Container: containerBackup, Command: []string{reader.Program, "fetch"}, Out: to, ErrOut: said})
		_ = to.CloseWithError(orEOF(err))
		sent <- err
	}()
	n, err := f.take(from)
	_ = from.CloseWithError(errors.New("nobody reads any more"))
	callOff()
	failed := <-sent
	var exit utilexec.CodeExitError
	switch {
	case err == nil: // it was complete, whatever happened to the connection after that
		return n, nil
	case errors.As(failed, &exit), failed != nil && errors.Is(err, failed):
		return n, f.explain(failed, said.String())
	}
	return n, fmt.Errorf("fetch backup %s: %w", f.backup.Name, err)
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// explain prefers the program's own words to a number.
func (f *fetch) explain(err error, said string) error {
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) && said != "" {
		return fmt.Errorf("fetch backup %s: %s", f.backup.Name, said)
	}
	if apierrors.IsForbidden(err) {
		return cli.RightsHint(err, "create", "pods/exec", f.backup.Namespace)
	}
	return fmt.Errorf("fetch backup %s: %w", f.backup.Name, err)
}

// tail keeps the end of what a program says.
type tail struct{ buf bytes.Buffer }

const tailMax = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - tailMax; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

// String returns the last line, without what a terminal would obey.
func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(t.buf.String()), "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, lines[len(lines)-1])
}
