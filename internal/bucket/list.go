// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

// Bounds of listings.
const (
	backupsMax  = 10000
	foundMax    = 1000000
	listReaders = 8
)

// Entry is one backup of a list: its manifest, or why it cannot be read.
type Entry struct {
	Name     string
	Manifest *Manifest
	Err      error
}

// List lists the backups of the group from their manifests, the newest first. A backup whose manifest cannot be read comes last, with the
// reason. A folder without a manifest is no backup.
func (b *Bucket) List(ctx context.Context) ([]Entry, error) {
	names, err := b.names(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(names))
	work := make(chan int)
	var readers sync.WaitGroup
	for range listReaders {
		readers.Go(func() {
			for i := range work {
				m, err := b.manifest(ctx, names[i])
				entries[i] = Entry{Name: names[i], Manifest: m, Err: err}
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	readers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, b.fail("list", b.Location(), err)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return KindOf(e.Err) == NotFound })
	slices.SortStableFunc(entries, newestFirst)
	return entries, nil
}

func newestFirst(a, c Entry) int {
	switch {
	case a.Manifest != nil && c.Manifest != nil:
		return c.Manifest.FinishedAt.Compare(a.Manifest.FinishedAt)
	case a.Manifest != nil:
		return -1
	case c.Manifest != nil:
		return 1
	}
	return strings.Compare(a.Name, c.Name)
}

// names are the folders of backups, with manifest or without.
func (b *Bucket) names(ctx context.Context) ([]string, error) {
	root := b.key("backups") + "/"
	if b.config.Folder != "" {
		return b.folderNames(ctx, root)
	}
	var names []string
	err := b.each(ctx, &blob.ListOptions{Prefix: root, Delimiter: "/"}, func(o *blob.ListObject) error {
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, root), "/")
		if o.IsDir && nameForm.MatchString(name) {
			names = append(names, name)
		}
		if len(names) > backupsMax {
			return tooMany(root)
		}
		return nil
	})
	return names, err
}

// folderNames are names on a volume. One that cannot be read is among them: the library leaves it out of its listings, and an older backup
// would pass for the newest.
func (b *Bucket) folderNames(ctx context.Context, root string) ([]string, error) {
	var found []os.DirEntry
	err := b.call(ctx, "list", root, func(context.Context) (err error) {
		if found, err = os.ReadDir(filepath.Join(b.config.Folder, filepath.FromSlash(root))); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range found {
		if !d.Type().IsRegular() && nameForm.MatchString(d.Name()) {
			names = append(names, d.Name())
		}
	}
	if len(names) > backupsMax {
		return nil, tooMany(root)
	}
	return names, nil
}

// readable returns an error unless every folder below a prefix on a volume can be read. The library leaves what cannot be read out of its
// listings.
func (b *Bucket) readable(ctx context.Context, prefix string) error {
	root := filepath.Join(b.config.Folder, filepath.FromSlash(prefix))
	return b.call(ctx, "list", prefix, func(ctx context.Context) error {
		return filepath.WalkDir(root, func(_ string, _ os.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return ctx.Err() // it was removed meanwhile, or was never there
			}
			return errors.Join(err, ctx.Err())
		})
	})
}

func tooMany(root string) error {
	return &Error{Kind: Other, Op: "list", Key: root, Detail: "there are more backups than can be looked at: remove some"}
}

// each calls do with every object of a listing, page by page.
func (b *Bucket) each(ctx context.Context, options *blob.ListOptions, do func(*blob.ListObject) error) error {
	return b.eachOf(ctx, options, foundMax, do)
}

// eachOf is each for a listing of at most so many objects. The prefix ends with a slash.
func (b *Bucket) eachOf(ctx context.Context, options *blob.ListOptions, most int, do func(*blob.ListObject) error) error {
	if b.config.Folder != "" {
		if err := b.readable(ctx, options.Prefix); err != nil {
			return err
		}
	}
	seen := 0
	for token := blob.FirstPageToken; ; {
		page, next, err := b.page(ctx, options, token)
		if err != nil {
			return err
		}
		token = next
		for _, o := range page {
			if seen++; seen > most {
				return &Error{Kind: Other, Op: "list", Key: options.Prefix, Detail: "there are more objects than we write"}
			}
			if err := do(o); err != nil {
				return err
			}
		}
		if len(token) == 0 {
			return nil
		}
	}
}

// page returns one page of a listing, and what the next one begins with; nothing for the last.
func (b *Bucket) page(ctx context.Context, options *blob.ListOptions, token []byte) (page []*blob.ListObject, next []byte, err error) {
	err = b.call(ctx, "list", options.Prefix, func(ctx context.Context) error {
		var err error
		page, next, err = b.objects.ListPage(ctx, token, 1000, options)
		if errors.Is(err, io.EOF) {
			page, next, err = nil, nil, nil
		}
		return err
	})
	return page, next, err
}

// Delete removes a backup. The manifest goes first: without it there is no backup, and Sweep removes what a crash leaves.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if !nameForm.MatchString(name) {
		return &Error{Kind: NotFound, Op: "remove", Detail: "that is no name of a backup"}
	}
	if err := b.remove(ctx, b.key("backups", name, manifestName)); err != nil {
		return err
	}
	return b.removeAll(ctx, b.key("backups", name)+"/")
}

// removeAll removes every object below a prefix, and unfinished uploads to there.
func (b *Bucket) removeAll(ctx context.Context, prefix string) error {
	err := b.each(ctx, &blob.ListOptions{Prefix: prefix}, func(o *blob.ListObject) error { return b.remove(ctx, o.Key) })
	if err != nil {
		return err
	}
	_, err = b.forget(ctx, prefix, time.Time{})
	b.tidy(prefix)
	return err
}

// Swept counts what a sweep removed.
type Swept struct {
	Objects int
	Bytes   int64
	// Uploads counts those that began and never ended.
	Uploads int
}

// Sweep removes objects that no manifest names and that are older than before: killed attempts leave them. before must be earlier than
// the beginning of the oldest attempt that may still run.
func (b *Bucket) Sweep(ctx context.Context, before time.Time) (Swept, error) {
	var s Swept
	names, err := b.names(ctx)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		if err := b.sweepBackup(ctx, name, before, &s); err != nil {
			return s, err
		}
	}
	s.Uploads, err = b.forget(ctx, b.key("backups")+"/", before)
	return s, err
}

func (b *Bucket) sweepBackup(ctx context.Context, name string, before time.Time, s *Swept) error {
	folder := b.key("backups", name) + "/"
	var old []blob.ListObject
	err := b.each(ctx, &blob.ListOptions{Prefix: folder}, func(o *blob.ListObject) error {
		if o.ModTime.Before(before) {
			old = append(old, *o)
		}
		return nil
	})
	if err != nil || len(old) == 0 {
		return err
	}
	// The manifest is read after the listing: a backup that was completed in between names its objects.
	named := map[string]bool{folder + manifestName: true}
	m, err := b.manifest(ctx, name)
	switch {
	case KindOf(err) == NotFound:
	case err != nil:
		return nil //nolint:nilerr // I cannot say what belongs to it: the safe answer is to leave all of it
	default:
		for _, p := range m.Parts {
			for _, o := range p.Objects {
				named[folder+o.Key] = true
			}
		}
	}
	for _, o := range old {
		if named[o.Key] {
			continue
		}
		if err := b.remove(ctx, o.Key); err != nil {
			return err
		}
		s.Objects++
		s.Bytes += o.Size
	}
	b.tidy(folder)
	return nil
}

// forget makes an S3 storage forget the uploads below a prefix that began earlier than before; the zero time means all. Other storages
// forget them after a week, or have none.
func (b *Bucket) forget(ctx context.Context, prefix string, before time.Time) (int, error) {
	if b.s3 == nil {
		return 0, nil
	}
	count := 0
	in := &s3.ListMultipartUploadsInput{Bucket: aws.String(b.config.S3.Bucket), Prefix: aws.String(prefix)}
	for page := 0; page < foundMax/1000; page++ {
		var out *s3.ListMultipartUploadsOutput
		err := b.call(ctx, "list uploads", prefix, func(ctx context.Context) error {
			var err error
			out, err = b.s3.ListMultipartUploads(ctx, in)
			return err
		})
		if err != nil {
			return count, err
		}
		for _, u := range out.Uploads {
			if !strings.HasPrefix(aws.ToString(u.Key), prefix) || !before.IsZero() && !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			err := b.call(ctx, "abort upload", aws.ToString(u.Key), func(ctx context.Context) error {
				_, err := b.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: u.Key, UploadId: u.UploadId})
				return err
			})
			if err != nil && KindOf(err) != NotFound {
				return count, err
			}
			count++
		}
		if !aws.ToBool(out.IsTruncated) {
			break
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
	return count, nil
}

// tidy removes empty folders of a volume, from the bottom up. A folder that is not empty stays.
func (b *Bucket) tidy(prefix string) {
	if b.config.Folder == "" {
		return
	}
	root := filepath.Join(b.config.Folder, filepath.FromSlash(prefix))
	var folders []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, f := range slices.Backward(folders) {
		_ = os.Remove(f)
	}
}
