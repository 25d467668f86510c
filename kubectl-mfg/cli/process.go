// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// ExitPipe is what shells report of a process whose reader has gone: 128 and the number of SIGPIPE.
const ExitPipe = 141

// Process is the environment of the process with a context that ends when somebody wants it to end: by Ctrl-C, by SIGTERM, because the terminal
// is gone, or because nobody reads the output any more, as with "kubectl mfg logs shop | head". A command then has time to remove what it made
// in the cluster.
func Process() (ctx context.Context, env Environment, code func(int) int) {
	// Never stopped: a second Ctrl-C during the answer to the first would end the process as killed (130 instead of 0).
	ctx, stop := signal.NotifyContext(context.Background(), append(Ends(), os.Interrupt)...)
	_ = stop
	ctx, cancel := context.WithCancel(ctx)
	// Go ends a process that writes to a closed stdout, unless it takes the signal. Nobody listens to this one: a write tells.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	env = System()
	out, errOut := &pipe{file: os.Stdout, gone: cancel}, &pipe{file: os.Stderr, gone: cancel}
	env.Out, env.ErrOut = out, errOut
	return ctx, env, func(code int) int {
		if out.ended.Load() {
			return ExitPipe
		}
		return code
	}
}

// Ends are the signals, beside Ctrl-C, after which a command has to end: somebody ends it, or its terminal is gone.
func Ends() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) { // by nohup
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{syscall.SIGTERM, syscall.SIGHUP}
}

// UntilHangup returns a context that also ends when the terminal is gone, unless nohup keeps the process from hearing of it.
func UntilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// pipe is an output whose reader may go away. It calls gone then, and drops what is still written: an error about it would reach nobody, and
// would hide the outcome of the command.
type pipe struct {
	file  *os.File
	gone  func()
	ended atomic.Bool
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.ended.Load() {
		return len(b), nil
	}
	n, err := p.file.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.ended.Store(true)
		p.gone()
		return len(b), nil
	}
	return n, err
}

// Read, Close and Fd make it a terminal for the dashboard, if the file is one.
func (p *pipe) Read(b []byte) (int, error) { return p.file.Read(b) }
func (p *pipe) Close() error               { return p.file.Close() }
func (p *pipe) Fd() uintptr                { return p.file.Fd() }
