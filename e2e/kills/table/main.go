// SPDX-License-Identifier: Apache-2.0

// Command table puts the results of `make test-encryption-kills` into docs/internals/encryption-kills.md.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mysql-mfg/mfg/e2e/kills"
)

func main() {
	from := flag.String("from", "out/encryption-kills.json", "file with the results")
	to := flag.String("to", "docs/internals/encryption-kills.md", "document with a place for the table")
	flag.Parse()
	r, err := kills.Read(*from)
	if err == nil {
		err = r.WriteTable(*to)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "table: %v\n", err)
		os.Exit(1)
	}
}
