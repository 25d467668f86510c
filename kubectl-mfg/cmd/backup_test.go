// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// several are backups in every state that people meet.
func several() []v1alpha1.MysqlBackup {
	return []v1alpha1.MysqlBackup{
		ofOrders("old", -50*time.Hour, verified(v1alpha1.BackupPassed, "")),
		ofOrders("spoilt", -26*time.Hour, verified(v1alpha1.BackupNotRestorable, "table shop.t has 3 rows instead of 4")),
		ofOrders("fresh", -2*time.Hour),
		ofOrders("now", 0, inPhase(v1alpha1.BackupRunning, v1alpha1.ReasonBackupRunning, "a pod makes it")),
		ofOrders("broken", -time.Hour, inPhase(v1alpha1.BackupFailed, v1alpha1.ReasonNoBackupSource, "madrid lags 10m")),
	}
}

// TestBackupScreens compares what the verbs that look say.
func TestBackupScreens(t *testing.T) {
	for file, tc := range map[string]struct {
		args  string
		width int
		code  int
	}{
		"backup-list-80.txt":      {"backup list orders -n shop", 80, cli.ExitDegraded},
		"backup-list-wide.txt":    {"backup list orders -n shop -o wide", 0, cli.ExitDegraded},
		"backup-list-all.txt":     {"backup list -n shop", 120, cli.ExitDegraded},
		"backup-list-name.txt":    {"backup list orders -n shop -o name", 0, cli.ExitDegraded},
		"stable-backup-list.json": {"backup list orders -n shop -o json", 0, cli.ExitDegraded},
		"backup-show-80.txt":      {"backup show old -n shop", 80, cli.ExitHealthy},
		"backup-show-spoilt.txt":  {"backup show orders spoilt -n shop", 80, cli.ExitDegraded},
		"backup-show-now.txt":     {"backup show now -n shop", 80, cli.ExitHealthy},
		"backup-show-broken.txt":  {"backup show mb/broken -n shop", 100, cli.ExitDegraded},
		"stable-backup-show.json": {"backup show old -n shop -o json", 0, cli.ExitHealthy},
		"backup-status-80.txt":    {"status orders -n shop", 80, cli.ExitHealthy},
		"backup-groups-wide.txt":  {"list -n shop -o wide", 0, cli.ExitHealthy},
	} {
		t.Run(file, func(t *testing.T) {
			f := withProfile(t, several()...)
			f.groups[0].Status.Backup = &v1alpha1.BackupStatus{Profiles: []v1alpha1.BackupProfileStatus{{Name: "nightly", Backups: 3, LastSuccess: f.backups[2].Status.FinishedAt, VerifiedAt: f.backups[0].Status.FinishedAt, Running: "now"}}}
			got := run(t, f, runOptions{width: tc.width, env: map[string]string{"NO_COLOR": "1"}}, strings.Fields(tc.args)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", "verbs", file), got.out)
		})
	}
}

// TestBackupLooking: what is not there, or may not be seen, is said with the way out.
func TestBackupLooking(t *testing.T) {
	forbidden := status(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
	for name, tc := range map[string]struct {
		args   string
		change func(*backupAPI)
		code   int
		want   string
	}{
		"Waits":        {"list orders", func(f *backupAPI) { waitsVerified("x")(&f.backups[0]) }, cli.ExitDegraded, "waits"},
		"WaitsFor":     {"show old", func(f *backupAPI) { waitsVerified("x")(&f.backups[0]) }, cli.ExitHealthy, "no route; tried 2 times, again after"},
		"WaitsJSON":    {"show old -o json", func(f *backupAPI) { waitsVerified("x")(&f.backups[0]) }, cli.ExitHealthy, `"reason": "StorageUnreachable"`},
		"NoneYet":      {"list orders", func(f *backupAPI) { f.backups = nil }, cli.ExitHealthy, "kubectl mfg backup create orders -n shop"},
		"NoneAtAll":    {"list", func(f *backupAPI) { f.backups = nil }, cli.ExitHealthy, "docs/disaster.md"},
		"NoSuchGroup":  {"list oders", nil, cli.ExitError, `no group "oders"`},
		"Healthy":      {"list orders", func(f *backupAPI) { f.backups = f.backups[:1] }, cli.ExitHealthy, "passed"},
		"NoSuchBackup": {"show monday", nil, cli.ExitError, "kubectl mfg backup list -n shop"},
		"OfAnother":    {"show stock old", nil, cli.ExitError, "is of group orders, not of stock"},
		"MayNotList":   {"list orders", func(f *backupAPI) { f.refused["GET mysqlbackups"] = forbidden }, cli.ExitError, "kubectl auth can-i list mysqlbackups.mysql-mfg.io -n shop"},
		"MayNotSee":    {"show old", func(f *backupAPI) { f.refused["GET mysqlbackups/old"] = forbidden }, cli.ExitError, "kubectl auth can-i get mysqlbackups.mysql-mfg.io -n shop"},
		"OlderCluster": {"list orders", func(f *backupAPI) {
			f.refused["GET mysqlbackups"] = func(w http.ResponseWriter) { http.Error(w, "404 page not found", 404) }
		}, cli.ExitError, "definitions of an earlier version"},
		"NoBackupNamed": {"show", nil, cli.ExitUsage, "BACKUP is missing"},
		"TooMany":       {"show a b c", nil, cli.ExitUsage, "at most 2"},
		"NotABackup":    {"show pod/x", nil, cli.ExitUsage, "is no backup"},
		"NoName":        {"show mb/", nil, cli.ExitUsage, "BACKUP is empty"},
		"BadName":       {"show Monday", nil, cli.ExitUsage, "cannot be the name of a backup"},
		"Colour":        {"list --color pink", nil, cli.ExitUsage, "--color must be"},
		"Unknown":       {"make", nil, cli.ExitUsage, "there are create"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, several()...)
			if tc.change != nil {
				tc.change(f)
			}
			got := run(t, f, runOptions{}, append(append([]string{"backup"}, strings.Fields(tc.args)...), "-n", "shop")...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if len(f.did) > 0 {
				t.Errorf("something was changed: %v", f.did)
			}
		})
	}
}

func TestBackupCreate(t *testing.T) {
	const made = "create orders-nightly-20261103-120000 of orders by nightly "
	profiles := func(change func(*v1alpha1.MysqlFailoverGroup)) func(*backupAPI) {
		return func(f *backupAPI) { change(&f.groups[0]) }
	}
	phases := func(all ...func(*v1alpha1.MysqlBackup)) []func(*v1alpha1.MysqlBackup) { return all }
	runs := inPhase(v1alpha1.BackupRunning, v1alpha1.ReasonBackupRunning, "")
	done := func(b *v1alpha1.MysqlBackup) { b.Status = ofOrders("x", 8*time.Minute).Status }
	fails := func(reason v1alpha1.Reason) func(*v1alpha1.MysqlBackup) {
		return inPhase(v1alpha1.BackupFailed, reason, "the words of the operator")
	}
	for name, tc := range map[string]struct {
		args   string
		before func(*backupAPI)
		// then is what becomes of the backup at each look.
		then []func(*v1alpha1.MysqlBackup)
		code int
		did  []string
		want string
	}{
		"Done":          {args: "", then: phases(runs, done), code: cli.ExitHealthy, did: []string{made}, want: "is complete: 4.1GiB from madrid in 9m, encrypted"},
		"Prove":         {args: "", then: phases(done), code: cli.ExitHealthy, did: []string{made}, want: "kubectl mfg backup verify orders orders-nightly-20261103-120000 -n shop"},
		"Progress":      {args: "", then: phases(inPhase(v1alpha1.BackupPending, v1alpha1.ReasonBackupWaits, "two others run"), runs, done), code: cli.ExitHealthy, did: []string{made}, want: "waits: two others run"},
		"Percent":       {args: "", then: phases(runs, runs, done), code: cli.ExitHealthy, did: []string{made}, want: "is taken from madrid 42%"},
		"Method":        {args: "--method Physical", then: phases(done), code: cli.ExitHealthy, did: []string{made + "Physical"}},
		"Named":         {args: "--name monday --profile nightly", then: phases(done), code: cli.ExitHealthy, did: []string{"create monday of orders by nightly "}},
		"JSON":          {args: "-o json", then: phases(done), code: cli.ExitHealthy, did: []string{made}, want: `"outcome": "Succeeded"`},
		"NotWaiting":    {args: "--wait=false", code: cli.ExitHealthy, did: []string{made}, want: "kubectl mfg backup show orders-nightly-20261103-120000 -n shop"},
		"Failed":        {args: "", then: phases(runs, fails(v1alpha1.ReasonBackupFailed)), code: cli.ExitRefused, did: []string{made}, want: "kubectl logs -n shop job/backup-orders-nightly-20261103-120000"},
		"FailedJSON":    {args: "-o json", then: phases(fails("StorageFull")), code: cli.ExitRefused, did: []string{made}, want: `"reason": "StorageFull"`},
		"NoSource":      {args: "", then: phases(fails(v1alpha1.ReasonNoBackupSource)), code: cli.ExitRefused, did: []string{made}, want: "kubectl mfg status orders -n shop"},
		"NoProfileThen": {args: "", then: phases(fails(v1alpha1.ReasonBackupProfileMissing)), code: cli.ExitRefused, did: []string{made}, want: "see which profiles there are"},
		"TimedOutThere": {args: "", then: phases(fails(v1alpha1.ReasonBackupTimedOut)), code: cli.ExitRefused, did: []string{made}, want: "raise timeout of profile nightly"},
		"Deleted":       {args: "", then: phases(runs, func(b *v1alpha1.MysqlBackup) { b.Name = "gone" }), code: cli.ExitRefused, did: []string{made}, want: "was deleted before it was done"},
		"BeingDeleted":  {args: "", then: phases(inPhase(v1alpha1.BackupDeleting, "", "")), code: cli.ExitRefused, did: []string{made}, want: "was deleted before it was done"},
		"Replaced":      {args: "", then: phases(func(b *v1alpha1.MysqlBackup) { b.UID = "other"; done(b) }), code: cli.ExitRefused, did: []string{made}, want: "was deleted before it was done"},
		"Waits":         {args: "--timeout 5s", then: phases(runs), code: cli.ExitTimeout, did: []string{made}, want: "to stop it: kubectl mfg backup delete orders-nightly-20261103-120000"},
		"Unheard":       {args: "--timeout 60s", code: cli.ExitTimeout, did: []string{made}, want: "not taken up yet"},
		"Taken":         {args: "--name old", code: cli.ExitRefused, want: "none is overwritten"},
		"Invalid": {args: "", before: func(f *backupAPI) {
			f.refused["POST mysqlbackups"] = status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the words of the rule")
		}, code: cli.ExitRefused, want: "the words of the rule"},
		"MayNot": {args: "", before: func(f *backupAPI) {
			f.refused["POST mysqlbackups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, code: cli.ExitError, want: "kubectl auth can-i create mysqlbackups.mysql-mfg.io -n shop"},
		"NoProfiles": {args: "", before: profiles(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup = nil }), code: cli.ExitRefused, want: "has no backup profile"},
		"Which": {args: "", before: profiles(func(g *v1alpha1.MysqlFailoverGroup) {
			second := nightly()
			second.Name = "weekly"
			g.Spec.Backup.Profiles = append(g.Spec.Backup.Profiles, second)
		}), code: cli.ExitUsage, want: "choose one with --profile: nightly, weekly"},
		"NoSuchProfile": {args: "--profile weekly", code: cli.ExitUsage, want: "its profiles are nightly"},
		"Keyring": {args: "--method Physical", before: profiles(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
			g.Spec.Backup.Profiles[0].Encryption = nil
		}), code: cli.ExitRefused, want: "kubectl mfg backup keygen"},
		"GroupGoes": {args: "", before: profiles(func(g *v1alpha1.MysqlFailoverGroup) { g.DeletionTimestamp = &metav1.Time{Time: noon} }), code: cli.ExitRefused, want: "is being deleted"},
		"NoGroup":   {args: "", before: func(f *backupAPI) { f.groups = nil }, code: cli.ExitError, want: `no group "orders"`},
		"BadMethod": {args: "--method magic", code: cli.ExitUsage, want: "--method must be one of Logical, Physical"},
		"BadName":   {args: "--name " + strings.Repeat("a", 57), code: cli.ExitUsage, want: "at most 56"},
		"Dots":      {args: "--name a.b", code: cli.ExitUsage, want: "cannot be the name"},
		"NoTime":    {args: "--timeout 0s", code: cli.ExitUsage, want: "--timeout must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour))
			if tc.before != nil {
				tc.before(f)
			}
			looks := 0
			got := run(t, f, runOptions{tick: func(int) {
				if looks < len(tc.then) && len(f.backups) > 1 {
					tc.then[looks](&f.backups[1])
				}
				looks++
			}}, append([]string{"backup", "create", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if diff := cmp.Diff(tc.did, f.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBackupBar: on a terminal the bar is drawn over, and what was said before stays.
func TestBackupBar(t *testing.T) {
	f := withProfile(t)
	got := run(t, f, runOptions{width: 60, tick: func(n int) {
		b := &f.backups[0]
		inPhase(v1alpha1.BackupRunning, v1alpha1.ReasonBackupRunning, "")(b)
		if b.Status.Progress = int32(25 * n); n == 4 {
			b.Status = ofOrders("x", time.Minute).Status
		}
	}}, strings.Fields("backup create orders -n shop")...)
	for _, want := range []string{"\r\x1b[K     0s  asked the operator\n", "\r\x1b[K     1s  [#####...............]  25%  is taken from madrid", "[##########..........]  50%", "75%  is taken from madrid\n"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("lacks %q: %q", want, got.errOut)
		}
	}
	if got.code != 0 || strings.Contains(got.out, "\r") {
		t.Errorf("%+v", got)
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(got.errOut, "\x1b[K", ""), "\r") {
		if len(strings.TrimRight(line, "\n")) >= 60 && strings.Contains(line, "%") {
			t.Errorf("it wraps, and cannot be drawn over: %q", line)
		}
	}
}

// says has the pod of a task say something in its log.
func says(task, log string) func(*backupAPI) {
	return func(f *backupAPI) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "shop"}}
		f.podsOf = map[string]corev1.PodList{task: {Items: []corev1.Pod{pod}}}
		f.answers["/api/v1/namespaces/shop/pods/pod/log"] = func(w http.ResponseWriter) { _, _ = w.Write([]byte(log)) }
	}
}

func TestBackupVerify(t *testing.T) {
	const asks = "verify-backup"
	passes := func(b *v1alpha1.MysqlBackup) {
		delete(b.Annotations, v1alpha1.AnnotationVerifyBackup)
		verified(v1alpha1.BackupPassed, "")(b)
		b.Status.Verified.At = &metav1.Time{Time: noon.Add(time.Minute)}
	}
	spoilt := func(b *v1alpha1.MysqlBackup) {
		passes(b)
		b.Status.Verified.Outcome, b.Status.Verified.Message = v1alpha1.BackupNotRestorable, "3 rows instead of 4"
	}
	refused := func(b *v1alpha1.MysqlBackup) {
		delete(b.Annotations, v1alpha1.AnnotationVerifyBackup)
		b.Status.Message, b.Status.Reason = "no room for the scratch server", "VolumeTooSmall"
	}
	for name, tc := range map[string]struct {
		args   string
		before func(*backupAPI)
		then   func(*v1alpha1.MysqlBackup)
		code   int
		did    []string
		want   string
	}{
		"Newest":      {args: "orders", then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}, want: "backup fresh is verified: it was restored and checked, the restore took 6m52s"},
		"Named":       {args: "orders old", then: passes, code: cli.ExitHealthy, did: []string{"annotate old " + asks}, want: "backup old is verified"},
		"ByProfile":   {args: "orders --profile nightly", then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}},
		"JSON":        {args: "orders -o json", then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}, want: `"outcome": "Succeeded"`},
		"NotWaiting":  {args: "orders --wait=false", code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}, want: "kubectl mfg backup show fresh -n shop"},
		"Spoilt":      {args: "orders", then: spoilt, code: cli.ExitRefused, did: []string{"annotate fresh " + asks}, want: "could not be restored: 3 rows instead of 4"},
		"NotTried":    {args: "orders", then: refused, code: cli.ExitRefused, did: []string{"annotate fresh " + asks}, want: "was not verified: no room for the scratch server"},
		"OldOutcome":  {args: "orders old", then: refused, code: cli.ExitRefused, did: []string{"annotate old " + asks}, want: "was not verified"},
		"Waits":       {args: "orders --timeout 3s", code: cli.ExitTimeout, did: []string{"annotate fresh " + asks}, want: "the verification continues"},
		"Progress":    {args: "orders --timeout 3s", before: says("verify", `{"phase":"Unpacking","total":10,"percent":61}`), code: cli.ExitTimeout, did: []string{"annotate fresh " + asks}, want: "and checked, unpacking 61%"},
		"Deleted":     {args: "orders", then: func(b *v1alpha1.MysqlBackup) { b.Name = "x" }, code: cli.ExitRefused, did: []string{"annotate fresh " + asks}, want: "was deleted before it was verified"},
		"BeingDelete": {args: "orders", then: func(b *v1alpha1.MysqlBackup) { b.DeletionTimestamp = &metav1.Time{Time: noon} }, code: cli.ExitRefused, did: []string{"annotate fresh " + asks}, want: "was deleted before it was verified"},
		"Conflict":    {args: "orders", before: func(f *backupAPI) { f.busy = 2 }, then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}},
		"Conflicts":   {args: "orders", before: func(f *backupAPI) { f.busy = 99 }, code: cli.ExitError, want: "has been modified"},
		"Joined": {args: "orders", before: func(f *backupAPI) { f.backups[1].Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: "x"} }, then: passes, code: cli.ExitHealthy,
			want: "is verified"},
		"OfASchedule": {args: "orders", before: func(f *backupAPI) {
			f.backups[1].Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: v1alpha1.VerifyBySchedule}
		}, then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}, want: "is verified"},
		"TriedAgain": {args: "orders --timeout 5s", then: func(b *v1alpha1.MysqlBackup) { waitsVerified(b.Annotations[v1alpha1.AnnotationVerifyBackup])(b) }, code: cli.ExitTimeout,
			did: []string{"annotate fresh " + asks}, want: "the verification of backup fresh is tried again: StorageUnreachable: no route"},
		"AskedAgain": {args: "orders", before: func(f *backupAPI) { waitsVerified("x")(&f.backups[1]) }, then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks},
			want: "is verified"},
		"NotComplete": {args: "orders broken", code: cli.ExitRefused, want: "only one that is Completed can be verified"},
		"NoneThere":   {args: "orders --profile weekly", code: cli.ExitRefused, want: "no completed backup of orders by profile weekly"},
		"NoSuch":      {args: "orders monday", code: cli.ExitError, want: "kubectl mfg backup list"},
		"NoIdentity":  {args: "orders", before: func(f *backupAPI) { f.groups[0].Spec.Backup.Profiles[0].Encryption.IdentitySecretName = "" }, code: cli.ExitRefused, want: "names no identity"},
		"InTheClear": {args: "orders", before: func(f *backupAPI) {
			f.groups[0].Spec.Backup = nil
			f.backups[1].Status.Encrypted = false
		}, then: passes, code: cli.ExitHealthy, did: []string{"annotate fresh " + asks}},
		"NoGroup": {args: "", code: cli.ExitUsage, want: "GROUP is missing"},
		"TooMany": {args: "orders a b", code: cli.ExitUsage, want: "at most 2"},
		"MayNot": {args: "orders", before: func(f *backupAPI) {
			f.refused["PATCH mysqlbackups/fresh"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, code: cli.ExitError, want: "kubectl auth can-i patch mysqlbackups.mysql-mfg.io -n shop"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour, verified(v1alpha1.BackupPassed, "")), ofOrders("fresh", -2*time.Hour), several()[4])
			if tc.before != nil {
				tc.before(f)
			}
			got := run(t, f, runOptions{tick: func(n int) {
				for i := range f.backups {
					if _, asked := f.backups[i].Annotations[v1alpha1.AnnotationVerifyBackup]; asked && tc.then != nil && n > 2 {
						tc.then(&f.backups[i])
					}
				}
			}}, append([]string{"backup", "verify", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if diff := cmp.Diff(tc.did, f.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// restoring is a group that is being made from a backup of orders; from the newest for "".
func restoring(backup string) func(*backupAPI) {
	return func(f *backupAPI) {
		g := v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-2"}}
		g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{Profile: "nightly", Backup: backup, From: &v1alpha1.RestoreFrom{Group: "orders"}}
		g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreLoading}
		f.groups = append(f.groups, g)
	}
}

// archived is an archive of binary logs of orders that reaches to so long from now.
func archived(reaches time.Duration) func(*backupAPI) {
	return func(f *backupAPI) {
		f.groups[0].Spec.Backup.PITR = &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}
		latest := metav1.NewTime(ofOrders("x", reaches).Status.FinishedAt.Time)
		f.groups[0].Status.Backup = &v1alpha1.BackupStatus{PITR: &v1alpha1.PITRStatus{Latest: &latest}}
	}
}

func TestBackupDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		args, stdin string
		before      func(*backupAPI)
		stays       bool
		code        int
		did         []string
		want        string
	}{
		"Asked":     {args: "old", stdin: "y\n", code: cli.ExitHealthy, did: []string{"delete old"}, want: "backup old is gone"},
		"Plan":      {args: "old", stdin: "y\n", code: cli.ExitHealthy, did: []string{"delete old"}, want: "the artifact goes for good: s3://backups/shop/orders"},
		"Left":      {args: "orders old", stdin: "y\n", code: cli.ExitHealthy, did: []string{"delete old"}, want: "2 other completed backups of orders, 0 of them verified"},
		"OnlyOne":   {args: "old --yes", before: func(f *backupAPI) { f.backups = f.backups[:1] }, code: cli.ExitHealthy, did: []string{"delete old"}, want: "it is the only one: then there is nothing to restore orders from"},
		"OnlyGood":  {args: "old --yes", code: cli.ExitHealthy, did: []string{"delete old"}, want: "it is the only verified one"},
		"Kept":      {args: "old --keep-artifact --yes", code: cli.ExitHealthy, did: []string{"annotate old keep-artifact", "delete old"}, want: "its artifact is still in the storage"},
		"KeptPlan":  {args: "old --keep-artifact --yes", code: cli.ExitHealthy, did: []string{"annotate old keep-artifact", "delete old"}, want: "the artifact stays in the storage"},
		"KeptAgain": {args: "old --keep-artifact --yes", before: func(f *backupAPI) { f.busy = 1 }, code: cli.ExitHealthy, did: []string{"annotate old keep-artifact", "delete old"}},
		"NotKept":   {args: "old --keep-artifact --yes", before: func(f *backupAPI) { f.busy = 99 }, code: cli.ExitError, want: "nothing was deleted"},
		"NotDone":   {args: "broken --yes", code: cli.ExitHealthy, did: []string{"delete broken"}, want: "what there is of it in the storage goes"},
		"Restored":  {args: "old --yes", before: restoring("old"), code: cli.ExitRefused, want: "group shop/orders-2 is being restored from backup old"},
		"RestoredAll": {args: "old --yes", before: func(f *backupAPI) {
			restoring("")(f)
			f.groups[1].Status.Restore.Backup = "old"
		}, code: cli.ExitRefused, want: "nothing was deleted"},
		"RestoredKept":  {args: "old --yes --keep-artifact", before: restoring("old"), code: cli.ExitHealthy, did: []string{"annotate old keep-artifact", "delete old"}},
		"RestoredOther": {args: "old --yes", before: restoring("fresh"), code: cli.ExitHealthy, did: []string{"delete old"}},
		"RestoredOpen": {args: "old --yes", before: func(f *backupAPI) {
			restoring("old")(f)
			f.groups[1].Status.Epoch = 1
		}, code: cli.ExitHealthy, did: []string{"delete old"}},
		"RestoredAnother": {args: "old --yes", before: func(f *backupAPI) {
			restoring("old")(f)
			f.groups[1].Spec.InitFromBackup.From.Group = "stock"
		}, code: cli.ExitHealthy, did: []string{"delete old"}},
		"NotChosen": {args: "old --yes", before: restoring(""), code: cli.ExitHealthy, did: []string{"delete old"}, want: "group shop/orders-2 is to be restored from the newest backup, and has not chosen one yet"},
		"Base":      {args: "old --yes", before: archived(-30 * time.Hour), code: cli.ExitHealthy, did: []string{"delete old"}, want: "the archive of binary logs builds on it"},
		"RestoredElsewhere": {args: "old --yes", before: func(f *backupAPI) {
			f.refused["GET "+groupsPath+"/mysqlfailovergroups"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, code: cli.ExitHealthy, did: []string{"delete old"}, want: "groups of other namespaces could not be listed, so whether one of them is being restored from it is not known"},
		"GroupGone": {args: "old --yes", before: func(f *backupAPI) { f.groups = nil }, code: cli.ExitHealthy, did: []string{"delete old"}, want: "the artifact STAYS in the storage (s3://backups/shop/orders): group orders, which knows the storage, is gone"},
		"ProfileGone": {args: "old --yes", before: func(f *backupAPI) { f.groups[0].Spec.Backup.Profiles[0].Name = "other" }, code: cli.ExitHealthy, did: []string{"delete old"},
			want: "backup old is gone; its artifact is still in the storage"},
		"Moved": {args: "old --yes", before: func(f *backupAPI) { f.backups[0].Status.StorageDigest = "sha256:00" }, code: cli.ExitHealthy, did: []string{"delete old"},
			want: "profile nightly has another storage now"},
		"NotSure":   {args: "old", stdin: "n\n", code: cli.ExitUsage, want: "not confirmed"},
		"Nobody":    {args: "old", code: cli.ExitUsage, want: "no terminal to ask on"},
		"JSON":      {args: "old --yes -o json", code: cli.ExitHealthy, did: []string{"delete old"}, want: `"outcome": "Succeeded"`},
		"NoWait":    {args: "old --yes --wait=false", stays: true, code: cli.ExitHealthy, did: []string{"delete old"}, want: "kubectl mfg backup show old -n shop"},
		"Waits":     {args: "old --yes --timeout 3s", stays: true, code: cli.ExitTimeout, did: []string{"delete old"}, want: "the backup is deleted all the same"},
		"Progress":  {args: "old --yes", code: cli.ExitHealthy, did: []string{"delete old"}, want: "what is in the storage is being removed"},
		"OfAnother": {args: "stock old --yes", code: cli.ExitError, want: "is of group orders, not of stock"},
		"NoSuch":    {args: "monday --yes", code: cli.ExitError, want: `no backup "monday"`},
		"Other": {args: "old --yes", before: func(f *backupAPI) {
			f.refused["DELETE mysqlbackups/old"] = status(http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition is another")
		}, code: cli.ExitRefused, want: "is another one by now"},
		"MayNot": {args: "old --yes", before: func(f *backupAPI) {
			f.refused["DELETE mysqlbackups/old"] = status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}, code: cli.ExitError, want: "kubectl auth can-i delete mysqlbackups.mysql-mfg.io -n shop"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour, verified(v1alpha1.BackupPassed, "")), ofOrders("spoilt", -26*time.Hour, verified(v1alpha1.BackupNotRestorable, "")), ofOrders("fresh", -2*time.Hour), several()[4])
			if tc.before != nil {
				tc.before(f)
			}
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(n int) {
				if n > 2 && !tc.stays {
					f.backups = slices.DeleteFunc(f.backups, func(b v1alpha1.MysqlBackup) bool { return b.DeletionTimestamp != nil })
				}
			}}, append([]string{"backup", "delete", "-n", "shop"}, strings.Fields(tc.args)...)...)
			words := strings.Join(strings.Fields(got.out+got.errOut), " ")
			if got.code != tc.code || !strings.Contains(words, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if diff := cmp.Diff(tc.did, f.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
