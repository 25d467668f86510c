// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
)

// adminUser is the account of the proxy itself, so that no change of the clients' password locks it out.
const adminUser = "mfg-proxy"

// Times of the child.
const (
	startLimit  = 15 * time.Second
	endLimit    = 20 * time.Second
	adminLimit  = 2 * time.Second
	startsEvery = 20 * time.Millisecond
)

// serverVariable names another server program than the one in PATH.
const serverVariable = "MFG_VALKEY_SERVER"

// child is the Valkey behind the proxy.
type child struct {
	dir, socket string
	password    string
	command     *exec.Cmd
	ended       chan struct{}
	err         error // of the end, once ended is closed
}

func startChild(ctx context.Context, s settings) (*child, error) {
	dir, err := os.MkdirTemp("", "dfly")
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	c := &child{dir: dir, socket: filepath.Join(dir, "s"), password: rand.Text(), ended: make(chan struct{})}
	config, err := s.childConfig(c.socket, c.password)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "conf"), []byte(config), 0o600)
	}
	if err != nil {
		c.remove()
		return nil, fmt.Errorf("configure the server: %w", err)
	}
	// Not with the context: at its end the server is asked to save first.
	c.command = exec.Command(cmp.Or(os.Getenv(serverVariable), "valkey-server"), filepath.Join(dir, "conf")) //nolint:noctx // it outlives the context, to be asked to save
	c.command.Stdout, c.command.Stderr = os.Stderr, os.Stderr
	if err := c.command.Start(); err != nil {
		c.remove()
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() {
		c.err = c.command.Wait()
		close(c.ended)
	}()
	if err := c.await(ctx); err != nil {
		c.end(false)
		c.remove()
		return nil, err
	}
	return c, nil
}

// await waits until the server takes connections.
func (c *child) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		admin, err := c.admin(ctx)
		if err == nil {
			return admin.Close()
		}
		select {
		case <-c.ended:
			return fmt.Errorf("the server ended at its start: %w", errors.Join(c.err, errors.New("see above")))
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", err)
		case <-time.After(startsEvery):
		}
	}
}

// admin is a connection of the proxy's own.
func (c *child) admin(ctx context.Context) (*resp.Client, error) {
	client, err := resp.Dialer{DialTimeout: adminLimit, Timeout: adminLimit}.Dial(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	if _, err := client.Do("AUTH", adminUser, c.password); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// end ends the server, with its data on disk if it is to keep them.
func (c *child) end(save bool) {
	how := "NOSAVE"
	if save {
		how = "SAVE"
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if admin, err := c.admin(ctx); err == nil {
		// It answers by hanging up.
		_, _ = admin.DoFor(endLimit, "SHUTDOWN", how, "NOW")
		_ = admin.Close()
	}
	select {
	case <-c.ended:
	case <-time.After(adminLimit):
		_ = c.command.Process.Kill()
		<-c.ended
	}
}

func (c *child) remove() { _ = os.RemoveAll(c.dir) }
