// SPDX-License-Identifier: Apache-2.0

//go:build mysqld && long

package job_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// watched are what is seen, over and over, while a command of the program runs.
type watched struct {
	looks, dumps int
	// found are files of the pod that hold the marker; args all arguments of all processes.
	found []string
	args  []byte
}

// watch runs a command, which must succeed, and looks at the pod's files and at all processes until it ends, and once more.
func (j *job) watch(command string, phase terms.Phase) (w watched) {
	j.t.Helper()
	_, wait, _ := j.begun(command, phase)
	over := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for last := false; ; {
			for _, name := range holding(j.dir, marker) {
				if !slices.Contains(w.found, name) {
					w.found = append(w.found, name)
				}
			}
			pids, args := processes(j.t, "--defaults-file=/proc/self/fd/3\x00--databases")
			w.looks, w.dumps, w.args = w.looks+1, w.dumps+len(pids), append(w.args, args...)
			if last {
				return
			}
			select {
			case <-over:
				last = true
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	if res, code := wait(); code != 0 {
		j.t.Errorf("%s: %+v", command, res)
	}
	close(over)
	looking.Wait()
	j.t.Logf("%s: %d looks, mysqldump seen in %d, marker in %v", command, w.looks, w.dumps, w.found)
	return w
}

// Nothing in the clear is on a disk, for an encrypted site by either method, while a backup is made and verified and after it; and no
// password is an argument of anybody. The controls do the same without encryption, and see the marker in the scratch volume each time.
func TestNoPlaintext(t *testing.T) {
	for name, keyring := range map[string]bool{"encrypted": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := origin(t, mysqltest.Options{Keyring: keyring})
			fill(t, s, 20)
			for _, method := range []string{bucket.Logical, bucket.Physical} {
				j := newJob(t, keyring).from(s)
				j.config.Method = method
				made := j.watch("make", map[string]terms.Phase{bucket.Logical: terms.Dumping, bucket.Physical: terms.Cloning}[method])
				verified := j.watch("verify", map[string]terms.Phase{bucket.Logical: terms.Loading, bucket.Physical: terms.Unpacking}[method])
				for _, w := range []watched{made, verified} {
					if bytes.Contains(w.args, []byte(password)) || bytes.Contains(w.args, []byte(mysqltest.Passwords.Root)) || bytes.Contains(w.args, []byte("AGE-SECRET-KEY")) {
						t.Errorf("%s: a secret is in an argument", method)
					}
					if keyring && len(w.found) > 0 {
						t.Errorf("%s: plaintext in %v", method, w.found)
					}
				}
				if method == bucket.Logical && made.dumps == 0 {
					t.Error("mysqldump is not seen among the processes: nothing is proven of arguments")
				}
				scratch := func(name string) bool { return strings.HasPrefix(name, filepath.Join(j.dir, "scratch")) }
				if !keyring && (!slices.ContainsFunc(verified.found, scratch) || method == bucket.Physical && !slices.ContainsFunc(made.found, scratch)) {
					t.Errorf("%s: the marker is not seen in a copy without encryption: nothing is proven", method)
				}
			}
		})
	}
}
