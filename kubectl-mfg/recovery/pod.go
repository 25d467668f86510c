// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// readTimeout bounds how long a container may take to hand over a file of a few hundred bytes.
const readTimeout = 30 * time.Second

// keyBytes is a keyring in transit. No format prints it. It never grows, so that forget leaves no copy of it behind.
type keyBytes struct{ content []byte }

// String never shows the key.
func (k *keyBytes) String() string { return "[redacted]" }

// GoString never shows the key.
func (k *keyBytes) GoString() string { return "[redacted]" }

// errNoKeyring: the received file is larger than any keyring.
var errNoKeyring = errors.New("the file is too large for a keyring")

// Write takes what the container sends.
func (k *keyBytes) Write(p []byte) (int, error) {
	if k.content == nil {
		k.content = make([]byte, 0, wire.MaxKeyringFile)
	}
	if len(k.content)+len(p) > wire.MaxKeyringFile {
		return 0, errNoKeyring
	}
	k.content = append(k.content, p...)
	return len(p), nil
}

func (k *keyBytes) digest() string { return wire.KeyringDigest(k.content) }

func (k *keyBytes) forget() {
	clear(k.content[:cap(k.content)])
	k.content = nil
}

// compare reads the keyring from the site's pod, and continues only if it is the missing one.
func (r *recovery) compare(ctx context.Context) error {
	pods, err := r.holders(ctx)
	if err != nil {
		return err
	}
	var found []string
	var failures []error
	for _, pod := range pods {
		if err := r.read(ctx, pod.Name); err != nil {
			failures = append(failures, err)
			continue
		}
		digest := r.content.digest()
		if digest == r.status.KeyringDigest {
			r.say("%s in pod %s has the digest that is missing", keyrings.File(r.group), pod.Name)
			return nil
		}
		r.content.forget()
		found = append(found, fmt.Sprintf("pod %s has %s", pod.Name, digest))
	}
	if len(found) == 0 {
		return errors.Join(failures...)
	}
	if len(failures) > 0 {
		// Not a refusal: the missing one may be in the pod that could not be asked.
		return fmt.Errorf("%s, and %s is missing; another pod of the site, which may have it, could not be asked: %w. Nothing was changed",
			strings.Join(found, ", "), r.status.KeyringDigest, errors.Join(failures...))
	}
	return cli.Refused("refused: this is another keyring: %s, and %s is missing: nothing was changed. Do not delete or restart the pod\n  compare with the other versions: kubectl mfg keyring verify %s -n %s",
		strings.Join(found, ", "), r.status.KeyringDigest, r.op.Group, r.op.Namespace)
}

// hasSource refuses before the plan and the question if the only copy is already lost.
func (r *recovery) hasSource(ctx context.Context) error {
	if !missing(r) {
		return nil
	}
	_, err := r.holders(ctx)
	if r.op.DryRun == request.DryRunClient && apierrors.IsForbidden(err) {
		r.unseen = true
		return nil
	}
	return err
}

// holders returns the pods of the site whose memory may have the keyring; those that stay come first.
func (r *recovery) holders(ctx context.Context) ([]corev1.Pod, error) {
	op := r.op
	list, err := r.cluster.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(op.Group, op.Site)})
	if err != nil {
		return nil, cli.RightsHint(err, "list", "pods", op.Namespace)
	}
	var running []corev1.Pod
	halted := ""
	for _, p := range list.Items {
		switch {
		case p.Status.Phase != corev1.PodRunning:
			// A pod that never started has no keyring in its memory, and one that ended has no memory.
		case !mysqlRuns(p):
			halted = p.Name
		default:
			running = append(running, p)
		}
	}
	slices.SortStableFunc(running, func(a, b corev1.Pod) int {
		return cmp.Compare(leaving(a), leaving(b))
	})
	switch {
	case len(running) > 0:
		return running, nil
	case halted != "":
		return nil, cli.Refused("refused: the container %s of pod %s does not run just now, but the pod still has the keyring in its memory: do not delete, restart, evict or drain it\n  run this again as soon as it runs: kubectl get pod %s -n %s -w",
			pods.ContainerMySQL, halted, halted, op.Namespace)
	}
	return nil, r.podGone()
}

// leaving sorts pods that are being deleted to the end: while they run they may hold the last copy.
func leaving(p corev1.Pod) int {
	if p.DeletionTimestamp != nil {
		return 1
	}
	return 0
}

func mysqlRuns(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == pods.ContainerMySQL && c.State.Running != nil
	})
}

// podGone says what is left to do: the data of that site can no longer be read.
func (r *recovery) podGone() error {
	op := r.op
	lost := fmt.Sprintf("refused: the pod of %s is gone, and the keyring in its memory with it: the data of that site cannot be read any more", op.Site)
	if r.group.Status.ActiveSite == op.Site {
		return cli.Refused("%s. It is the active site: another one must take over before it can be copied again\n  see whether the operator does that: kubectl mfg explain %s -n %s\n  then: kubectl mfg reclone %s %s -n %s --confirm-data-loss",
			lost, op.Group, op.Namespace, op.Group, op.Site, op.Namespace)
	}
	return cli.Refused("%s. Copy it again from the active site, with a fresh keyring; what it alone had is lost\n  kubectl mfg reclone %s %s -n %s --confirm-data-loss",
		lost, op.Group, op.Site, op.Namespace)
}

// read takes the keyring from a pod into memory. It does not pass on anything else that the container says.
func (r *recovery) read(ctx context.Context, pod string) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r.content.forget()
	file := keyrings.File(r.group)
	err := r.cluster.Exec(ctx, pods.Execution{
		Namespace: r.op.Namespace, Pod: pod, Container: pods.ContainerMySQL, Command: []string{"cat", file}, Out: &r.content,
	})
	var exit utilexec.CodeExitError
	switch {
	case err == nil && len(r.content.content) > 0:
		return nil
	case err == nil:
		err = fmt.Errorf("%s in pod %s is empty", file, pod)
	case errors.As(err, &exit):
		err = fmt.Errorf("read %s in pod %s: cat ended with code %d", file, pod, exit.Code)
	case errors.Is(err, errNoKeyring):
		err = fmt.Errorf("read %s in pod %s: %w", file, pod, errNoKeyring)
	case apierrors.IsForbidden(err):
		err = cli.RightsHint(err, "create", "pods/exec", r.op.Namespace)
	default:
		err = fmt.Errorf("read %s in pod %s: %w", file, pod, err)
	}
	r.content.forget()
	return err
}
