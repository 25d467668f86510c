// SPDX-License-Identifier: Apache-2.0

// Package cli is what all verbs of the plugin share: the process around them, exit codes and errors that carry them, and how an answer is
// written.
package cli

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Environment is all that a command may touch besides the cluster.
type Environment struct {
	genericiooptions.IOStreams
	Getenv func(string) string
	Now    func() time.Time
	// Wait sleeps; it returns false if the context ended first.
	Wait func(context.Context, time.Duration) bool
	// Terminal returns the width of stdout; ok is false if stdout is no terminal.
	Terminal func() (width int, ok bool)
	// Height returns how many lines stdout has; 0, or no such function, if that is not known.
	Height func() int
	// Interactive is true if a person can be asked: stdin is a terminal.
	Interactive func() bool
}

// System is the environment of the process.
func System() Environment {
	return Environment{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Getenv:    os.Getenv,
		Now:       time.Now,
		Wait: func(ctx context.Context, d time.Duration) bool {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				return true
			case <-ctx.Done():
				return false
			}
		},
		Terminal: func() (int, bool) {
			width, _, err := term.GetSize(int(os.Stdout.Fd()))
			return width, err == nil
		},
		Height: func() int {
			_, height, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0
			}
			return height
		},
		Interactive: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
	}
}
