// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
)

func TestHowFullTheVolumeIs(t *testing.T) {
	use, err := useOf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if use.UsedBytes <= 0 || use.TotalBytes <= use.UsedBytes {
		t.Errorf("the file system of this test is neither empty nor full: %+v", use)
	}
	if use, err := useOf(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("nothing is there: %+v", use)
	}
}

// TestTheLastAnswerOfTheVolumeStands: a volume that cannot be asked is not an empty one.
func TestTheLastAnswerOfTheVolumeStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volumeUse{dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
		if v.Report() != nil {
			t.Error("nobody has looked yet")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go v.run(ctx)
		synctest.Wait()
		first := v.Report()
		cancel()
		synctest.Wait()
		v.dir = filepath.Join(v.dir, "none")
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		go v.run(ctx)
		synctest.Wait()
		if first == nil || v.Report() != first {
			t.Errorf("%+v, then %+v", first, v.Report())
		}
	})
}
