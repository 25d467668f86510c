// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// debianPackages are needed beside the Go toolchain, each with a file that shows it is there.
var debianPackages = map[string]string{
	"containerd":                  "/usr/bin/containerd",
	"runc":                        "/usr/sbin/runc",
	"containernetworking-plugins": "/usr/lib/cni/bridge",
	"iptables":                    "/usr/sbin/iptables",
	"conntrack":                   "/usr/sbin/conntrack",
	"socat":                       "/usr/bin/socat",
	"mmdebstrap":                  "/usr/bin/mmdebstrap",
	"iproute2":                    "/usr/sbin/ip",
	"procps":                      "/usr/sbin/sysctl",
	"util-linux":                  "/usr/bin/nsenter",
	"debian-archive-keyring":      "/usr/share/keyrings/debian-archive-keyring.gpg",
}

// terminalPackages are needed only by tests that look at a screen.
var terminalPackages = map[string]string{"tmux": "/usr/bin/tmux"}

const elsewhere = "Anywhere else, install mfg into a cluster that you have: see docs/install.md."

// checkMachine tells at once when the lab cannot run here, and what to do instead.
func checkMachine() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the lab needs Linux, this is %s. %s", runtime.GOOS, elsewhere)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("the lab needs root: it makes network namespaces and runs containers. Run it with sudo. %s", elsewhere)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("the lab needs Debian or a relative of it: apt-get is not there. %s", elsewhere)
	}
	return nil
}

// ensurePackages installs the Debian packages that are missing.
func (c *Cluster) ensurePackages(ctx context.Context) error { return c.ensure(ctx, debianPackages) }

// EnsureTerminal installs what a program needs to be run on a terminal that nobody sits at, and says so.
func (c *Cluster) EnsureTerminal(ctx context.Context) error { return c.ensure(ctx, terminalPackages) }

func (c *Cluster) ensure(ctx context.Context, packages map[string]string) error {
	var missing []string
	for name, file := range packages {
		// On a merged /usr the file is found under either path.
		if !exists(file) && !exists(strings.TrimPrefix(file, "/usr")) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	c.say("installing Debian packages: %s", strings.Join(missing, " "))
	if err := forbidServices(); err != nil {
		return err
	}
	defer func() { _ = allowServices() }()
	if err := aptInstall(ctx, missing); err == nil {
		return nil
	}
	c.say("refreshing the package lists, then trying again")
	if _, err := apt(ctx, "update"); err != nil {
		return fmt.Errorf("refresh package lists: %w", err)
	}
	if err := aptInstall(ctx, missing); err != nil {
		return fmt.Errorf("install packages: %w", err)
	}
	return nil
}

func aptInstall(ctx context.Context, names []string) error {
	_, err := apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, names...)...)
	return err
}

func apt(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// Broken off in the middle it would leave packages half configured: let it end by itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return nil }
	return outputOf(cmd)
}

const (
	policyFile = "/usr/sbin/policy-rc.d"
	policy     = "#!/bin/sh\n# made by `lab up`, removed by it or by `lab down`\nexit 101\n"
)

// forbidServices keeps a package from starting its service: the lab runs containerd itself.
func forbidServices() error {
	if exists(policyFile) {
		return nil
	}
	if err := os.WriteFile(policyFile, []byte(policy), 0o755); err != nil {
		return fmt.Errorf("forbid services: %w", err)
	}
	return nil
}

// allowServices takes that back, if it was us.
func allowServices() error {
	raw, err := os.ReadFile(policyFile)
	if err != nil || string(raw) != policy {
		return nil //nolint:nilerr // not there, or not ours
	}
	return os.Remove(policyFile)
}
