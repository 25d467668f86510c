// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

func TestPercentOfAVolume(t *testing.T) {
	for use, want := range map[VolumeUse]int64{
		{0, 1 << 40}: 0, {1, 1 << 40}: 1, {50, 100}: 50, {501, 1000}: 51, {100, 100}: 100, {0, 0}: 100, {7 << 60, 7 << 60}: 100, {-1 << 62, 1 << 40}: 0,
	} {
		if got := use.Percent(); got != want {
			t.Errorf("%+v: %d %%, want %d", use, got, want)
		}
	}
}
