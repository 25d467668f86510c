// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// Bounds of the small operations: listing, manifests, owners and removals. Transfers are bounded by their caller's context, and
// end if no byte moves for ioTimeout.
const (
	callTimeout = 60 * time.Second
	callTries   = 4
)

// Bucket is the place of one group's backups.
type Bucket struct {
	config   Config
	patience Patience
	objects  *blob.Bucket
	s3       *s3.Client // unless it is another storage
	secrets  []string   // what no text may show
}

// Open opens the place that the configuration names. It asks the storage nothing: Probe does.
func Open(ctx context.Context, c Config) (*Bucket, error) { return OpenWith(ctx, c, Patience{}) }

// OpenWith is Open with other pauses while the storage is unreachable.
func OpenWith(ctx context.Context, c Config, p Patience) (*Bucket, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("open the storage for backups: %w", err)
	}
	b := &Bucket{config: c, patience: p.orDefault()}
	var err error
	switch {
	case c.S3 != nil:
		err = b.openS3(ctx)
	case c.GCS != nil:
		err = b.openGCS(ctx)
	case c.Azure != nil:
		err = b.openAzure(ctx)
	default:
		err = b.openFolder()
	}
	if err != nil {
		return nil, b.fail("open", c.Location(), err)
	}
	return b, nil
}

// openFolder opens a volume, which must be mounted: it does not make a missing folder.
func (b *Bucket) openFolder() error {
	info, err := os.Stat(b.config.Folder)
	switch {
	case os.IsNotExist(err) || err == nil && !info.IsDir():
		return &Error{Kind: NoSuchBucket, Op: "open", Detail: "the volume for backups is not mounted"}
	case err != nil:
		return err
	}
	b.objects, err = fileblob.OpenBucket(b.config.Folder, &fileblob.Options{
		DirFileMode: 0o770, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
	})
	return err
}

// Close closes the connection to the storage.
func (b *Bucket) Close() error { return b.fail("close", "", b.objects.Close()) }

// Location names the place for people.
func (b *Bucket) Location() string { return b.config.Location() }

// Probe asks the storage for one page of the group's folder: that shows whether the storage is there, is trusted and lets us in.
func (b *Bucket) Probe(ctx context.Context) error {
	return b.call(ctx, "list", b.config.root(), func(ctx context.Context) error {
		_, _, err := b.objects.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: b.config.root() + "/"})
		return err
	})
}

// key is the key of an object of the group.
func (b *Bucket) key(parts ...string) string {
	return path.Join(append([]string{b.config.root()}, parts...)...)
}

// call does one small operation, and tries again with growing pauses while the failure may pass.
func (b *Bucket) call(ctx context.Context, op, key string, do func(context.Context) error) error {
	pause := b.patience.CallPause
	for try := 1; ; try++ {
		within, cancel := context.WithTimeout(ctx, callTimeout)
		err := b.failIn(ctx, op, key, do(within))
		cancel()
		if err == nil || try == callTries || ctx.Err() != nil || !passing(KindOf(err)) {
			return err
		}
		wait := pause + rand.N(pause) //nolint:gosec // it spreads load and guards nothing
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		pause *= 3
	}
}
