// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// onVolume puts the data of a pod on a volume of its own and returns what freezes it; it goes on by itself after a while, whatever becomes of
// the test, since nothing that waits for it can be ended.
func (p *pod) onVolume() (freeze, thaw func()) {
	t := p.t
	t.Helper()
	dir := filepath.Join(p.dir, "volume")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "image")
	for _, args := range [][]string{
		{"truncate", "-s", "1G", image}, {"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir},
		{"chown", "999:999", dir}, {"sed", "-i", "s,/srv/data,/srv/volume/data,", filepath.Join(p.dir, "my.cnf")},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	p.env = []string{"MFG_STATE_DIR=/srv/volume/mfg", "MFG_DATADIR=/srv/volume/data"}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	frozen := false
	thaw = func() {
		if frozen {
			_ = exec.Command("fsfreeze", "-u", dir).Run()
			frozen = false
		}
	}
	t.Cleanup(thaw)
	return func() {
		late := exec.Command("sh", "-c", "sleep 45; fsfreeze -u '"+dir+"'")
		late.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := late.Start(); err != nil {
			t.Fatal(err)
		}
		_ = late.Process.Release()
		if out, err := exec.Command("fsfreeze", "-f", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		frozen = true
	}, thaw
}

// I1, I2: the volume of an open site hangs. The probe says so, also once its own row is held. A push that names another site fences it by
// SIGKILL; it is answered by nothing that could pass for a proof as long as mysqld cannot end. When the volume goes on mysqld ends, and
// another one starts read-only.
func TestRealStalledVolumeI2(t *testing.T) {
	runtime.LockOSThread() // the children die with the thread that started them
	p := newPod(t)
	freeze, thaw := p.onVolume()
	if out, err := p.sh("/srv/sidecar bootstrap").CombinedOutput(); err != nil {
		t.Fatalf("bootstrap: %v\n%s", err, out)
	}
	operator := p.operator(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 1, LeaseTimeoutMillis: 6000})
	c, _ := p.start(operator)
	pid := p.process("mysqld --defaults-file=/srv/my.cnf")
	freeze()
	time.Sleep(12 * time.Second)
	report, err := c.PushActiveSite(t.Context(), realListen, wire.ActiveSite{})
	if err != nil || !report.WriteProbe.Stalled() || report.WriteProbe.Reason != wire.WriteDiskStalled || report.WriteProbe.ForMillis < 8_000 {
		t.Errorf("the probe says %+v, %v", report.WriteProbe, err)
	}
	next := wire.ActiveSite{Statement: p.sign(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "b", Epoch: 2})}
	began := time.Now()
	report, err = c.PushActiveSite(t.Context(), realListen, next)
	t.Logf("pushed to for %v: %+v, %v", time.Since(began).Round(time.Millisecond), report, err)
	if report.FencedUnder(2) {
		t.Errorf("I2: a mysqld that cannot end counts as fenced: %+v", report)
	}
	time.Sleep(4 * time.Second)
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "State") || strings.HasPrefix(line, "SigPnd") || strings.HasPrefix(line, "ShdPnd") {
			t.Log(strings.TrimSpace(line))
		}
	}
	thaw()
	mysqltest.Eventually(t, "the very mysqld ends", func() bool { return p.process("mysqld --defaults-file=/srv/my.cnf") != pid })
	mysqltest.Eventually(t, "another one is read-only, under the new epoch", func() bool {
		report, err = c.PushActiveSite(t.Context(), realListen, next)
		return err == nil && report.FencedUnder(2) && report.SuperReadOnly
	})
}
