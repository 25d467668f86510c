// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func TestVersion(t *testing.T) {
	f := load(t, filepath.Join("testdata", "status", "healthy"))
	got := run(t, f, runOptions{}, "version")
	if got.code != 0 || !strings.Contains(got.out, "Operator  v0.1.0") {
		t.Errorf("%+v", got)
	}
	got = run(t, f, runOptions{}, "version", "-o", "yaml")
	if got.code != 0 || !strings.Contains(got.out, "operator: v0.1.0\n") {
		t.Errorf("%+v", got)
	}
	got = run(t, &fakeAPI{}, runOptions{}, "version")
	if got.code != cli.ExitError || !strings.Contains(got.out, "Client ") || !strings.Contains(got.errOut, "not reachable") {
		t.Errorf("%+v", got)
	}
	f.asked = nil
	got = run(t, f, runOptions{}, "version", "--client")
	if got.code != 0 || !strings.Contains(got.out, "Client ") || len(f.asked) > 0 {
		t.Errorf("%+v, asked %v", got, f.asked)
	}
}

// Which Go compiled the plugin, from which commit and for what machine differs from build to build; the fields do not.
func TestVersionReportIsStable(t *testing.T) {
	got := run(t, load(t, filepath.Join("testdata", "status", "healthy")), runOptions{}, "version", "-o", "json")
	if got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	client := buildVersion()
	stable := strings.NewReplacer(
		strconv.Quote(client), `"CLIENT"`, strconv.Quote(runtime.Version()), `"GO"`, strconv.Quote(runtime.GOOS+"/"+runtime.GOARCH), `"PLATFORM"`,
		strconv.Quote(versionVerdict(client, "v0.1.0")), `"VERDICT"`,
	).Replace(got.out)
	golden(t, filepath.Join("testdata", "verbs", "stable-version.json"), stable)
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct{ client, operator, want string }{
		{"v0.2.1", "v0.2.0", "compatible"},
		{"v0.2.0", "v0.1.9", "compatible"},
		{"v0.1.0", "v0.2.0", "compatible"},
		{"devel", "devel", "compatible"},
		{"v0.1.0", "v0.3.0", "not supported: upgrade this plugin"},
		{"v0.3.0", "v0.1.0", "not supported: use the plugin of version v0.1.0"},
		{"v1.0.0", "v0.1.0", "not supported"},
		{"devel-123", "v0.1.0", "unknown"},
	} {
		if got := versionVerdict(tc.client, tc.operator); !strings.HasPrefix(got, tc.want) {
			t.Errorf("versionVerdict(%s, %s) = %q, want %q", tc.client, tc.operator, got, tc.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string][]string{
		"__complete status -n shop ": {"orders\tRunning, active site paris", "stock\tFailingOver, active site frankfurt", ":4", ""},
		"__complete status -n ":      {"press", "shop", ":4", ""},
		"__complete status --color ": {"auto", "always", "never", ":4", ""},
		"__complete status orders ":  {":4", ""},
	} {
		fields := strings.Split(args, " ") // the last one is the empty word to complete
		// The server is given first: what is last is completed.
		got := runCompletion(t, fleet(t), fields)
		if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, &fakeAPI{}, runOptions{}, "completion", shell); got.code != 0 || !strings.Contains(got.out, "kubectl-mfg") {
			t.Errorf("%s: exit code %d", shell, got.code)
		}
	}
}
