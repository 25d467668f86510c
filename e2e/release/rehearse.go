// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// rehearse makes a release as it would be published, and does with it what its users do.
func rehearse(ctx context.Context, p *plan) error {
	if err := build(ctx, p); err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	if err := sign(p.out, key); err != nil {
		return err
	}
	v := verifier{dir: p.out, helm: p.helm, key: &key.PublicKey, log: p.log}
	if err := v.verify(ctx); err != nil {
		return err
	}
	if err := byOthers(ctx, p.out, p.log); err != nil {
		return err
	}
	if err := p.throughRegistry(ctx); err != nil {
		return err
	}
	fmt.Fprintf(p.log, "rehearsed %s of commit %s: %s\n", p.tag, p.commit, p.out)
	return nil
}

// byOthers has the sums and their signature verified by programs that are not ours, where they are installed.
func byOthers(ctx context.Context, dir string, log io.Writer) error {
	if _, err := exec.LookPath("sha256sum"); err == nil {
		if _, err := output(ctx, dir, "sha256sum", "--check", "--strict", "--quiet", sumsFile); err != nil {
			return err
		}
		fmt.Fprintln(log, "verified: sha256sum agrees with the sums")
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		fmt.Fprintln(log, "NOT verified by openssl, which is not installed")
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, signatureFile))
	if err != nil {
		return fmt.Errorf("read the signature: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("read the signature: %w", err)
	}
	sig, err := os.CreateTemp("", "mfg-sig-")
	if err != nil {
		return fmt.Errorf("write the signature: %w", err)
	}
	defer func() { _ = os.Remove(sig.Name()) }()
	if _, err := sig.Write(raw); err != nil {
		return fmt.Errorf("write the signature: %w", err)
	}
	if err := sig.Close(); err != nil {
		return fmt.Errorf("write the signature: %w", err)
	}
	if _, err := output(ctx, dir, "openssl", "dgst", "-sha256", "-verify", publicKeyFile, "-signature", sig.Name(), sumsFile); err != nil {
		return err
	}
	fmt.Fprintln(log, "verified: openssl agrees with the signature")
	return nil
}

// throughRegistry pushes images and charts to a registry in this process, and looks whether what comes back is what was built:
// the images by the library, the charts by helm.
func (p *plan) throughRegistry(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	blobs, err := os.MkdirTemp(filepath.Dir(p.out), ".registry-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(blobs) }()
	server := &http.Server{
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	to := target{registry: listener.Addr().String() + "/mysql-mfg", plain: true}
	if err := push(ctx, io.Discard, p.out, to); err != nil {
		return err
	}
	for _, program := range imagePrograms {
		if err := p.pullImage(ctx, to, program); err != nil {
			return fmt.Errorf("pull %s: %w", program, err)
		}
	}
	for _, chart := range charts {
		if err := p.pullChart(ctx, to, chart); err != nil {
			return fmt.Errorf("pull the chart %s: %w", chart, err)
		}
	}
	fmt.Fprintln(p.log, "verified: images and charts come back from a registry as they were built")
	return nil
}

func (p *plan) pullImage(ctx context.Context, from target, program string) error {
	dir, err := os.MkdirTemp("", "mfg-pull-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_, entry, err := openLayout(filepath.Join(p.out, imageArchive(program, p.tag)), dir)
	if err != nil {
		return err
	}
	// By digest, as the chart names it.
	ref, err := name.NewDigest(from.registry+"/"+program+"@"+entry.Digest.String(), name.Insecure)
	if err != nil {
		return err
	}
	index, err := remote.Index(ref, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	return validate.Index(index)
}

func (p *plan) pullChart(ctx context.Context, from target, chart string) error {
	dir, err := os.MkdirTemp("", "mfg-pull-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := runHelm(ctx, p.helm, dir, "pull", "oci://"+from.registry+"/"+chartPath+"/"+chart, "--version", p.version, "--plain-http", "--destination", dir); err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(dir, chartFile(chart, p.version)))
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(p.out, chartFile(chart, p.version)))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("helm pulled other bytes than were packaged")
	}
	return nil
}
