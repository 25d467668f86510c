// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// The operator writes wire.BackupConfig and reads wire.BackupResult: every field must be here under the same name, with the same type.
func TestTheOperatorAndTheProgramSpeakOfTheSame(t *testing.T) {
	for _, pair := range []struct{ ours, theirs any }{
		{Config{}, wire.BackupConfig{}}, {Result{}, wire.BackupResult{}}, {Progress{}, wire.BackupProgress{}},
	} {
		alike(t, reflect.TypeOf(pair.ours), reflect.TypeOf(pair.theirs))
	}
}

func alike(t *testing.T, a, b reflect.Type) {
	t.Helper()
	if a.Kind() != b.Kind() {
		t.Errorf("%s is %s, and %s is %s", a, a.Kind(), b, b.Kind())
		return
	}
	switch {
	case a.Kind() == reflect.Pointer || a.Kind() == reflect.Slice:
		alike(t, a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct && a != b:
		if a.NumField() != b.NumField() {
			t.Errorf("%s has %d fields, and %s has %d", a, a.NumField(), b, b.NumField())
		}
		for i := range a.NumField() {
			ours := a.Field(i)
			theirs, ok := b.FieldByName(ours.Name)
			if !ok || ours.Tag != theirs.Tag {
				t.Errorf("%s.%s %q is not in %s, or as %q", a, ours.Name, ours.Tag, b, theirs.Tag)
				continue
			}
			alike(t, ours.Type, theirs.Type)
		}
	}
}

func TestWhatTheOperatorWritesIsRead(t *testing.T) {
	c := wire.BackupConfig{
		Bucket:        wire.BackupBucket{S3: &wire.BackupS3{Bucket: "b", Region: "r"}, Prefix: "p/q", Namespace: "shop", Group: "orders"},
		StorageDigest: "sha256:1", Backup: "nightly", Server: wire.BackupServer{Dir: "/d", RunDir: "/r"},
	}
	got, err := ParseConfig([]byte(c.Text()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil || string(raw) != c.Text() {
		t.Errorf("%s became %s: %v", c.Text(), raw, err)
	}
	if place := got.Bucket.Location(); place != "s3://b/p/q/shop/orders" {
		t.Errorf("the place is %q", place)
	}
}
