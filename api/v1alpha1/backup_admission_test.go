// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	s3Storage = `storage: {s3: {bucket: backups, secretName: keys}}`
)

// profile is a backup with one profile, nightly, in S3 and with more fields.
func profile(more string) edit {
	if more != "" {
		more = ", " + more
	}
	return edit("spec/backup = {profiles: [{name: nightly, " + s3Storage + more + "}]}")
}

const fullBackup edit = `spec/backup = {profiles: [{name: nightly, method: Physical, storage: {s3: {bucket: backups, prefix: a/b, region: eu-central-1, endpoint: "https://s3.example.org:9000", forcePathStyle: true, secretName: keys, caSecretName: ca}}, encryption: {recipients: [` + recipient + `], identitySecretName: id}, source: {prefer: Active, maxLag: 1m}, schedule: {cron: "*/30 2-4 1,15 JAN-JUN MON", timeZone: America/Argentina/Buenos_Aires, suspend: true, startingDeadline: 2h}, retention: {count: 14, maxAge: 720h, minCount: 2}, verification: {afterEvery: 7, cron: "@weekly", query: "SELECT 1", replay: false, scratch: {size: 50Gi, storageClassName: fast}}, scratch: {size: 50Gi}, timeout: 3h, resources: {limits: {memory: 1Gi}}}, {name: copy, storage: {volume: {claimName: backups, subPath: a}}}], pitr: {enabled: true, profile: nightly, interval: 5s, secretName: narrow}}`

func TestBackupAdmitted(t *testing.T) {
	const encrypted edit = "spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}\n"
	stored := edit("status/epoch = 1\nstatus/backup = {profiles: [{name: nightly, backups: 2}]}\n")
	tests := map[string]struct{ old, change edit }{
		"the least":                  {change: profile("")},
		"everything":                 {change: fullBackup},
		"gcs":                        {change: `spec/backup = {profiles: [{name: a, storage: {gcs: {bucket: b-u.c_k, secretName: s}}}]}`},
		"azure":                      {change: `spec/backup = {profiles: [{name: a, storage: {azure: {container: abc, secretName: s}}}]}`},
		"no TLS with encryption":     {change: `spec/backup = {profiles: [{name: a, storage: {s3: {bucket: abc, endpoint: "http://s3:9000", secretName: s}}, encryption: {recipients: [` + recipient + `]}}]}`},
		"pitr with its profile":      {change: profile("") + "\nspec/backup/pitr = {enabled: true, profile: nightly}"},
		"pitr of encrypted":          {old: encrypted, change: encrypted + profile("encryption: {recipients: ["+recipient+"]}") + "\nspec/backup/pitr = {enabled: true, profile: nightly}"},
		"pitr of a volume, off":      {change: `spec/backup = {profiles: [{name: a, storage: {volume: {claimName: v}}}], pitr: {enabled: false, profile: a}}`},
		"pitr with resources":        {change: profile("") + "\nspec/backup/pitr = {enabled: true, profile: nightly, interval: 10m, resources: {requests: {memory: 1Mi}, limits: {cpu: 1, memory: 128Mi}}}"},
		"logical of encrypted":       {old: encrypted, change: encrypted + profile("")},
		"physical of encrypted":      {old: encrypted, change: encrypted + profile("method: Physical, encryption: {recipients: ["+recipient+"]}")},
		"restore by profile":         {change: profile("") + "\nspec/initFromBackup = {profile: nightly}"},
		"restore of another":         {change: `spec/initFromBackup = {storage: {s3: {bucket: abc, secretName: s}}, encryption: {identitySecretName: id}, from: {namespace: shop, group: old}, backup: monday}`},
		"restore until a moment":     {change: `spec/initFromBackup = {storage: {s3: {bucket: abc, secretName: s}}, pointInTime: {latest: true}}`},
		"restore with an identity":   {change: profile("encryption: {recipients: ["+recipient+"], identitySecretName: id}") + "\nspec/initFromBackup = {profile: nightly}"},
		"restore with its own":       {change: profile("encryption: {recipients: ["+recipient+"]}") + "\nspec/initFromBackup = {profile: nightly, encryption: {identitySecretName: id}}"},
		"restore taken back":         {old: profile("") + "\nstatus/epoch = 3\nspec/initFromBackup = {profile: nightly}", change: profile("")},
		"restore changed before":     {old: profile("") + "\nspec/initFromBackup = {profile: nightly}", change: profile("") + "\nspec/initFromBackup = {profile: nightly, backup: b}"},
		"schedule changed":           {old: stored + profile(""), change: profile(`schedule: {cron: "@daily"}`)},
		"storage changed while none": {old: profile(""), change: `spec/backup = {profiles: [{name: nightly, storage: {volume: {claimName: a}}}]}`},
		"profile removed":            {old: stored + profile(""), change: `spec/backup = {}`},
		"verified in the clear":      {change: profile("verification: {afterEvery: 1}")},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, old)
			tc.change.apply(t, object)
			if errs := s.admit(old, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			if errs := s.admit(object, old); len(errs) != 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}

func TestBackupRefused(t *testing.T) {
	const p = "spec.backup.profiles[0]"
	tests := map[string]struct {
		change edit
		path   string
	}{
		"no storage":                 {`spec/backup = {profiles: [{name: a}]}`, p + ".storage"},
		"an empty storage":           {`spec/backup = {profiles: [{name: a, storage: {}}]}`, p + ".storage"},
		"two storages":               {`spec/backup = {profiles: [{name: a, storage: {volume: {claimName: v}, s3: {bucket: abc, secretName: s}}}]}`, p + ".storage"},
		"no credentials":             {`spec/backup = {profiles: [{name: a, storage: {s3: {bucket: abc}}}]}`, p + ".storage.s3.secretName"},
		"a prefix that leads out":    {`spec/backup = {profiles: [{name: a, storage: {s3: {bucket: abc, prefix: a/../b, secretName: s}}}]}`, p + ".storage.s3.prefix"},
		"a path that leads out":      {`spec/backup = {profiles: [{name: a, storage: {volume: {claimName: v, subPath: ../b}}}]}`, p + ".storage.volume.subPath"},
		"an endpoint with a key":     {`spec/backup = {profiles: [{name: a, storage: {s3: {bucket: abc, endpoint: "https://key:secret@s3", secretName: s}}}]}`, p + ".storage.s3.endpoint"},
		"no TLS, not encrypted":      {`spec/backup = {profiles: [{name: a, storage: {s3: {bucket: abc, endpoint: "http://s3:9000", secretName: s}}}]}`, p + ".encryption"},
		"unknown method":             {profile("method: Magic"), p + ".method"},
		"recipients left out":        {profile("encryption: {}"), p + ".encryption.recipients"},
		"no recipients":              {profile("encryption: {recipients: []}"), p + ".encryption.recipients"},
		"an identity as recipient":   {profile("encryption: {recipients: [AGE-SECRET-KEY-1QQQ]}"), p + ".encryption.recipients[0]"},
		"a recipient of a plugin":    {profile("encryption: {recipients: [age1yubikey1q2w7u3vpya839jxxuq8g0sedh3d740d4xvn639sqhr95ejj8vu3hyfumptt]}"), p + ".encryption.recipients[0]"},
		"nothing to verify it with":  {profile("verification: {afterEvery: 1}, encryption: {recipients: [" + recipient + "]}"), p + ".encryption.identitySecretName"},
		"unknown preference":         {profile("source: {prefer: Any}"), p + ".source.prefer"},
		"any lag":                    {profile("source: {maxLag: 25h}"), p + ".source.maxLag"},
		"cron of six fields":         {profile(`schedule: {cron: "0 0 2 * * *"}`), p + ".schedule.cron"},
		"cron of an interval":        {profile(`schedule: {cron: "@every 1h"}`), p + ".schedule.cron"},
		"cron with a zone":           {profile(`schedule: {cron: "TZ=UTC 0 2 * * *"}`), p + ".schedule.cron"},
		"a zone that leads out":      {profile(`schedule: {cron: "@daily", timeZone: ../etc}`), p + ".schedule.timeZone"},
		"no time to start":           {profile(`schedule: {cron: "@daily", startingDeadline: 0s}`), p + ".schedule.startingDeadline"},
		"only minCount":              {profile("retention: {minCount: 3}"), p + ".retention.count"},
		"keep none":                  {profile("retention: {count: 0}"), p + ".retention.count"},
		"keep for minutes":           {profile("retention: {maxAge: 5m}"), p + ".retention.maxAge"},
		"never verified":             {profile("verification: {query: SELECT 1}"), p + ".verification.afterEvery"},
		"a query that writes":        {profile("verification: {afterEvery: 1, query: DROP TABLE t}"), p + ".verification.query"},
		"no room":                    {profile("scratch: {size: 1Mi}"), p + ".scratch.size"},
		"no time":                    {profile("timeout: 1s"), p + ".timeout"},
		"pitr without profile":       {`spec/backup = {pitr: {enabled: true}}`, "spec.backup.pitr.profile"},
		"pitr with another profile":  {profile("") + "\nspec/backup/pitr = {enabled: true, profile: b}", "spec.backup.pitr.profile"},
		"pitr too often":             {profile("") + "\nspec/backup/pitr = {interval: 4s}", "spec.backup.pitr.interval"},
		"pitr too seldom":            {profile("") + "\nspec/backup/pitr = {interval: 11m}", "spec.backup.pitr.interval"},
		"pitr with no interval":      {profile("") + "\nspec/backup/pitr = {interval: soon}", "spec.backup.pitr.interval"},
		"pitr on a volume":           {`spec/backup = {profiles: [{name: a, storage: {volume: {claimName: v}}}], pitr: {enabled: true, profile: a}}`, "spec.backup.pitr.profile"},
		"pitr in the clear":          {"spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}\n" + profile("") + "\nspec/backup/pitr = {enabled: true, profile: nightly}", "spec.backup.pitr.profile"},
		"pitr without memory":        {profile("") + "\nspec/backup/pitr = {enabled: true, profile: nightly, resources: {limits: {memory: 64Mi}}}", "spec.backup.pitr.resources.limits"},
		"a keyring in the clear":     {"spec/encryptionAtRest = {enabled: true}\nspec/tls = {secretName: t}\n" + profile("method: Physical"), "spec.backup.profiles"},
		"restore from nowhere":       {`spec/initFromBackup = {backup: b}`, "spec.initFromBackup"},
		"restore from two places":    {profile("") + "\nspec/initFromBackup = {profile: nightly, " + s3Storage + "}", "spec.initFromBackup"},
		"restore by unknown profile": {profile("") + "\nspec/initFromBackup = {profile: weekly}", "spec.initFromBackup.profile"},
		"restore by no profile":      {`spec/initFromBackup = {profile: weekly}`, "spec.initFromBackup.profile"},
		"restore without identity":   {profile("encryption: {recipients: ["+recipient+"]}") + "\nspec/initFromBackup = {profile: nightly}", "spec.initFromBackup.encryption"},
		"restore until two moments":  {`spec/initFromBackup = {storage: {s3: {bucket: abc, secretName: s}}, pointInTime: {latest: true, gtid: "a:1"}}`, "spec.initFromBackup.pointInTime"},
		"restore until no moment":    {`spec/initFromBackup = {storage: {s3: {bucket: abc, secretName: s}}, pointInTime: {}}`, "spec.initFromBackup.pointInTime"},
		"restore until not latest":   {`spec/initFromBackup = {storage: {s3: {bucket: abc, secretName: s}}, pointInTime: {latest: false}}`, "spec.initFromBackup.pointInTime.latest"},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, minimal)
			tc.change.apply(t, object)
			wantError(t, s, object, nil, tc.path)
		})
	}
}

func TestBackupChangeRefused(t *testing.T) {
	stored := edit("status/epoch = 1\nstatus/backup = {profiles: [{name: nightly, backups: 2}]}\n")
	tests := map[string]struct {
		old, change edit
		path        string
	}{
		"storage with backups":     {stored + profile(""), `spec/backup = {profiles: [{name: nightly, storage: {volume: {claimName: a}}}]}`, "spec.backup.profiles"},
		"prefix with backups":      {stored + profile(""), `spec/backup = {profiles: [{name: nightly, storage: {s3: {bucket: backups, prefix: a, secretName: keys}}}]}`, "spec.backup.profiles"},
		"restore over living data": {profile("") + "\nstatus/epoch = 1", profile("") + "\nspec/initFromBackup = {profile: nightly}", "spec.initFromBackup"},
		"another restore": {profile("") + "\nstatus/epoch = 1\nspec/initFromBackup = {profile: nightly}",
			profile("") + "\nspec/initFromBackup = {profile: nightly, backup: b}", "spec.initFromBackup"},
	}
	s := newServer(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, old)
			if errs := s.admit(old, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			tc.change.apply(t, object)
			wantError(t, s, object, old, tc.path)
		})
	}
}

const minimalBackup = `
apiVersion: mysql-mfg.io/v1alpha1
kind: MysqlBackup
metadata:
  name: monday
  namespace: shop
spec:
  group: orders
  profile: nightly
`

func TestMysqlBackup(t *testing.T) {
	s := serverOf(t, backupFile)
	tests := map[string]struct {
		change edit
		update bool
		path   string
	}{
		"the least":           {},
		"with its method":     {change: `spec/method = Physical`},
		"longest name":        {change: edit("metadata/name = " + strings.Repeat("a", 56))},
		"too long a name":     {change: edit("metadata/name = " + strings.Repeat("a", 57)), path: "metadata.name"},
		"a name with dots":    {change: "metadata/name = a.b", path: "metadata.name"},
		"no group":            {change: "spec/group = remove", path: "spec.group"},
		"no profile":          {change: "spec/profile = remove", path: "spec.profile"},
		"unknown method":      {change: "spec/method = Magic", path: "spec.method"},
		"status changes":      {change: "status/phase = Running\nstatus/progress = 100", update: true},
		"of another group":    {change: "spec/group = other", update: true, path: "spec"},
		"by another method":   {change: "spec/method = Logical", update: true, path: "spec"},
		"more than all of it": {change: "status/progress = 101", update: true, path: "status.progress"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old, object := parse(t, minimalBackup), parse(t, minimalBackup)
			tc.change.apply(t, object)
			if !tc.update {
				old = nil
			}
			if tc.path != "" {
				wantError(t, s, object, old, tc.path)
			} else if errs := s.admit(object, old); len(errs) != 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}

// What the API server keeps is what the types hold: a field that one of the two does not know is lost.
func TestBackupDecodes(t *testing.T) {
	object := parse(t, minimal)
	fullBackup.apply(t, object)
	if errs := newServer(t).admit(object, nil); len(errs) != 0 {
		t.Fatal(errs)
	}
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, group, true); err != nil {
		t.Fatal(err)
	}
	p := group.Spec.Backup.Profiles[0]
	if p.Method != v1alpha1.BackupPhysical || p.Schedule.StartingDeadline.Duration != 2*time.Hour || *p.Verification.Replay || p.Retention.MinCount != 2 ||
		p.Storage.S3.Endpoint != "https://s3.example.org:9000" || p.Scratch.Size.String() != "50Gi" || group.Spec.Backup.PITR.Interval.Duration != 5*time.Second {
		t.Errorf("decoded %+v", p)
	}
	least := group.Spec.Backup.Profiles[1]
	if least.Method != v1alpha1.BackupLogical || least.Source.Prefer != v1alpha1.BackupPreferDROnly || least.Source.MaxLag.Duration != 5*time.Minute ||
		least.Timeout.Duration != 2*time.Hour {
		t.Errorf("defaults are not those of the comments: %+v", least)
	}
}

func TestScheduledBackup(t *testing.T) {
	at := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	if got, want := v1alpha1.ScheduledBackup("orders", "nightly", at), "orders-nightly-20261124-0200"; got != want {
		t.Errorf("ScheduledBackup = %s, want %s", got, want)
	}
	names := map[string]bool{}
	for i := range 50 {
		for _, group := range []string{"g", strings.Repeat("g", 30), strings.Repeat("g", 29) + "h"} {
			name := v1alpha1.ScheduledBackup(group, strings.Repeat("p-", 6+i/2)+fmt.Sprint(i), at)
			if len(name) > 56 || names[name] {
				t.Errorf("%s has %d characters, or is given twice", name, len(name))
			}
			names[name] = true
			for _, job := range []string{v1alpha1.BackupJob(name), v1alpha1.VerifyJob(name), v1alpha1.DeleteJob(name)} {
				if errs := validation.IsDNS1123Label(job); len(errs) > 0 {
					t.Errorf("%s: %v", job, errs)
				}
			}
		}
	}
	if v1alpha1.ScheduledBackup("orders", "nightly", at) == v1alpha1.ScheduledBackup("orders", "nightly", at.Add(time.Minute)) {
		t.Error("two times of a schedule have one name")
	}
}
