// SPDX-License-Identifier: Apache-2.0

package mysql

import "testing"

func TestNamesOfPreparedTransactions(t *testing.T) {
	for name, tt := range map[string]struct {
		format, first, second int
		data                  string
		want                  string
	}{
		"one part":               {1, 2, 0, "0x00FF", "X'00FF',X'',1"},
		"two parts and a format": {7, 4, 4, "0x73686F7069742773", "X'73686F70',X'69742773',7"},
		"lower case, no prefix":  {1, 1, 1, "0aff", "X'0A',X'FF',1"},
		"no hexadecimal":         {1, 2, 0, "0xZZ'", ""},
		"fewer bytes than named": {1, 3, 0, "0x00FF", ""},
		"more bytes than named":  {1, 1, 0, "0x00FF", ""},
		"a negative length":      {1, 3, -1, "0x00FF", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseXID(tt.format, tt.first, tt.second, tt.data)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
