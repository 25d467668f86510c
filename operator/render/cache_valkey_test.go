// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package render_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	cryptotls "crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// TestValkeyTakesWhatIsRendered starts a real Valkey with the configuration and the password file of a group, with TLS and without, with a
// volume and without, and with every setting that is passed on. The root file system is the one of operator/cache/engine's tests.
func TestValkeyTakesWhatIsRendered(t *testing.T) {
	for name, in := range map[string]render.Input{
		"memory":        input(cache(v1alpha1.CacheValkey)),
		"much memory":   input(cache(v1alpha1.CacheValkey, func(c *v1alpha1.CacheSpec) { c.MaxMemory = resource.MustParse("16Gi") })),
		"volume":        input(cache(v1alpha1.CacheValkey, stored, set("maxmemory-policy", "noeviction"))),
		"TLS":           input(tls, cache(v1alpha1.CacheValkey)),
		"quoted values": input(cache(v1alpha1.CacheValkey, set("notify-keyspace-events", "", "timeout", "30"))),
	} {
		t.Run(name, func(t *testing.T) {
			v := startValkey(t, in)
			if answer := v.ask("GET x"); !strings.HasPrefix(answer, "-NOAUTH") {
				t.Fatalf("without a password: %q", answer)
			}
			if answer := v.ask("AUTH " + cachePassword); answer != "+OK" {
				t.Fatalf("with the password: %q", answer)
			}
			want := map[string]string{"masterauth": cachePassword, "maxmemory": "536870912", "repl-diskless-sync-delay": "0", "appendonly": "no",
				"enable-debug-command": "no", "client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", "protected-mode": "no", "maxmemory-policy": "volatile-lru", "save": ""}
			if name == "much memory" {
				want["maxmemory"], want["client-output-buffer-limit"] = "17179869184", "normal 0 0 0 slave 2147483648 2147483648 0 pubsub 33554432 8388608 60"
			}
			if in.Group.Spec.Cache.Storage != nil {
				want["save"], want["maxmemory-policy"] = "60 1", "noeviction"
			}
			if render.CacheTLS(in.Group) {
				want["tls-replication"], want["port"], want["tls-auth-clients"] = "yes", "0", "no"
			}
			for setting, value := range want {
				if got := v.setting(setting); got != value {
					t.Errorf("%s is %q, want %q", setting, got, value)
				}
			}
			// A new password without a restart, as the loop sets it: connections stay, the old one opens nothing any more.
			for _, setting := range []string{"masterauth", "requirepass"} {
				if answer := v.ask("CONFIG SET " + setting + " another-password"); answer != "+OK" {
					t.Errorf("new %s: %q", setting, answer)
				}
			}
			// It began as a replica of nobody, and takes no writes before the operator says so.
			if answer := v.ask("SET x 1"); !strings.HasPrefix(answer, "-READONLY") {
				t.Errorf("before it is the master: %q", answer)
			}
			if answer := v.ask("REPLICAOF NO ONE"); answer != "+OK" {
				t.Errorf("made the master: %q", answer)
			}
			if answer := v.ask("SET x 1"); answer != "+OK" {
				t.Errorf("the connection ended with the password: %q", answer)
			}
			if answer := v.ask("AUTH " + cachePassword); !strings.HasPrefix(answer, "-WRONGPASS") {
				t.Errorf("the old password: %q", answer)
			}
		})
	}
}

// Every setting that is passed on is one of Valkey's own, or of the releases around it.
func TestValkeyKnowsWhatIsPassedOn(t *testing.T) {
	v := startValkey(t, input(cache(v1alpha1.CacheValkey)))
	v.ask("AUTH " + cachePassword)
	var unknown []string
	for _, c := range render.CachePassed(v1alpha1.CacheValkey) {
		for _, name := range c.Settings {
			if answer := v.ask("CONFIG GET " + name); answer == "*0" {
				unknown = append(unknown, name)
			} else {
				v.skip(answer)
			}
		}
	}
	if len(unknown) > 0 {
		t.Errorf("Valkey does not know %v", unknown)
	}
}

type valkey struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func startValkey(t *testing.T, in render.Input) *valkey {
	t.Helper()
	root := filepath.Join(cacheDir(t), "valkey-rootfs")
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("%v: run the tests of operator/cache/engine first, which make it", err)
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "tmp"), "render-") //nolint:usetesting // Valkey sees nothing outside of its root
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	inside := strings.TrimPrefix(dir, root)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	must(t, l.Close())
	// The container's directories and its port are the only things that differ.
	here := strings.NewReplacer(render.CacheAuthDir, inside, render.CacheConfigDir, inside, render.TLSDir, inside,
		"dir "+render.CacheDir, "dir "+inside, "port "+strconv.Itoa(v1alpha1.CachePort), "port "+port)
	must(t, os.WriteFile(filepath.Join(dir, "valkey.conf"), []byte(here.Replace(render.CacheConfigMap(in).Data["valkey.conf"])), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "auth.conf"), render.CacheSecret(in, cachePassword, "").Data["auth.conf"], 0o600))
	if render.CacheTLS(in.Group) {
		selfSigned(t, dir)
	}
	args := render.CacheStatefulSet(in, in.Group.Spec.Sites[0]).Spec.Template.Spec.Containers[0].Args
	cmd := exec.CommandContext(t.Context(), "/usr/bin/valkey-server", here.Replace(strings.Join(args, " ")))
	var out strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var conn net.Conn
		if render.CacheTLS(in.Group) {
			conn, err = cryptotls.Dial("tcp", addr, &cryptotls.Config{InsecureSkipVerify: true}) // only whether it speaks TLS
		} else {
			conn, err = net.Dial("tcp", addr)
		}
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
			return &valkey{t, conn, bufio.NewReader(conn)}
		}
		if time.Now().After(end) {
			t.Fatalf("Valkey does not start: %v", err)
		}
	}
}

// ask sends a command and returns the first line of the answer.
func (v *valkey) ask(command string) string {
	v.t.Helper()
	_, err := io.WriteString(v.conn, command+"\r\n")
	must(v.t, err)
	return v.line()
}

func (v *valkey) line() string {
	v.t.Helper()
	line, err := v.in.ReadString('\n')
	must(v.t, err)
	return strings.TrimSpace(line)
}

// skip reads the strings of an array.
func (v *valkey) skip(header string) (all []string) {
	v.t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(header, "*"))
	if err != nil {
		v.t.Fatalf("no array: %q", header)
	}
	for range n {
		v.line()
		all = append(all, v.line())
	}
	return all
}

func (v *valkey) setting(name string) string {
	v.t.Helper()
	all := v.skip(v.ask("CONFIG GET " + name))
	if len(all) != 2 {
		v.t.Fatalf("%s: %v", name, all)
	}
	return all[1]
}

func cacheDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("MFG_CACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	must(t, err)
	return filepath.Join(home, ".cache", "mfg")
}

func selfSigned(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"cache"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "ca.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		must(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Sprint(err))
	}
}
