// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// gone says what became of the artifact of a backup whose object has gone. The operator lets the object go also if it could not remove the
// artifact, as with credentials that may not delete; then only an event says so.
func (op *Delete) gone(ctx context.Context, env cli.Environment, c Cluster, deleted *v1alpha1.MysqlBackup) (int, error) {
	words := "backup " + deleted.Name + " is gone"
	note, err := keptNote(ctx, c, deleted)
	if err == nil && note == "" && env.Wait(ctx, followEvery) { // an event is written beside the change that it tells of, and may come after it
		note, err = keptNote(ctx, c, deleted)
	}
	switch {
	case err != nil:
		words += "; whether its artifact is gone too is not known: events cannot be read (" + cli.FirstLine(err) + ")"
		op.rep.Message = words
	case note != "":
		op.rep.KeepsArtifact = true
		return cli.ExitError, cli.Refused("%s, but its artifact is still in the storage: %s\n  if it is not wanted, remove it there: %s", words, note, cli.OrNoSite(op.rep.Location))
	}
	return op.finish(env, cli.OutcomeDone, words)
}

// keptNote is the operator's word that what is in the storage stays; empty if there is none.
func keptNote(ctx context.Context, c Cluster, deleted *v1alpha1.MysqlBackup) (string, error) {
	list, err := c.Kube().CoreV1().Events(deleted.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + string(v1alpha1.ReasonBackupArtifactKept)})
	if err != nil {
		return "", fmt.Errorf("list events: %w", err)
	}
	for _, e := range list.Items {
		if e.Reason == string(v1alpha1.ReasonBackupArtifactKept) && about(e, deleted) {
			return e.Message, nil
		}
	}
	return "", nil
}

// about is true for an event of this backup, and not of an earlier one of its name. Without its group the backup is what the event is about.
func about(e corev1.Event, b *v1alpha1.MysqlBackup) bool {
	return e.InvolvedObject.UID == b.UID || e.Related != nil && e.Related.UID == b.UID
}
