// SPDX-License-Identifier: Apache-2.0

// Package s3test tries internal/bucket against a real S3 server, that of e2e/s3/gateway, in a process of its own, under TLS with its own
// certificate authority.
package s3test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/s3/gateway"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

const (
	accessKey  = "AKIAIOSFODNN7EXAMPLE"
	secretKey  = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	bucketName = "backups"
	// envServe and envUpload turn the test's program into the server, or into an upload that is going to be killed.
	envServe  = "S3TEST_SERVE"
	envUpload = "S3TEST_UPLOAD"
	// envRate names the file with the rate of a server that can be slowed.
	envRate = "S3TEST_RATE"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envServe) != "":
		fmt.Fprintln(os.Stderr, serve(os.Getenv(envServe), os.Getenv("S3TEST_ADDRESS")))
		os.Exit(1)
	case os.Getenv(envUpload) != "":
		fmt.Fprintln(os.Stderr, uploadForever(os.Getenv(envUpload)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve runs the server until it is killed.
func serve(dir, address string) error {
	return gateway.Run(context.Background(), gateway.Options{
		Data: filepath.Join(dir, "data"), Meta: filepath.Join(dir, "meta"), Address: address, AccessKey: accessKey, SecretKey: secretKey,
		CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), RateFile: os.Getenv(envRate),
	})
}

// server is one that runs, with the folder where it keeps the objects.
type server struct {
	dir, data, address string
	process            *os.Process
	// rateFile is set for one that can be slowed.
	rateFile string
}

// start runs a server that keeps its objects in data; an empty one is a folder of its own.
func start(t *testing.T, data string) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	s.data = filepath.Join(s.dir, "data")
	must(t, os.Mkdir(filepath.Join(s.dir, "secret"), 0o700))
	if data == "" {
		must(t, os.Mkdir(s.data, 0o700))
	} else {
		must(t, os.Symlink(data, s.data))
		s.data = data
	}
	must(t, os.Mkdir(filepath.Join(s.data, bucketName), 0o700))
	writeCertificates(t, s.dir)
	s.credentials(t, accessKey, secretKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.address = listener.Addr().String()
	must(t, listener.Close())
	s.run(t)
	return s
}

func (s *server) run(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envServe+"="+s.dir, "S3TEST_ADDRESS="+s.address, envRate+"="+s.rateFile)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	s.process = cmd.Process
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done; _ = log.Close() })
	for range 300 {
		if c, err := net.DialTimeout("tcp", s.address, time.Second); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	raw, _ := os.ReadFile(log.Name())
	t.Fatalf("the server does not listen: %s", raw)
}

func (s *server) credentials(t *testing.T, id, secret string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(s.dir, "secret", "accessKeyID"), []byte(id+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, "secret", "secretAccessKey"), []byte(secret+"\n"), 0o600))
}

func configOf(dir, address string) bucket.Config {
	return bucket.Config{
		S3:     &bucket.S3{Bucket: bucketName, Region: "us-east-1", Endpoint: "https://" + address},
		Prefix: "some/where", Namespace: "shop", Group: "orders", CredentialsDir: filepath.Join(dir, "secret"), CAFile: filepath.Join(dir, "ca.crt"),
	}
}

func (s *server) open(t *testing.T, change func(*bucket.Config)) *bucket.Bucket {
	t.Helper()
	c := configOf(s.dir, s.address)
	if change != nil {
		change(&c)
	}
	b, err := bucket.Open(t.Context(), c)
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// uploadForever begins a backup and never ends it; it says so once enough of it has been uploaded.
func uploadForever(arguments string) error {
	dir, address := filepath.Split(arguments)
	ctx := context.Background()
	b, err := bucket.Open(ctx, configOf(dir, address))
	if err != nil {
		return err
	}
	w, err := b.Create(ctx, bucket.NewBackup{Name: "killed", UID: "u1", Now: time.Now()})
	if err != nil {
		return err
	}
	rows, err := w.Part(ctx, "rows")
	if err != nil {
		return err
	}
	if _, err := rows.Write([]byte("{}")); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	p, err := w.Part(ctx, "data")
	if err != nil {
		return err
	}
	if _, err := io.CopyN(p, rand.Reader, 100<<20); err != nil {
		return err
	}
	fmt.Println("uploaded")
	time.Sleep(time.Hour)
	return nil
}

func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caRaw, err := x509.CreateCertificate(rand.Reader, template, template, &caKey.PublicKey, caKey)
	must(t, err)
	ca, err := x509.ParseCertificate(caRaw)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: template.NotBefore, NotAfter: template.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(t, err)
	keyRaw, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.crt": {Type: "CERTIFICATE", Bytes: caRaw}, "tls.crt": {Type: "CERTIFICATE", Bytes: raw}, "tls.key": {Type: "PRIVATE KEY", Bytes: keyRaw},
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
