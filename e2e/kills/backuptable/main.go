// SPDX-License-Identifier: Apache-2.0

// Command backuptable puts the results of `make kills-backup` into docs/internals/backup-kills.md.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mysql-mfg/mfg/e2e/kills/backups"
)

func main() {
	from := flag.String("from", "out/kills-backup.json", "file with the results")
	to := flag.String("to", "docs/internals/backup-kills.md", "document with a place for the table")
	flag.Parse()
	r, err := backups.Read(*from)
	if err == nil {
		err = r.WriteTable(*to)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "backuptable: %v\n", err)
		os.Exit(1)
	}
}
