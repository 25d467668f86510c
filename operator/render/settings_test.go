// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/operator/render"
)

// optionsFile has every option of mysqld 9.7, as mysqld --verbose --help tells them; with the tag mysqld it is compared with a
// real one.
const optionsFile = "testdata/mysqld-options.txt"

const settingsPage = "../../docs/reference/mysql-conf.md"

func options(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(optionsFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

func names(list []render.Category) map[string]int {
	out := map[string]int{}
	for _, c := range list {
		for _, name := range c.Settings {
			out[name]++
		}
	}
	return out
}

// covers is whether a list has an option, as it stands or in a family.
func covers(list map[string]int, option string) bool {
	for name := range list {
		if family, is := strings.CutSuffix(name, "*"); name == option || is && strings.HasPrefix(option, family) {
			return true
		}
	}
	return false
}

// Somebody has thought about every option of mysqld: a new one fails here until it is in a category.
func TestEveryOptionOfMySQLHasACategory(t *testing.T) {
	allowed, refused := names(render.Passed()), names(render.Refused())
	for _, option := range options(t) {
		why := render.IgnoredKeys(input(conf(option, "1")))
		if len(why) == 1 && strings.HasPrefix(why[0].Why, "not among") {
			t.Errorf("%s is in no category of operator/render/settings.go", option)
		}
	}
	for name, n := range allowed {
		if refused[name] > 0 || n > 1 {
			t.Errorf("%s is listed twice", name)
		}
	}
	for name, n := range refused {
		if n > 1 {
			t.Errorf("%s is listed twice", name)
		}
	}
}

// A name that MySQL does not have would keep mysqld from starting: what is passed on is spelled as MySQL spells it.
func TestPassedSettingsExist(t *testing.T) {
	known := options(t)
	// Of components and plugins, which are not in every image.
	foreign := []string{"validate_password.", "thread_pool_"}
	for name := range names(render.Passed()) {
		if strings.HasSuffix(name, "*") || slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		if !slices.Contains(known, name) {
			t.Errorf("mysqld has no %s", name)
		}
	}
}

// Former versions of mysqld take the beginning of a name for the one setting that it fits, and all strip prefixes. What is passed on
// is in no spelling the beginning of another setting, unless mysqld has it under just that name.
func TestNothingPassedIsTheBeginningOfAnotherSetting(t *testing.T) {
	known := options(t)
	allowed := names(render.Passed())
	for name := range allowed {
		if strings.HasSuffix(name, "*") {
			continue
		}
		for _, prefix := range []string{"", "skip_", "disable_", "enable_", "maximum_"} {
			spelled := prefix + name
			for _, option := range known {
				if option != spelled && strings.HasPrefix(option, spelled) && !slices.Contains(known, spelled) &&
					!covers(allowed, option) {
					t.Errorf("%s is the beginning of %s", spelled, option)
				}
			}
		}
	}
}

// The beginning of a refused name is refused, however short, and behind a prefix too: mysqld might take it for the whole.
func TestBeginningsOfRefusedSettingsAreRefused(t *testing.T) {
	known := options(t)
	for _, option := range known {
		if len(render.IgnoredKeys(input(conf(option, "1")))) == 0 {
			continue
		}
		for n := 1; n < len(option); n++ {
			begin := strings.TrimRight(option[:n], "_")
			if slices.Contains(known, begin) {
				continue // mysqld has a setting of just that name
			}
			for _, key := range []string{begin, "loose_" + begin} {
				if len(render.IgnoredKeys(input(conf(key, "1")))) == 0 {
					t.Errorf("%s is passed on, and is the beginning of %s", key, option)
				}
			}
		}
	}
}

// A spelling of a setting is refused exactly if the setting is.
func TestSpellingsAreOneSetting(t *testing.T) {
	spell := map[string]func(string) string{
		"dashes": func(s string) string { return strings.ReplaceAll(s, "_", "-") }, "capitals": strings.ToUpper,
		"loose": func(s string) string { return "loose_" + s }, "loose with a dash": func(s string) string { return "loose-" + s },
		"twice loose": func(s string) string { return "loose_loose_" + s },
		"skip":        func(s string) string { return "skip-" + s }, "enable": func(s string) string { return "enable_" + s },
		"maximum": func(s string) string { return "loose_maximum-" + s }, "old words": func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(s, "replica_", "slave_"), "source_", "master_")
		},
	}
	for _, option := range options(t) {
		if len(render.IgnoredKeys(input(conf(option, "1")))) == 0 {
			continue
		}
		for how, by := range spell {
			if got := render.IgnoredKeys(input(conf(by(option), "1"))); len(got) == 0 {
				t.Errorf("%s is refused, and with %s it is passed on: %s", option, how, by(option))
			}
		}
	}
}

// I21: logins of the operator, the sidecar and the replicas are delayed by nothing that a stranger does in their names.
func TestNothingDelaysTheLoginsOfTheOperatorI21(t *testing.T) {
	for _, key := range []string{
		"connection_control_failed_connections_threshold", "Connection-Control-Min-Connection-Delay", "loose_connection_control_max_connection_delay",
		"component_connection_control.failed_connections_threshold", "connection_control_exempt_unknown_users",
	} {
		if got := render.IgnoredKeys(input(conf(key, "1"))); len(got) != 1 || !strings.HasPrefix(got[0].Why, "delays") {
			t.Errorf("I21: %s: %+v", key, got)
		}
	}
	if got := render.IgnoredKeys(input(conf("connection_memory_limit", "2097152"))); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSettingsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(settingsIntro)
	b.WriteString("\n## Passed on\n")
	table(&b, render.Passed())
	b.WriteString("\n## Refused\n")
	table(&b, render.Refused())
	b.WriteString("\nThe operator sets these itself, on every site or on those of some groups: `" + strings.Join(render.OwnedSettings(), "`, `") + "`.\n")
	if *update {
		if err := os.WriteFile(settingsPage, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("run with -update and read the diff (-want +got):\n%s", diff)
	}
}

const settingsIntro = `# Settings of MySQL

What ` + "`spec.mysqlConf`" + ` of a group may set. The operator writes the settings of the first table into the option file of every site. It
refuses all others, and says which and why in the condition ` + "`SpecRefused`" + ` and the event ` + "`ConfigKeysIgnored`" + `. A group with a
refused setting runs without it, as if it were not there. The operator replaces pods for that only when it replaces them anyway.

A setting is passed on if the worst that it does is to the group's own speed, capacity and answers. It names no file, address,
plugin or program. It runs no statement and grants nothing. It changes neither the fence nor what is replicated or kept. It hides
the server from nobody who must reach it: the operator, the sidecar, the replicas. What neither table has is refused too.

Names are written in full: MySQL does not start with the beginning of a name. Dashes, capitals, old words
(` + "`slave_`" + `, ` + "`master_`" + `) and the prefixes ` + "`loose_`, `skip_`, `disable_`, `enable_` and `maximum_`" + ` make no difference. A name
that ends in ` + "`*`" + ` stands for all that begin so, except those that the second table has.

Some settings are passed on with some values only: ` + "`max_allowed_packet`" + ` from 64M; ` + "`innodb_flush_method`" + ` without ` + "`nosync`" + `;
` + "`innodb_temp_data_file_path`" + ` with the file ` + "`ibtmp1`" + `; ` + "`default_storage_engine`" + ` with InnoDB; ` + "`tls_version`" + ` with TLSv1.2, TLSv1.3
or both; ` + "`partial_revokes`" + ` with ON.

This page is written by a test: ` + "`go test ./operator/render -run TestSettingsPage -update`" + `.
`

func table(b *strings.Builder, list []render.Category) {
	b.WriteString("\n| about | why | settings |\n|---|---|---|\n")
	for _, c := range list {
		fmt.Fprintf(b, "| %s | %s | `%s` |\n", c.Name, c.Why, strings.Join(c.Settings, "`, `"))
	}
}
