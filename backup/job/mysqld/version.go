// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// Version is the version of the mysqld here.
func Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "mysqld", "--version").Output()
	if err != nil {
		return "", terms.Fail(terms.BadConfig, fmt.Errorf("ask mysqld for its version: %w", err))
	}
	_, after, found := strings.Cut(string(out), "Ver ")
	if !found {
		return "", terms.Fail(terms.BadConfig, fmt.Errorf("mysqld tells its version as %q", terms.Clip(string(out), 80)))
	}
	version, _, _ := strings.Cut(after, " ")
	return version, nil
}

// Series is the first two numbers of a version, as 9.7 of 9.7.4-debug. Versions are parsed loosely: later ones may look otherwise.
func Series(version string) string {
	major, minor := numbers(version)
	return fmt.Sprintf("%d.%d", major, minor)
}

func numbers(version string) (major, minor int) {
	parts := strings.SplitN(version, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		digits := strings.IndexFunc(parts[1]+" ", func(r rune) bool { return r < '0' || r > '9' })
		minor, _ = strconv.Atoi(parts[1][:digits])
	}
	return major, minor
}

// CheckVersion refuses a backup of a later series than the server's: MySQL loads no data of the future.
func CheckVersion(backup, server string) error {
	a, b := numbers(backup)
	c, d := numbers(server)
	if a == 0 || c == 0 {
		return terms.Fail(terms.VersionTooOld, errors.New("the version of the backup or of the server cannot be read"))
	}
	if a > c || a == c && b > d {
		return terms.Fail(terms.VersionTooOld, fmt.Errorf("the backup is of MySQL %s, and the server here is %s: restore with that version or a later one", backup, server))
	}
	return nil
}
