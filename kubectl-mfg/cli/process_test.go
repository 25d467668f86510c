// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the process that the tests below end: it says that it is there, waits for the end of its context, and cleans up.
func TestMain(m *testing.M) {
	file := os.Getenv("MFG_TEST_CLEANS_UP")
	if file == "" {
		os.Exit(m.Run())
	}
	// The test itself may run under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	if os.Getenv("MFG_TEST_NOHUP") != "" {
		signal.Ignore(syscall.SIGHUP)
	}
	ctx, env, code := Process()
	if os.Getenv("MFG_TEST_DASHBOARD") != "" {
		// What draws takes Ctrl-C and SIGTERM as it likes.
		ctx, _ = UntilHangup(context.WithoutCancel(ctx))
	}
	for ctx.Err() == nil {
		if _, err := fmt.Fprintln(env.Out, "a line"); err != nil {
			os.Exit(3)
		}
	}
	if err := os.WriteFile(file, []byte("clean"), 0o600); err != nil {
		os.Exit(4)
	}
	os.Exit(code(ExitTimeout))
}

// A command that ends early removes what it made in the cluster: it must hear of its end.
func TestTheEndOfAProcessIsHeard(t *testing.T) {
	for how, tc := range map[string]struct {
		end    func(*os.Process, *os.File) error
		nohup  string
		draws  string
		code   int
		killed bool
	}{
		"the terminal goes":  {end: func(p *os.Process, _ *os.File) error { return p.Signal(syscall.SIGHUP) }, code: ExitTimeout},
		"a dashboard's goes": {end: func(p *os.Process, _ *os.File) error { return p.Signal(syscall.SIGHUP) }, draws: "yes", code: ExitTimeout},
		"it is terminated":   {end: func(p *os.Process, _ *os.File) error { return p.Signal(syscall.SIGTERM) }, code: ExitTimeout},
		"the reader goes":    {end: func(_ *os.Process, out *os.File) error { return out.Close() }, code: ExitPipe},
		"it runs with nohup": {end: func(p *os.Process, _ *os.File) error { return p.Signal(syscall.SIGHUP) }, nohup: "yes", killed: true},
	} {
		t.Run(how, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			clean := t.TempDir() + "/clean"
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p := exec.CommandContext(ctx, self)
			p.Env, p.Stdout = append(os.Environ(), "MFG_TEST_CLEANS_UP="+clean, "MFG_TEST_NOHUP="+tc.nohup, "MFG_TEST_DASHBOARD="+tc.draws), write
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			_ = write.Close()
			lines := bufio.NewReader(read)
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if err := tc.end(p.Process, read); err != nil {
				t.Fatal(err)
			}
			if tc.killed {
				// It goes on, as a process under nohup must.
				for range 10_000 {
					if _, err := lines.ReadString('\n'); err != nil {
						t.Fatalf("it ended: %v", err)
					}
				}
				_ = p.Process.Kill()
				_ = p.Wait()
				return
			}
			go func() { // so that it can write until it hears
				for {
					if _, err := lines.ReadString('\n'); err != nil {
						return
					}
				}
			}()
			_ = p.Wait()
			if said, err := os.ReadFile(clean); err != nil || string(said) != "clean" || p.ProcessState.ExitCode() != tc.code {
				t.Errorf("exit code %d, cleaned up: %v", p.ProcessState.ExitCode(), err)
			}
		})
	}
}
