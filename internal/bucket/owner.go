// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ownerMax is far above the size of an owner object, in bytes.
const ownerMax = 64 << 10

// Owner is the group that writes to a place. Two groups of one name, in two clusters, would remove each other's backups.
type Owner struct {
	Version int `json:"version"`
	// UID is that of the MysqlFailoverGroup.
	UID   string    `json:"uid"`
	Since time.Time `json:"since"`
}

const ownerVersion = 1

func (b *Bucket) ownerKey() string { return b.key("owner.json") }

// Owner returns the owner of the place. Without an owner the error is a NotFound.
func (b *Bucket) Owner(ctx context.Context) (Owner, error) {
	raw, err := b.get(ctx, b.ownerKey(), ownerMax)
	if err != nil {
		return Owner{}, err
	}
	var o Owner
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil || o.UID == "" || o.Version < 1 {
		return Owner{}, &Error{Kind: Damaged, Op: "read", Key: b.ownerKey(), Detail: "it does not name an owner"}
	}
	if o.Version > ownerVersion {
		return Owner{}, &Error{Kind: TooNew, Op: "read", Key: b.ownerKey()}
	}
	return o, nil
}

// IsForeign is true if the place belongs to another group than the one with the UID. It is false for a place without an owner.
func (b *Bucket) IsForeign(ctx context.Context, uid string) (bool, error) {
	o, err := b.Owner(ctx)
	if KindOf(err) == NotFound {
		return false, nil
	}
	return err == nil && o.UID != uid, err
}

// Claim makes the place the group's, unless it is another group's. It records now as the time.
func (b *Bucket) Claim(ctx context.Context, uid string, now time.Time) error {
	if uid == "" || len(uid) > 128 {
		return errors.New("claim the place for backups: the group has no UID")
	}
	o, err := b.Owner(ctx)
	if KindOf(err) == NotFound {
		if err = b.writeOwner(ctx, uid, now, true); err != nil && KindOf(err) != Exists {
			return err
		}
		// On a storage without conditional writes the last writer wins. A group that reads another UID here has lost.
		o, err = b.Owner(ctx)
	}
	if err != nil {
		return err
	}
	if o.UID != uid {
		return &Error{Kind: Foreign, Op: "claim", Key: b.Location(),
			Detail: fmt.Sprintf("the group with the UID %.64q has written here since %s", o.UID, o.Since.UTC().Format(time.RFC3339))}
	}
	return nil
}

// TakeOver makes the place the group's, even if it was another's: a person said that the other group is gone for good.
func (b *Bucket) TakeOver(ctx context.Context, uid string, now time.Time) error {
	if err := b.writeOwner(ctx, uid, now, false); err != nil {
		return err
	}
	return b.Claim(ctx, uid, now)
}

func (b *Bucket) writeOwner(ctx context.Context, uid string, now time.Time, once bool) error {
	raw, err := json.Marshal(Owner{Version: ownerVersion, UID: uid, Since: now.UTC()})
	if err != nil {
		return err
	}
	return b.call(ctx, "write", b.ownerKey(), func(ctx context.Context) error { return b.put(ctx, b.ownerKey(), raw, once) })
}
