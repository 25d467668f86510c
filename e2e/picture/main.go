// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	from := flag.String("from", "docs/dashboard-failover.md", "page with the frames")
	to := flag.String("to", "docs/failover.svg", "picture to write")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintf(os.Stderr, "picture: %v\n", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	page, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	all, err := read(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(draw(all)), 0o644)
}
