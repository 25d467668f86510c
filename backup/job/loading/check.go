// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// check says what is missing, before anything is touched.
func check(c terms.Config) error {
	if t := c.PointInTime; t != nil && points(*t) != 1 {
		return terms.Fail(terms.BadConfig, errors.New("pointInTime stops at one point: set exactly one of time, gtid, beforeGTID, beforeFailover and latest"))
	}
	if c.Backup == "" && !isSite(c) || c.Server.Dir == "" || c.Server.RunDir == "" {
		return terms.Fail(terms.BadConfig, errors.New("backup, server.dir and server.runDir must be set"))
	}
	return nil
}

// points is how many points are named.
func points(p terms.PointInTime) (n int) {
	for _, named := range []bool{p.Time != nil && !p.Time.IsZero(), p.GTID != "", p.BeforeGTID != "", p.BeforeFailover > 1, p.Latest} {
		if named {
			n++
		}
	}
	return n
}

// identities reads the age identities; none without a file.
func identities(c terms.Config) (bucket.Identities, error) {
	if c.IdentityFile == "" {
		return bucket.Identities{}, nil
	}
	f, err := os.Open(c.IdentityFile)
	if errors.Is(err, fs.ErrNotExist) {
		return bucket.Identities{}, terms.Fail(terms.WrongIdentity, errors.New("the Secret of encryption.identitySecretName is missing, or has no key identity: put the age identity there"))
	}
	if err != nil {
		return bucket.Identities{}, terms.Fail(terms.BadConfig, fmt.Errorf("read the age identity: %w", err))
	}
	defer func() { _ = f.Close() }()
	ids, err := bucket.ParseIdentities(f)
	if err != nil {
		return ids, terms.Fail(terms.WrongIdentity, err)
	}
	return ids, nil
}
