// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const realToken = "t0ken-0f-the-site-that-nobody-may-read"

// reportTimeout covers an initialisation on a busy machine.
const reportTimeout = 3 * time.Minute

// vault is an operator's escrow listener.
type vault struct {
	*httptest.Server
	mu       sync.Mutex
	versions [][]byte
}

func newVault(t *testing.T) *vault {
	v := &vault{}
	v.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var push wire.KeyringEscrow
		if err := json.NewDecoder(r.Body).Decode(&push); err != nil || r.Header.Get("Authorization") != "Bearer "+realToken {
			t.Errorf("push: %v", err)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if n := len(v.versions); n == 0 || string(v.versions[n-1]) != string(push.Keyring) {
			v.versions = append(v.versions, push.Keyring)
		}
		_ = json.NewEncoder(w).Encode(wire.KeyringEscrowed{Secret: "s", Version: int64(len(v.versions)), Digest: wire.KeyringDigest(push.Keyring)})
	}))
	t.Cleanup(v.Close)
	return v
}

// newest is what is in escrow.
func (v *vault) newest() (int, []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.versions) == 0 {
		return 0, nil
	}
	return len(v.versions), v.versions[len(v.versions)-1]
}

// encryptedPod is a pod whose mysqld and sidecar have mounts of their own, as two containers have.
type encryptedPod struct {
	*pod
	vault *vault
	log   *safeBuffer
}

func newEncryptedPod(t *testing.T) *encryptedPod {
	t.Helper()
	return encryptPod(t, newPod(t))
}

// encryptPod has a pod run with encryption from now on.
func encryptPod(t *testing.T, plain *pod) *encryptedPod {
	t.Helper()
	p := &encryptedPod{pod: plain, vault: newVault(t), log: &safeBuffer{}}
	cnf, err := os.OpenFile(filepath.Join(p.dir, "my.cnf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cnf.WriteString(strings.Join(append(mysqltest.Encrypted, "relay_log=relay-bin"), "\n") + "\n")
	if err := cnf.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.vault.Certificate().Raw})
	for name, text := range map[string]string{
		"escrow/ca.crt": string(ca), "escrow/token": realToken,
		"parts/sbin/mysqld.my": `{"components": "file://component_keyring_file"}`,
	} {
		p.file(name, text)
	}
	return p
}

// file writes a file that everybody in the pod may read.
func (p *encryptedPod) file(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	write(p.t, path, text, 0o644)
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// form is how a pod is rendered.
type form struct {
	// sealed has the newest version projected, mounted read-only.
	sealed bool
	// readOnlyComponent has the component configured as in a sealed pod, whatever the mount is.
	readOnlyComponent bool
	work              string
	// seed is the keyring to start from.
	seed []byte
}

// enter mounts what a pod has; $1 is the folder, $2 the root file system, $3 is "sealed" or not, $4 and $5 are what runs as
// init container and as mysqld, $6 as sidecar. The sidecar never has a mount that it could write to.
const enterEncrypted = `set -e
mount --bind "$1" "$2/srv"; mount -t proc proc "$2/proc"
mount -t overlay overlay -o "lowerdir=$1/parts/sbin:$2/usr/sbin" "$2/usr/sbin"
mount -t overlay overlay -o "lowerdir=$1/parts/plugin:$2/usr/lib/mysql/plugin" "$2/usr/lib/mysql/plugin"
mkdir -p "$2/srv/keyring"; mount -t tmpfs -o mode=1777 tmpfs "$2/srv/keyring"
if [ "$3" = sealed ]; then cp "$1/projected" "$2/srv/keyring/keyring"; chmod 444 "$2/srv/keyring/keyring"; fi
as='setpriv --reuid=999 --regid=999 --clear-groups --pdeathsig=KILL'
export seal="true"; [ "$3" != sealed ] || seal="mount -o remount,bind,ro $2/srv/keyring"
unshare --mount sh -ec "$seal; exec chroot '$2' $as sh -c '$4'"
[ -n "$5" ] || exit 0
rm -f "$1/mounted"
unshare --mount sh -ec "$seal; : > '$1/mounted'; exec chroot '$2' $as sh -c '$5'" > "$1/mysqld.log" 2>&1 &
while [ ! -e "$1/mounted" ]; do sleep 0.05; done
mount -o remount,bind,ro "$2/srv/keyring"
chroot "$2" $as sh -c "$6"; exit $?`

// command makes a pod of that form; with run false only its bootstrap.
func (p *encryptedPod) command(f form, operator string, run bool) *exec.Cmd {
	p.t.Helper()
	component := `{"path": "/srv/keyring/keyring", "read_only": false}`
	if f.sealed || f.readOnlyComponent {
		component = `{"path": "/srv/keyring/keyring", "read_only": true}`
	}
	p.file("parts/plugin/component_keyring_file.cnf", component)
	mode, mysqld, sidecar := "unsealed", "", ""
	if run {
		mysqld = "exec /srv/sidecar mysqld mysqld --defaults-file=/srv/my.cnf --admin-address=127.0.0.1"
		sidecar = "exec /srv/sidecar run"
	}
	cmd := p.sh("")
	if f.sealed {
		_, newest := p.vault.newest()
		p.file("projected", string(newest))
		mode = "sealed"
		cmd.Env = append(cmd.Env, "MFG_KEYRING_SEALED=true")
	} else {
		cmd.Env = append(cmd.Env, "MFG_KEYRING_SEALED=false", "MFG_KEYRING_WORK="+f.work,
			"MFG_ESCROW_URL="+p.vault.URL, "MFG_ESCROW_CA=/srv/escrow/ca.crt", "MFG_ESCROW_TOKEN_FILE=/srv/escrow/token")
	}
	if f.seed != nil {
		p.file("seed/keyring", string(f.seed))
		cmd.Env = append(cmd.Env, "MFG_KEYRING_SEED=/srv/seed/keyring", "MFG_KEYRING_SEED_DIGEST="+wire.KeyringDigest(f.seed))
	}
	cmd.Env = append(cmd.Env, "MFG_RUN_DIR=/srv", "MFG_KEYRING_FILE=/srv/keyring/keyring", "MFG_COVERAGE_SYSTEM_TABLESPACE=true", "MFG_OPERATOR_URL="+operator)
	cmd.Args = []string{
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enterEncrypted, "sh",
		p.dir, p.root, mode, "/srv/sidecar bootstrap", mysqld, sidecar,
	}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	return cmd
}

// rotating is an operator that calls another site active and lets this one be writable behind offline_mode: without that window the sidecar
// would fence it while its keys are rotated.
func (p *encryptedPod) rotating() (url string) {
	return p.operator(wire.Statement{
		Namespace: "shop", Group: "orders", ActiveSite: "b", Epoch: 2, LeaseTimeoutMillis: 6000,
		Windows: []wire.Window{{Site: "a", Purpose: wire.WindowRotation, Deadline: time.Now().Add(time.Hour)}},
	})
}

// start runs a pod until the returned function is called.
func (p *encryptedPod) start(f form, operator string) (end func()) {
	p.t.Helper()
	cmd := p.command(f, operator, true)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end = sync.OnceFunc(func() {
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		// The processes of the namespace go with its first one; the lock on the volume tells when the last one has.
		time.Sleep(300 * time.Millisecond)
	})
	p.t.Cleanup(end)
	return end
}

// report waits until the report of the site is as it should be.
func (p *encryptedPod) report(what string, good func(wire.Report) bool) wire.Report {
	p.t.Helper()
	c := client.New(nil)
	defer c.Close()
	var last wire.Report
	deadline := time.Now().Add(reportTimeout)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Second)
		r, err := c.PushActiveSite(ctx, realListen, wire.ActiveSite{})
		cancel()
		if err == nil && r.Keyring != nil {
			if last = r.Report; good(last) {
				return last
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	mysqld, _ := os.ReadFile(filepath.Join(p.dir, "mysqld.log"))
	p.t.Fatalf("not in time: %s\n%+v\n%+v\n%s\nmysqld:\n%s", what, last, last.Keyring, p.log, mysqld)
	return last
}

func escrowed(r wire.Report) bool {
	k := r.Keyring
	return r.Answered && k.Active && k.Digest != "" && k.Digest == k.EscrowedDigest && k.Trouble == "" && k.Coverage != nil
}

func (p *encryptedPod) operatorDB() *mysql.DB {
	return mysqltest.Open(p.t, mysql.Target{
		Addr: realAdmin, User: mysql.AccountOperator, Password: "it's operator\\", DialTimeout: 2 * time.Second, QueryTimeout: 5 * time.Second,
	})
}

// asRootDo runs statements as root.
func (p *encryptedPod) asRootDo(statements ...string) {
	p.t.Helper()
	for _, s := range statements {
		cmd := p.sh("mysql -uroot -S /srv/mysqld.sock -e \"" + s + "\"")
		cmd.Env = append(cmd.Env, "MYSQL_PWD=it's root\\")
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("%s: %v\n%s", s, err, out)
		}
	}
}

// TestRealKeyring is the life of a keyring on a real mysqld: made, escrowed, opened; sealed; rotated; lost; wiped. It covers
// I16 (open only once escrowed) and I19 (nothing of it in any output).
func TestRealKeyringI16I19(t *testing.T) {
	runtime.LockOSThread() // the children die with the thread that started them
	p := newEncryptedPod(t)
	named := p.operator(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 1, LeaseTimeoutMillis: 6000})
	other := p.rotating()

	// Lost before anything was escrowed: the second pod starts again.
	if err := p.command(form{work: workBootstrap}, named, false).Run(); err != nil {
		t.Fatalf("bootstrap: %v\n%s", err, p.log)
	}
	end := p.start(form{work: workBootstrap}, named)
	r := p.report("open and escrowed", func(r wire.Report) bool { return r.Writable && escrowed(r) && r.Keyring.Coverage.SystemTablespace })
	if !strings.Contains(p.log.String(), "giving up the data directory") {
		t.Error("it did not begin anew")
	}
	k := r.Keyring
	if k.Sealed || k.ReadOnly || k.MountReadOnly || k.Keys < 3 || k.EscrowedVersion != 1 || k.DataFile != "/srv/keyring/keyring" {
		t.Errorf("unsealed: %+v", k)
	}
	if c := k.Coverage; c.Unencrypted != 0 || !c.RedoLog || !c.UndoLog || !c.BinaryLog {
		t.Errorf("coverage %+v", c)
	}
	if r.GTIDExecuted != "" {
		t.Errorf("the encryption of the data dictionary is a transaction: %s", r.GTIDExecuted)
	}
	p.asRootDo("CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY); INSERT INTO app.t VALUES (7)")
	end()

	end = p.start(form{sealed: true}, other)
	r = p.report("sealed", func(r wire.Report) bool { return r.Answered && r.Keyring.ReadOnly && r.Keyring.Digest != "" })
	if k := r.Keyring; !k.Sealed || !k.Active || !k.MountReadOnly || k.Trouble != "" || k.Digest != k.EscrowedDigest {
		t.Errorf("sealed: %+v", k)
	}
	p.asRootDo("SELECT id FROM app.t")
	end()

	// MySQL says Read_only and could write all the same: the report tells the two apart.
	_, first := p.vault.newest()
	end = p.start(form{readOnlyComponent: true, work: "Rotation", seed: first}, other)
	r = p.report("answers", func(r wire.Report) bool { return escrowed(r) && r.Keyring.ReadOnly })
	if r.Keyring.MountReadOnly {
		t.Errorf("a mount that can be written: %+v", r.Keyring)
	}
	end()

	end = p.start(form{work: "Rotation", seed: first}, other)
	before := p.report("seeded", escrowed)
	db := p.operatorDB()
	if err := db.BeginWindow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.RotateMasterKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = p.report("escrowed again", func(r wire.Report) bool { return escrowed(r) && r.Keyring.Digest != before.Keyring.Digest })
	if n, newest := p.vault.newest(); n != 2 || r.Keyring.EscrowedVersion != 2 || wire.KeyringDigest(newest) != r.Keyring.Digest {
		t.Errorf("%d versions, %+v", n, r.Keyring)
	}
	if r.GTIDExecuted != before.GTIDExecuted {
		t.Errorf("executed %s, before the rotation %s", r.GTIDExecuted, before.GTIDExecuted)
	}
	end()

	// The operator still has the old version rendered: the data needs the new one, which is in escrow.
	if err := p.command(form{work: "Rotation", seed: first}, other, false).Run(); err == nil || !strings.Contains(p.log.String(), errKeyringLost.Error()) {
		t.Errorf("an old keyring was accepted: %v", err)
	}
	end = p.start(form{sealed: true}, other)
	p.report("sealed again", func(r wire.Report) bool { return r.Answered && r.Keyring.MountReadOnly })
	p.asRootDo("SELECT id FROM app.t")
	end()
	p.showsNothing()
}

// asEarlierVersion makes the volume of a site of an earlier version: data, and accounts without the rights of encryption.
func (p *pod) asEarlierVersion() {
	p.t.Helper()
	const lesser = `CREATE DATABASE app;
CREATE TABLE app.t (id INT PRIMARY KEY);
INSERT INTO app.t VALUES (7);
SET SESSION sql_log_bin = 0;
REVOKE ENCRYPTION_KEY_ADMIN, BINLOG_ENCRYPTION_ADMIN ON *.* FROM 'mfg_operator'@'%';
REVOKE CREATE TABLESPACE, PROCESS, TABLE_ENCRYPTION_ADMIN ON *.* FROM 'mfg_sidecar'@'%';
REVOKE ALTER ON sys.sys_config FROM 'mfg_sidecar'@'%';
DROP USER 'mfg_probe'@'%';
`
	write(p.t, filepath.Join(p.dir, "lesser.sql"), lesser, 0o644)
	out, err := p.sh(`/srv/sidecar bootstrap && rm /srv/mfg/rights || exit 1
mysqld --defaults-file=/srv/my.cnf --init-file=/srv/lesser.sql > /srv/earlier.log 2>&1 &
until grep -q "ready for connections" /srv/earlier.log; do kill -0 $! || { cat /srv/earlier.log; exit 1; }; sleep 0.1; done
kill $!; wait $!`).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// TestRealAdoption: the volume of an earlier version, whose accounts cannot do what encryption needs, is adopted: they get the
// rights without a transaction, and both keys are rotated with them (I20).
func TestRealAdoptionI20(t *testing.T) {
	runtime.LockOSThread() // the children die with the thread that started them
	plain := newPod(t)
	plain.asEarlierVersion()
	p := encryptPod(t, plain)
	other := p.rotating()
	end := p.start(form{work: "Rotation"}, other)
	before := p.report("escrowed, and what is encrypted is told", escrowed)
	if _, ids, ok := strings.Cut(before.GTIDExecuted, ":"); !ok || ids != "1-3" {
		t.Errorf("executed %q: three transactions were there, and giving rights makes none", before.GTIDExecuted)
	}
	if c := before.Keyring.Coverage; c.Unencrypted != 1 || c.SystemTablespace {
		t.Errorf("coverage %+v: what was there is in the clear, and is told", c)
	}
	db := p.operatorDB()
	if err := db.BeginWindow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.RotateMasterKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := p.report("escrowed again", func(r wire.Report) bool { return escrowed(r) && r.Keyring.Digest != before.Keyring.Digest })
	if after.GTIDExecuted != before.GTIDExecuted {
		t.Errorf("executed %s, before the rotation %s", after.GTIDExecuted, before.GTIDExecuted)
	}
	end()
	end = p.start(form{sealed: true}, p.operator(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 3, LeaseTimeoutMillis: 6000}))
	// As the active site its sidecar encrypts what MySQL made in the clear.
	p.report("open, sealed and covered", func(r wire.Report) bool {
		return r.Writable && r.Keyring.Coverage != nil && r.Keyring.Coverage.SystemTablespace
	})
	// The account of the write probe was made with the rights, and what it does is no transaction.
	p.report("clients can write", func(r wire.Report) bool { return r.WriteProbe != nil && r.WriteProbe.Outcome == wire.WriteDone })
	p.asRootDo("ALTER TABLE app.t ENCRYPTION='Y'", "SELECT id FROM app.t")
	end()
	p.showsNothing()
}

// showsNothing looks for every key, in every spelling, and for the token in all that was said.
func (p *encryptedPod) showsNothing() {
	p.t.Helper()
	mysqld, err := os.ReadFile(filepath.Join(p.dir, "mysqld.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	state := ""
	for _, path := range tree(p.t, filepath.Join(p.dir, "mfg")) {
		if raw, err := os.ReadFile(path); err == nil {
			state += string(raw)
		}
	}
	text := strings.ToLower(p.log.String() + string(mysqld) + state)
	var searched int
	for _, version := range p.vault.versions {
		var file struct {
			Elements []struct {
				Data string `json:"data"`
			} `json:"elements"`
		}
		if err := json.Unmarshal(version, &file); err != nil {
			p.t.Fatal(err)
		}
		for _, e := range file.Elements {
			raw, err := hex.DecodeString(e.Data)
			if err != nil {
				p.t.Fatal(err)
			}
			for _, spelling := range []string{e.Data, string(raw), base64.StdEncoding.EncodeToString(raw), base64.StdEncoding.EncodeToString(version)[:64]} {
				searched++
				if strings.Contains(text, strings.ToLower(spelling)) {
					p.t.Error("a key is in the output")
				}
			}
		}
	}
	if searched < 12 || !strings.Contains(text, "the keyring is in escrow") {
		p.t.Errorf("searched for %d spellings in %d bytes", searched, len(text))
	}
	if strings.Contains(text, strings.ToLower(realToken)) {
		p.t.Error("the token is in the output")
	}
}
