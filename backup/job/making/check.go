// SPDX-License-Identifier: Apache-2.0

package making

import (
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// check says what is missing, before anything is touched.
func check(c terms.Config) error {
	var missing []error
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, errors.New(what))
		}
	}
	need(c.Backup != "", "backup, the name, is missing")
	need(c.GroupUID != "", "groupUID is missing")
	need(c.Method == bucket.Logical || c.Method == bucket.Physical, fmt.Sprintf("method is %q: set Logical or Physical", c.Method))
	need(c.Source.Host != "" && c.Source.Port > 0 && c.Source.User != "", "source needs host, port and user")
	need(c.Source.PasswordFile != "", "source.passwordFile is missing")
	need(c.Server.RunDir != "", "server.runDir is missing")
	if c.Method == bucket.Physical {
		need(c.Server.Dir != "", "server.dir is missing: Physical needs room for one copy")
		need(c.Server.KeyringFile == "" || len(c.Recipients) > 0, "a Physical backup of an encrypted site needs recipients: its keyring is a part of it")
		need(c.Server.KeyringFile == "" || c.Source.CAFile != "", "an encrypted site is cloned over TLS alone: set source.caFile")
	}
	if len(missing) > 0 {
		return terms.Fail(terms.BadConfig, errors.Join(missing...))
	}
	return nil
}
