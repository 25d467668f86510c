// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/upgrade"
)

// read returns the turn in a Lease: its holder has it since acquireTime, and is done and healthy since renewTime.
func read(lease *coordinationv1.Lease) upgrade.Turn {
	t := upgrade.Turn{
		Paused: lease.Annotations[v1alpha1.AnnotationUpgradePaused] != "", Stopped: lease.Annotations[v1alpha1.AnnotationUpgradeStopped],
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return t
	}
	t.Group = *lease.Spec.HolderIdentity
	if lease.Spec.AcquireTime != nil {
		t.Began = lease.Spec.AcquireTime.Time
	}
	if lease.Spec.RenewTime != nil {
		t.Since = lease.Spec.RenewTime.Time
	}
	return t
}

// write puts a turn into a Lease. Only people write whether it is paused.
func write(lease *coordinationv1.Lease, t upgrade.Turn) {
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime = nil, moment(t.Began), moment(t.Since)
	if t.Group != "" {
		lease.Spec.HolderIdentity = &t.Group
	}
	delete(lease.Annotations, v1alpha1.AnnotationUpgradeStopped)
	if t.Stopped != "" {
		lease.Annotations[v1alpha1.AnnotationUpgradeStopped] = t.Stopped
	}
}

func moment(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewMicroTime(t)
	return &out
}

// Revision names the running program and the settings of its installation. Another program is another revision, even if its version has
// the same name: it may make another pod of a specification.
func Revision(settings any) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program that runs: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the program that runs: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read the program that runs: %w", err)
	}
	if err := json.NewEncoder(sum).Encode(settings); err != nil {
		return "", fmt.Errorf("encode the settings: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}
