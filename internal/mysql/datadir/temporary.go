// SPDX-License-Identifier: Apache-2.0

// Package datadir handles files that mysqld has beside its tables: what a clone leaves for mysqld's next start, and what an earlier try left that
// would stop mysqld --initialize. Nothing here runs while mysqld does.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// temporaryPrefix begins the names of directories that ForInitialize makes.
const temporaryPrefix = "mysqld-initialize-"

// ForInitialize makes a directory in base for the temporary tablespaces of mysqld --initialize, which refuses existing ones, and returns
// the options that name it and a function that removes it. An encrypted site has its tablespaces in /tmp, which outlives a container: a
// server that was killed left them there, and every later try failed. So ForInitialize first removes what earlier tries left.
func ForInitialize(base string) (options []string, remove func() error, err error) {
	left, err := filepath.Glob(filepath.Join(base, temporaryPrefix+"*"))
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("remove temporary tablespaces of an earlier try: %w", err)
	}
	dir, err := os.MkdirTemp(base, temporaryPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("make a directory for temporary tablespaces: %w", err)
	}
	return []string{"--innodb-temp-tablespaces-dir=" + dir, "--innodb-temp-data-file-path=" + dir + "/ibtmp1:12M:autoextend"},
		func() error { return os.RemoveAll(dir) }, nil
}
