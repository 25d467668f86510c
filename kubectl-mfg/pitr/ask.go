// SPDX-License-Identifier: Apache-2.0

// Package pitr asks the archive of binary logs of a group: what can be recovered, where something happened, what a failover lost. A pod reads
// the storage with the program backup (kubectl-mfg/reader); it gets the question by stdin. See docs/point-in-time.md.
package pitr

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/reader"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Cluster is what the verbs need of the cluster.
type Cluster interface {
	request.GroupReader
	Backups(ctx context.Context, namespace, group string) ([]v1alpha1.MysqlBackup, error)
	Kube() kubernetes.Interface
	Exec(ctx context.Context, e pods.Execution) error
}

// Place says whose archive to read, and where it is.
type Place struct {
	// Namespace is where the pod runs and the Secrets are; FromNamespace and Group are the group's.
	Namespace, FromNamespace, Group string
	Storage                         v1alpha1.BackupStorage
	// IdentitySecret opens the archive; empty if none does, or none is needed.
	IdentitySecret string
	// PullSecrets are those with which the pod's image is pulled.
	PullSecrets []corev1.LocalObjectReference
}

// Access says how to read it.
type Access struct {
	// Identity is a file with the age identity; it goes to the pod by stdin, and nowhere else. Empty takes the Secret of the profile.
	Identity string
	// Image has the program backup; empty asks the operator's Deployment.
	Image             string
	OperatorNamespace string
	Timeout           time.Duration
}

// Validate checks only the command line.
func (a Access) Validate() error {
	switch {
	case a.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	case a.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	}
	return nil
}

// memory is the limit of a pod that reads binary logs.
const memory = "512Mi"

// identityMax bounds the file with the identity.
const identityMax = 64 << 10

// identity returns the contents of the file. It checks them, so that a wrong file is never sent.
func (a Access) identity() (string, error) {
	if a.Identity == "" {
		return "", nil
	}
	file, err := os.Open(a.Identity)
	if err != nil {
		return "", fmt.Errorf("read the age identity: %w", err)
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, identityMax))
	if err != nil {
		return "", fmt.Errorf("read the age identity: %w", err)
	}
	if _, err := age.ParseIdentities(bytes.NewReader(raw)); err != nil { // it may quote the key
		return "", fmt.Errorf("%s is no age identity: it needs a line that begins with AGE-SECRET-KEY-", a.Identity)
	}
	return string(raw), nil
}

// Ask runs one question, and passes every line of the answer to take.
func Ask(ctx context.Context, c Cluster, place Place, access Access, question wire.InspectRequest, take func(wire.InspectLine) error) (wire.InspectEnd, error) {
	var err error
	if question.Identity, err = access.identity(); err != nil {
		return wire.InspectEnd{}, err
	}
	if question.Identity != "" {
		place.IdentitySecret = ""
	}
	raw, err := json.Marshal(question)
	if err != nil {
		return wire.InspectEnd{}, fmt.Errorf("encode the question: %w", err)
	}
	install, err := reader.Installed(ctx, c.Kube(), access.Image, access.OperatorNamespace)
	if err != nil {
		return wire.InspectEnd{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, access.Timeout)
	defer cancel()
	pod := &reader.Pod{Kube: c.Kube(), Namespace: place.Namespace, FromNamespace: place.FromNamespace, Group: place.Group, Task: "archive", Name: place.Group,
		Storage: place.Storage, IdentitySecret: place.IdentitySecret, Install: install, PullSecrets: place.PullSecrets, Memory: memory, Timeout: access.Timeout}
	name, err := pod.Begin(ctx)
	if err != nil {
		return wire.InspectEnd{}, err
	}
	defer pod.Remove(ctx, name)
	if err := pod.Await(ctx, name); err != nil {
		return wire.InspectEnd{}, err
	}
	e := exchange{c: c, pod: pods.Execution{Namespace: place.Namespace, Pod: name, Container: reader.Container, Command: []string{reader.Program, commandOf(question)}, In: bytes.NewReader(raw)}}
	return e.run(ctx, take)
}

func commandOf(q wire.InspectRequest) string {
	switch {
	case q.Find != nil:
		return wire.InspectFind
	case q.Lost != nil:
		return wire.InspectLost
	}
	return wire.InspectTimeline
}

// exchange is one question under way.
type exchange struct {
	c   Cluster
	pod pods.Execution
}

func (e *exchange) run(ctx context.Context, take func(wire.InspectLine) error) (wire.InspectEnd, error) {
	from, to := io.Pipe()
	e.pod.Out, e.pod.ErrOut = to, io.Discard // the answer says what went wrong; the log is for debugging the program
	sent := make(chan error, 1)
	// Exec reads all that a pod sends, whether or not anybody takes it: what nobody wants any more has to be called off.
	sending, callOff := context.WithCancel(ctx)
	defer callOff()
	go func() {
		err := e.c.Exec(sending, e.pod)
		_ = to.Close()
		sent <- err
	}()
	end, err := answer(from, take)
	_ = from.CloseWithError(errors.New("nobody reads any more"))
	callOff()
	failed := <-sent
	switch {
	case err == nil && end.Reason != wire.BackupSucceeded:
		return end, explain(end)
	case err == nil: // it was complete, whatever happened to the connection after that
		return end, nil
	case apierrors.IsForbidden(failed):
		return end, cli.RightsHint(failed, "create", "pods/exec", e.pod.Namespace)
	case ctx.Err() != nil: // the last line may be half of one
		return end, cli.WaitedOut("the answer did not come in time\n  give it more: --timeout; or narrow the question down: --since, --until, --epoch")
	case errors.Is(err, errCutOff) && failed != nil:
		return end, fmt.Errorf("read the archive: %w (%w)\n  does the image have the program backup of this version? --image IMAGE names another", err, failed)
	}
	return end, fmt.Errorf("read the archive: %w", err)
}

var errCutOff = errors.New("the answer was cut off")

// answer reads lines up to the end.
func answer(from io.Reader, take func(wire.InspectLine) error) (wire.InspectEnd, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), wire.MaxInspectLine+1)
	for lines.Scan() {
		l, err := wire.ParseInspectLine(lines.Bytes())
		if err != nil {
			return wire.InspectEnd{}, err
		}
		if l.End != nil {
			return *l.End, nil
		}
		if err := take(l); err != nil {
			return wire.InspectEnd{}, err
		}
	}
	if err := lines.Err(); err != nil {
		return wire.InspectEnd{}, fmt.Errorf("%w: %w", errCutOff, err)
	}
	return wire.InspectEnd{}, errCutOff
}

// steps say what to do about a reason, if the message does not.
var steps = map[v1alpha1.Reason]string{
	v1alpha1.ReasonWrongIdentity: "give the age identity of a recipient: --identity FILE, or encryption.identitySecretName of the profile",
	wire.InspectUnreadableLog:    "see what can be recovered around it: kubectl mfg backup timeline GROUP; a backup after it leads on",
	v1alpha1.ReasonTimedOut:      "give it more time: --timeout; or narrow the question down: --since, --until, --epoch",
	v1alpha1.ReasonDamagedBackup: "see what can be recovered around it: kubectl mfg backup timeline GROUP",
}

func explain(end wire.InspectEnd) error {
	reason := v1alpha1.Reason(end.Reason)
	text, code := strings.TrimSpace(end.Message), cli.ExitError
	switch reason { //nolint:exhaustive // the others are errors of the storage
	case v1alpha1.ReasonWrongIdentity, wire.InspectBadRequest:
		text, code = "refused: "+text, cli.ExitRefused
	case v1alpha1.ReasonTimedOut:
		code = cli.ExitTimeout
	}
	if step, is := steps[reason]; is {
		text += "\n  " + step
	}
	return &cli.Error{Code: code, Reason: reason, Err: errors.New(text)}
}

// archiveOf returns where the archive of a group is. key is false if nothing in it needs to be opened.
func archiveOf(g *v1alpha1.MysqlFailoverGroup, key bool) (Place, *v1alpha1.BackupProfile, error) {
	where := fmt.Sprintf("docs/point-in-time.md has the few lines that turn it on: kubectl edit mysqlfailovergroup %s -n %s", g.Name, g.Namespace)
	if g.Spec.Backup == nil || g.Spec.Backup.PITR == nil || g.Spec.Backup.PITR.Profile == "" {
		return Place{}, nil, cli.Refused("refused: group %s has no archive of binary logs (spec.backup.pitr): only the moments of its backups can be recovered\n  %s", g.Name, where)
	}
	for i := range g.Spec.Backup.Profiles {
		p := &g.Spec.Backup.Profiles[i]
		if p.Name != g.Spec.Backup.PITR.Profile {
			continue
		}
		place := Place{Namespace: g.Namespace, Group: g.Name, Storage: p.Storage, PullSecrets: g.Spec.ImagePullSecrets}
		if key && p.Encryption != nil {
			place.IdentitySecret = p.Encryption.IdentitySecretName
		}
		return place, p, nil
	}
	return Place{}, nil, cli.Refused("refused: group %s has no profile %s, in whose storage its archive would be\n  %s", g.Name, g.Spec.Backup.PITR.Profile, where)
}

// opens refuses an encrypted archive without a key for it.
func (a Access) opens(g *v1alpha1.MysqlFailoverGroup, p *v1alpha1.BackupProfile) error {
	if p.Encryption == nil || p.Encryption.IdentitySecretName != "" || a.Identity != "" {
		return nil
	}
	return cli.Refused("refused: the archive of %s is encrypted, and profile %s names no Secret with the identity\n  give the file with it: --identity FILE", g.Name, p.Name)
}
