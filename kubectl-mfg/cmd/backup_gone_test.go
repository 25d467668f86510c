// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestBackupGoneAndKept: the object of a backup goes also if the credentials of the storage may not delete, and the artifact stays.
func TestBackupGoneAndKept(t *testing.T) {
	const eventsPath = "/api/v1/namespaces/shop/events"
	told := func(reason v1alpha1.Reason, related, about types.UID) corev1.EventList {
		return corev1.EventList{Items: []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: string(reason), Message: "the credentials may not delete",
			InvolvedObject: corev1.ObjectReference{UID: about}, Related: &corev1.ObjectReference{UID: related}}}}
	}
	const kept = v1alpha1.ReasonBackupArtifactKept
	for name, tc := range map[string]struct {
		args   string
		events any
		late   bool
		code   int
		want   string
		not    string
	}{
		"Kept":      {events: told(kept, "uid-old", "g"), code: cli.ExitRefused, want: "backup old is gone, but its artifact is still in the storage: the credentials may not delete"},
		"Where":     {events: told(kept, "uid-old", "g"), code: cli.ExitRefused, want: "remove it there: s3://backups/shop/orders"},
		"NoGroup":   {events: told(kept, "", "uid-old"), code: cli.ExitRefused, want: "still in the storage"},
		"Late":      {events: told(kept, "uid-old", "g"), late: true, code: cli.ExitRefused, want: "still in the storage"},
		"JSON":      {args: "-o json", events: told(kept, "uid-old", "g"), code: cli.ExitRefused, want: `"keepsArtifact": true`},
		"OfAnother": {events: told(kept, "uid-before", "g"), code: cli.ExitHealthy, want: "backup old is gone", not: "storage: "},
		"Other":     {events: told(v1alpha1.ReasonNoDeleteRight, "uid-old", "g"), code: cli.ExitHealthy, want: "backup old is gone", not: "still in"},
		"Removed":   {events: corev1.EventList{}, code: cli.ExitHealthy, want: "backup old is gone", not: "not known"},
		"MayNot":    {code: cli.ExitHealthy, want: "whether its artifact is gone too is not known: events cannot be read"},
		"MayNotYML": {args: "-o yaml", code: cli.ExitHealthy, want: "is not known"},
		"Asked":     {args: "--keep-artifact", code: cli.ExitHealthy, want: "backup old is gone; its artifact is still in the storage"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour), ofOrders("fresh", -2*time.Hour))
			f.backups[0].UID = "uid-old"
			f.answers[eventsPath] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
			answer := func() {
				delete(f.answers, eventsPath)
				f.objects[eventsPath] = tc.events
			}
			if tc.events != nil && !tc.late {
				answer()
			} else if tc.late {
				delete(f.answers, eventsPath)
				f.objects[eventsPath] = corev1.EventList{}
			}
			got := run(t, f, runOptions{tick: func(n int) {
				if n > 2 && len(f.backups) == 1 && tc.late {
					answer()
				}
				if n > 1 {
					f.backups = slices.DeleteFunc(f.backups, func(b v1alpha1.MysqlBackup) bool { return b.DeletionTimestamp != nil })
				}
			}}, append([]string{"backup", "delete", "old", "--yes", "-n", "shop"}, strings.Fields(tc.args)...)...)
			words := strings.Join(strings.Fields(got.out+got.errOut), " ")
			if got.code != tc.code || !strings.Contains(words, tc.want) || tc.not != "" && strings.Contains(words, tc.not) {
				t.Errorf("exit code %d, want %d and %q, not %q: %+v", got.code, tc.code, tc.want, tc.not, got)
			}
		})
	}
}
