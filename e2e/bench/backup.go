// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// backupCase is one way to back up.
type backupCase struct {
	name      string
	method    v1alpha1.BackupMethod
	encrypted bool
}

var backupCases = []backupCase{
	{"logical", v1alpha1.BackupLogical, false}, {"logical-age", v1alpha1.BackupLogical, true},
	{"physical", v1alpha1.BackupPhysical, false}, {"physical-age", v1alpha1.BackupPhysical, true},
}

func backupCaseNames() []string {
	var names []string
	for _, c := range backupCases {
		names = append(names, c.name)
	}
	return names
}

// backupCasesNamed picks cases from a list with commas; all for none.
func backupCasesNamed(list string) ([]backupCase, error) {
	if list == "" {
		return backupCases, nil
	}
	var wanted []backupCase
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(backupCases, func(c backupCase) bool { return c.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("case %q is none of %s", name, strings.Join(backupCaseNames(), ", "))
		}
		wanted = append(wanted, backupCases[i])
	}
	return wanted, nil
}

const (
	backupNamespace   = "bench-backup"
	restoredNamespace = "bench-restored"
	backupIdentity    = "age-identity"
	backupPrefix      = "bench"
	// backupRuns is of each case, unless it is said how many.
	backupRuns = 3
	// backupLimit bounds a backup and a restore.
	backupLimit = time.Hour
	// backupSize is the data, unless it is said how much.
	backupSize = "5GiB"
)

// sizeOf reads a size such as 5GiB, 500MB or 5Gi.
func sizeOf(text string) (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil || q.Value() < 16<<20 {
		return 0, fmt.Errorf("size %q: give at least 16MiB, as in 500MiB or 5GiB", text)
	}
	return q.Value(), nil
}

// backupBench measures backups and restores of one group.
type backupBench struct {
	*bench
	s3      *stage.S3
	id      *age.X25519Identity
	group   *stage.Group
	size    int64
	digests map[string]string
	// source is a site without the role; dir is its data directory on this machine.
	source, dir string
	figures     backupFigures
}

// backups measures the cases that were asked for in turn, so that what changes on the machine meanwhile changes for all.
func (b *bench) backups(ctx context.Context) error {
	cases, err := backupCasesNamed(b.options.only)
	if err != nil {
		return err
	}
	k := &backupBench{bench: b}
	if k.size, err = sizeOf(b.options.size); err != nil {
		return err
	}
	if b.options.merge {
		if err := k.figures.read(b.options.out); err != nil {
			return err
		}
	}
	defer k.cleanUp(context.WithoutCancel(ctx))
	if err := k.prepare(ctx); err != nil {
		return err
	}
	runs := backupRuns
	if b.options.runs > 0 {
		runs = b.options.runs
	}
	k.figures.begin(cases)
	var errs []error
	for n := range runs {
		errs = append(errs, k.baselines(ctx, n+1))
		for _, c := range cases {
			b.stage.Say("%s, run %d of %d", c.name, n+1, runs)
			s, err := k.once(ctx, c, n+1)
			if err != nil {
				err = fmt.Errorf("%s, run %d: %w", c.name, n+1, err)
				b.stage.Say("FAILED: %v", err)
			}
			k.figures.add(c, s, err)
			// After every run, so that an hour's figures are not lost by the last one.
			errs = append(errs, err, k.write())
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	k.figures.print(b.out)
	b.stage.Say("wrote %s", b.options.out)
	return errors.Join(append(errs, k.write())...)
}

func (k *backupBench) write() error {
	k.figures.Machine = thisMachine()
	k.figures.origin = origin{Commit: k.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second)}
	k.figures.judge()
	return writeJSON(k.options.out, k.figures)
}

// cleanUp gives the room back: nothing else on the lab needs gigabytes.
func (k *backupBench) cleanUp(ctx context.Context) {
	for _, namespace := range []string{restoredNamespace, backupNamespace} {
		g := &stage.Group{Stage: k.stage, Namespace: namespace, Name: group}
		if err := g.Delete(ctx); err != nil {
			k.stage.Say("clean up: %v", err)
		}
	}
	if k.s3 != nil {
		if err := k.s3.Remove(ctx); err != nil {
			k.stage.Say("clean up: %v", err)
		}
	}
}

// backupSpec is a group of two sites, so that the data fits on one machine twice.
func (k *backupBench) backupSpec() v1alpha1.MysqlFailoverGroupSpec {
	spec := k.spec()
	spec.Sites = spec.Sites[:2]
	return spec
}

// prepare makes the storage and the group with its rows.
func (k *backupBench) prepare(ctx context.Context) error {
	if err := enoughRoom(k.stage.Lab.Dir(), k.size); err != nil {
		return err
	}
	for _, namespace := range []string{restoredNamespace, backupNamespace} {
		old := &stage.Group{Stage: k.stage, Namespace: namespace, Name: group}
		if err := old.Delete(ctx); err != nil {
			return err
		}
	}
	var err error
	if k.id, err = age.GenerateX25519Identity(); err != nil {
		return err
	}
	if k.s3, err = k.stage.StartS3(ctx, stage.S3Options{Name: "s3-bench", Size: *resource.NewQuantity(4*k.size+1<<30, resource.BinarySI)}); err != nil {
		return err
	}
	if err := k.s3.Grant(ctx, backupNamespace); err != nil {
		return err
	}
	spec := k.backupSpec()
	spec.Backup = &v1alpha1.BackupSpec{}
	for _, c := range backupCases {
		spec.Backup.Profiles = append(spec.Backup.Profiles, k.profile(c))
	}
	if k.group, err = k.stage.NewGroup(ctx, backupNamespace, group, spec); err != nil {
		return err
	}
	return k.fill(ctx)
}

func (k *backupBench) profile(c backupCase) v1alpha1.BackupProfile {
	p := v1alpha1.BackupProfile{
		Name: c.name, Method: c.method, Storage: k.s3.Storage(backupPrefix), Timeout: metav1.Duration{Duration: backupLimit},
		Source: v1alpha1.BackupSource{Prefer: v1alpha1.BackupPreferReplica},
	}
	if c.encrypted {
		p.Encryption = &v1alpha1.BackupEncryption{Recipients: []string{k.id.Recipient().String()}}
	}
	return p
}

// once makes one backup, restores it into another group, compares, and removes both.
func (k *backupBench) once(ctx context.Context, c backupCase, run int) (backupSample, error) {
	s := backupSample{Run: run}
	start, err := readProcessors()
	if err != nil {
		return s, err
	}
	name := fmt.Sprintf("%s-%d", c.name, run)
	began := time.Now()
	b, err := k.group.MakeBackup(ctx, name, c.name, backupLimit)
	if err != nil {
		k.group.Diagnose(ctx, "bench-backup")
		return s, err
	}
	s.OrderedSeconds, s.StoredBytes = round(time.Since(began).Seconds()), b.Status.Bytes
	if b.Status.StartedAt == nil || b.Status.FinishedAt == nil || b.Status.Encrypted != c.encrypted || b.Status.Method != c.method {
		return s, fmt.Errorf("the status of the backup is not whole: %+v", b.Status)
	}
	s.BackupSeconds = b.Status.FinishedAt.Sub(b.Status.StartedAt.Time).Seconds()
	err = k.restore(ctx, c, name, &s)
	if now, readErr := readProcessors(); readErr == nil {
		s.StolenPercent = start.stolenUntil(now)
	}
	k.stage.Say("%s: backup %.1f s (%.1f s from the order), %d MB stored; restore %.1f s; digests alike: %t",
		c.name, s.BackupSeconds, s.OrderedSeconds, s.StoredBytes>>20, s.RestoreSeconds, s.DigestsAlike)
	return s, errors.Join(err, k.remove(ctx, name))
}

func (k *backupBench) restore(ctx context.Context, c backupCase, backup string, s *backupSample) error {
	if err := k.s3.Grant(ctx, restoredNamespace); err != nil {
		return err
	}
	spec := k.backupSpec()
	from := k.s3.Storage(backupPrefix)
	spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{
		Storage: &from, From: &v1alpha1.RestoreFrom{Namespace: backupNamespace, Group: group}, Backup: backup,
	}
	if c.encrypted {
		spec.InitFromBackup.Encryption = &v1alpha1.RestoreEncryption{IdentitySecretName: backupIdentity}
		if err := k.stage.PutIdentity(ctx, restoredNamespace, backupIdentity, k.id.String()); err != nil {
			return err
		}
	}
	began := time.Now()
	g, err := k.stage.NewGroup(ctx, restoredNamespace, group, spec)
	if err != nil {
		return err
	}
	now, err := g.AwaitRestore(ctx, backupLimit, "the restore", stage.RestoreNotDone)
	if err != nil {
		g.Diagnose(ctx, "bench-restore")
		return errors.Join(err, g.Delete(ctx))
	}
	r := now.Status.Restore
	if r.StartedAt == nil || r.FinishedAt == nil {
		return errors.Join(fmt.Errorf("status.restore is not whole: %+v", r), g.Delete(ctx))
	}
	s.RestoreSeconds = r.FinishedAt.Sub(r.StartedAt.Time).Seconds()
	now, err = g.AwaitReady(ctx, backupLimit)
	if err != nil {
		g.Diagnose(ctx, "bench-restore")
		return errors.Join(err, g.Delete(ctx))
	}
	s.WholeSeconds = round(time.Since(began).Seconds())
	got, err := g.Digests(ctx, now.Status.ActiveSite)
	s.DigestsAlike = err == nil && maps.Equal(got, k.digests)
	if err == nil && !s.DigestsAlike {
		err = errors.New("what was restored differs from what was backed up")
	}
	return errors.Join(err, g.Delete(ctx))
}

// remove deletes a backup with what is in the bucket.
func (k *backupBench) remove(ctx context.Context, name string) error {
	b, err := k.group.Backup(ctx, name)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := k.group.Kube.Delete(ctx, b); err != nil {
		return fmt.Errorf("remove backup %s: %w", name, err)
	}
	return stage.Poll(ctx, 5*time.Minute, "backup "+name+" to go", func(ctx context.Context) error {
		if _, err := k.group.Backup(ctx, name); err != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it is there")
	})
}
