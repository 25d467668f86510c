// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// keygen runs the command in a directory of its own, without any cluster.
func keygen(t *testing.T, args ...string) ran {
	t.Helper()
	f := &fakeAPI{}
	got := run(t, f, runOptions{}, append([]string{"backup", "keygen"}, args...)...)
	if len(f.asked) > 0 {
		t.Errorf("a cluster was asked: %v", f.asked)
	}
	return got
}

// identityIn reads a file as every program of age does.
func identityIn(t *testing.T, path string) *age.X25519Identity {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	all, err := age.ParseIdentities(file)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d identities, %v", len(all), err)
	}
	id, is := all[0].(*age.X25519Identity)
	if !is {
		t.Fatalf("%T", all[0])
	}
	return id
}

func TestKeygen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.txt")
	got := keygen(t, "--file", path, "-n", "shop")
	if got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others could read the key", info.Mode(), err)
	}
	id := identityIn(t, path)
	public, secret := id.Recipient().String(), id.String()
	for _, want := range []string{"Recipient " + public, "recipients: [" + public + "]", "kubectl create secret generic mfg-backup-identity -n shop --from-file=identity=" + path} {
		if !strings.Contains(got.out+got.errOut, want) {
			t.Errorf("lacks %q:\n%s%s", want, got.out, got.errOut)
		}
	}
	if strings.Contains(got.out+got.errOut, secret) || strings.Contains(got.out, "SECRET-KEY") {
		t.Error("the identity is on the terminal")
	}
	before, _ := os.ReadFile(path)
	again := keygen(t, "--file", path)
	if after, _ := os.ReadFile(path); again.code != cli.ExitRefused || string(after) != string(before) || !strings.Contains(again.errOut, "may be the only key to backups") {
		t.Errorf("the file was overwritten, or nothing was said: %+v", again)
	}
}

// TestKeygenSecret: with --secret stdout is the manifest and nothing else, so that kubectl takes it.
func TestKeygenSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.txt")
	got := keygen(t, "--file", path, "--secret", "mine", "-n", "shop")
	var secret corev1.Secret
	if err := yaml.UnmarshalStrict([]byte(got.out), &secret); err != nil || got.code != cli.ExitHealthy {
		t.Fatalf("%v: %+v", err, got)
	}
	id := identityIn(t, path)
	if secret.Kind != "Secret" || secret.Name != "mine" || secret.Namespace != "shop" || !strings.Contains(secret.StringData["identity"], id.String()) {
		t.Errorf("%+v", secret.ObjectMeta)
	}
	if strings.Contains(got.errOut, id.String()) || !strings.Contains(got.errOut, id.Recipient().String()) {
		t.Errorf("stderr: %q", got.errOut)
	}
	if other := keygen(t, "--file", filepath.Join(t.TempDir(), "x"), "--secret", "mine"); strings.Contains(other.out, "namespace") || strings.Contains(other.out, id.String()) {
		t.Error("another key is the same, or goes into a namespace that nobody named")
	}
}

func TestKeygenRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"--file -":                 "never to a terminal or a pipe",
		"--file=":                  "--file is missing",
		"--secret Bad_Name":        "cannot be the name of a Secret",
		"too many":                 "0 argument(s) expected",
		"--file no/such/directory": "no such file or directory",
	} {
		got := keygen(t, strings.Fields(args)...)
		if got.code == cli.ExitHealthy || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("something was written: %v", left)
	}
}
