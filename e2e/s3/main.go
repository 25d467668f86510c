// SPDX-License-Identifier: Apache-2.0

// Command s3 is the S3 server of the lab: buckets are folders, and there is one account, whose keys are files as in the Secret of
// spec.backup.profiles[].storage.s3.secretName. It is for tests: nothing is synced to the disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/s3/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "s3: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o gateway.Options
	f := flag.NewFlagSet("s3", flag.ContinueOnError)
	f.StringVar(&o.Data, "data", "/data/objects", "folder with the buckets")
	f.StringVar(&o.Meta, "meta", "/data/meta", "folder for what belongs to the objects")
	f.StringVar(&o.Address, "address", ":9000", "address to listen on")
	f.StringVar(&o.RateFile, "rate-file", "", "file with what all clients together may send, in bytes a second; empty: as much as they can")
	credentials := f.String("credentials", "/etc/s3/credentials", "folder with the files "+v1alpha1.BackupAccessKeyID+" and "+v1alpha1.BackupSecretKey)
	certificates := f.String("tls", "/etc/s3/tls", "folder with the files tls.crt and tls.key; empty: no TLS")
	buckets := f.String("buckets", "backups", "buckets to make, by commas")
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	var err error
	if o.AccessKey, err = key(*credentials, v1alpha1.BackupAccessKeyID); err != nil {
		return err
	}
	if o.SecretKey, err = key(*credentials, v1alpha1.BackupSecretKey); err != nil {
		return err
	}
	if *certificates != "" {
		o.CertFile, o.KeyFile = filepath.Join(*certificates, "tls.crt"), filepath.Join(*certificates, "tls.key")
	}
	o.Buckets = strings.Split(*buckets, ",")
	return gateway.Run(ctx, o)
}

func key(dir, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("read the account: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
