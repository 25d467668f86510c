// SPDX-License-Identifier: Apache-2.0

// Package gateway is the S3 server of the tests: versitygw, which checks signatures, keeps multipart uploads and knows conditional
// writes, over folders. One server in a process: it has global variables.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// Options say what is served.
type Options struct {
	// Data has a folder for each bucket, with the objects as files under their keys. Meta has what belongs to them, such as their ETags.
	Data, Meta string
	// Address is host and port; an empty host means all.
	Address string
	// CertFile and KeyFile are for TLS, PEM. Without them there is none.
	CertFile, KeyFile string
	// AccessKey and SecretKey are of the one account.
	AccessKey, SecretKey string
	// Buckets are made if they are not there.
	Buckets []string
	// RateFile, if it is set, is a file with a number: what all clients together may send, in bytes a second. It is read twice a second.
	// While it is not there or holds 0 nothing is bounded.
	RateFile string
}

// Bounds of the server.
const (
	connectionsMax = 128
	partsMax       = 10000
	filesAtATime   = 64
)

// Run serves until the context ends.
func Run(ctx context.Context, o Options) error {
	if o.AccessKey == "" || o.SecretKey == "" {
		return errors.New("serve S3: the account has no key")
	}
	dirs := []string{o.Meta, o.Data}
	for _, b := range o.Buckets {
		dirs = append(dirs, filepath.Join(o.Data, b))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("serve S3: %w", err)
		}
	}
	store, err := meta.NewSideCar(o.Meta)
	if err != nil {
		return fmt.Errorf("serve S3: %w", err)
	}
	// Temporary files without a name are not to be had on every file system that tests use.
	backend, err := posix.New(o.Data, store, posix.PosixOpts{Concurrency: filesAtATime, ForceNoTmpFile: true})
	if err != nil {
		return fmt.Errorf("serve S3: %w", err)
	}
	address := o.Address
	if o.RateFile != "" {
		if address, err = slowed(ctx, o); err != nil {
			return fmt.Errorf("serve S3: %w", err)
		}
	}
	err = embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: o.AccessKey, RootUserSecret: o.SecretKey, Ports: []string{address}, MaxConnections: connectionsMax,
		MaxRequests: connectionsMax, MultipartMaxParts: partsMax, CertFile: o.CertFile, KeyFile: o.KeyFile, Quiet: true, KeepAlive: true,
	})
	return cmp.Or(err, ctx.Err())
}
