// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pages is a machine's setting of huge pages, in a file of the test.
type pages struct {
	t               *testing.T
	setting, before string
}

func newPages(t *testing.T, value string) *pages {
	dir := t.TempDir()
	p := &pages{t: t, setting: filepath.Join(dir, "enabled"), before: filepath.Join(dir, "before")}
	if err := os.WriteFile(p.setting, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// command runs a piece of shell, in which $pages is the script itself.
func (p *pages) command(shell string, env ...string) *exec.Cmd {
	script, err := filepath.Abs("huge-pages.sh")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), script, "/bin/sh", "-c", shell)
	cmd.Env = append(os.Environ(), "MFG_HUGE_PAGES_SETTING="+p.setting, "MFG_HUGE_PAGES_BEFORE="+p.before,
		"MFG_HUGE_PAGES=1", "pages="+script)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func (p *pages) now() string {
	raw, err := os.ReadFile(p.setting)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// restored wants the setting of before, and no file beside it.
func (p *pages) restored(want string) {
	p.t.Helper()
	if got := p.now(); got != want {
		p.t.Errorf("the setting is %q afterwards, want %q", got, want)
	}
	if exists(p.before) {
		p.t.Errorf("%s is still there", p.before)
	}
}

const advised = "always [madvise] never"

func TestHugePagesAreThereMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		shell, shown, left string
		env                []string
		code               int
	}{
		"its command":            {shell: `cat "$MFG_HUGE_PAGES_SETTING"`, shown: "always", left: "madvise"},
		"the command's status":   {shell: `exit 7`, left: "madvise", code: 7},
		"an inner one ends":      {shell: `"$pages" true; cat "$MFG_HUGE_PAGES_SETTING"`, shown: "always", left: "madvise"},
		"something runs on":      {shell: `sleep 5 >/dev/null 2>&1 & echo begun`, shown: "begun", left: "madvise"},
		"somebody does not want": {shell: `cat "$MFG_HUGE_PAGES_SETTING"`, env: []string{"MFG_HUGE_PAGES=0"}, shown: advised, left: advised},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPages(t, advised)
			cmd := p.command(tt.shell, tt.env...)
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); got != tt.shown || cmd.ProcessState.ExitCode() != tt.code {
				t.Errorf("it shows %q and ends with %v, want %q and status %d", got, err, tt.shown, tt.code)
			}
			p.restored(tt.left)
		})
	}
}

// Debian's own kernel has the setting that we want: there is nothing to put back.
func TestHugePagesOfDebianStay(t *testing.T) {
	const always = "[always] madvise never"
	p := newPages(t, always)
	if err := p.command("true").Run(); err != nil {
		t.Error(err)
	}
	p.restored(always)
}

// Two builds of one machine end in either order.
func TestHugePagesStayForTheLast(t *testing.T) {
	p := newPages(t, advised)
	long := p.command(`echo; read -r line`)
	in, err := long.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := long.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.command("true").Run(); err != nil {
		t.Error(err)
	}
	if got := p.now(); got != "always" {
		t.Errorf("the setting is %q while a build runs", got)
	}
	_ = in.Close()
	_ = long.Wait() // `read` fails at the end of its input
	p.restored("madvise")
}

func TestHugePagesOfAKilledBuildAreRestored(t *testing.T) {
	p := newPages(t, advised)
	if err := p.command(`kill -KILL $PPID`).Run(); err == nil {
		t.Fatal("the script was not killed")
	}
	if got := p.now(); got != "always" {
		t.Fatalf("the setting is %q after the kill", got)
	}
	if err := p.command("true").Run(); err != nil {
		t.Error(err)
	}
	p.restored("madvise")
}
