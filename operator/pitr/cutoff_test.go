// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// An answer with long sets stays within what an archiver takes: it leaves out old epochs, which the archive has, and never the newest.
func TestAnAnswerWithLongSets(t *testing.T) {
	var sets []string
	for i := range 1000 {
		sets = append(sets, fmt.Sprintf("aaaaaaaa-0000-0000-0000-%012d:1-9223372036854775806", i))
	}
	st := v1alpha1.MysqlFailoverGroupStatus{}
	for i := range int64(wire.MaxCutoffEpochs) {
		st.Epochs = append(st.Epochs, v1alpha1.EpochRecord{Epoch: i + 1, GTIDExecuted: strings.Join(sets, ",")})
	}
	many := slices.Repeat([]v1alpha1.MysqlBackup{copied(strings.Repeat("x", 253), time.Hour, "")}, wire.MaxCutoffBackups)
	c := CutoffOf(&v1alpha1.MysqlFailoverGroup{Status: st}, many, place)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := wire.SignCutoff(key, c)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(wire.CutoffAnswer{Cutoff: c, Signed: signed})
	if err != nil || len(body) > wire.MaxCutoffBytes || len(c.Epochs) == 0 || c.Epochs[0].Epoch != wire.MaxCutoffEpochs || len(c.Backups) != wire.MaxCutoffBackups {
		t.Errorf("%v: %d bytes, %d epochs, %d backups", err, len(body), len(c.Epochs), len(c.Backups))
	}
}

// The newest epoch is told however long its set is: without it the archive would know of none.
func TestTheNewestEpochIsAlwaysToldI28(t *testing.T) {
	long := wire.CutoffEpoch{Epoch: 3, GTIDExecuted: strings.Repeat("x", epochsMost+1)}
	if got := fitting([]wire.CutoffEpoch{long, {Epoch: 2}}); len(got) != 1 || got[0].Epoch != 3 {
		t.Errorf("I28: %d epochs are told", len(got))
	}
}
