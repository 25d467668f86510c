// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/wire"
)

// archiverProgram is the archiver of a pod.
var archiverProgram = Program{"archiver", "backup"}

// archiverDir is the directory in memory that it writes its status to.
const archiverDir = "run/mfg-archive"

// Archiver is the archiver of a site's pod, as a process of this machine.
type Archiver struct {
	*Process
	Site string
	pod  *corev1.Pod
}

// Archiver finds the archiver of a site.
func (g *Group) Archiver(ctx context.Context, site string) (*Archiver, error) {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return nil, err
	}
	pid, err := FindIn(pod, archiverProgram)
	if err != nil {
		return nil, err
	}
	return &Archiver{Process: &Process{pid: pid, program: archiverProgram.Name}, Site: site, pod: pod}, nil
}

// Status is what the archiver last said of itself, as it lies in the memory of its pod: to read it costs the pod nothing.
func (a *Archiver) Status() (wire.ArchiverStatus, error) {
	raw, err := os.ReadFile(filepath.Join(fmt.Sprintf("/proc/%d/root", a.pid), archiverDir, wire.ArchiverStatusFile))
	if err != nil {
		return wire.ArchiverStatus{}, fmt.Errorf("read the status of the archiver of %s: %w", a.Site, err)
	}
	return wire.ParseArchiverStatus(raw)
}

// ResidentMiB is how much memory the archiver and the sidecar beside it hold.
func (a *Archiver) ResidentMiB() (archiver, sidecar float64, err error) {
	if archiver, err = residentOf(a.pid, archiverProgram.Name); err != nil {
		return 0, 0, err
	}
	sidecar, err = residentIn(a.pod, Sidecar)
	return archiver, sidecar, err
}

// AwaitArchiver waits until what the archiver of a site says is as is wanted. pending tells what is missing.
func (g *Group) AwaitArchiver(ctx context.Context, site string, limit time.Duration, pending func(wire.ArchiverStatus) error) (wire.ArchiverStatus, error) {
	var last wire.ArchiverStatus
	err := Poll(ctx, limit, "the archiver of "+site, func(ctx context.Context) error {
		a, err := g.Archiver(ctx, site)
		if err != nil {
			return err
		}
		if last, err = a.Status(); err != nil {
			return err
		}
		return pending(last)
	})
	return last, err
}

// DescribeArchiver says in one line how an archiver is.
func DescribeArchiver(s wire.ArchiverStatus) string {
	return fmt.Sprintf("%s %s %s, epoch %d, %d bytes pending, latest %s, %d gaps, %d files, uploads %d and %d failed", s.State, s.Reason, s.Message, s.Epoch,
		s.PendingBytes, s.Latest.Format(time.RFC3339Nano), s.GapCount, s.Logs, s.UploadsSucceeded, s.UploadsFailed)
}
