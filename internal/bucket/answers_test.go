// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testSecret = "a-secret-key-of-the-test"

// answering is a bucket behind a server that gives one answer to everything, in the form of S3.
func answering(t *testing.T, status int, code string) *Bucket {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>it says
			%s and %s</Message></Error>`, code, testSecret, strings.Repeat("much ", 500))
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "accessKeyID"), []byte("AKIATEST12345"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "secretAccessKey"), []byte(testSecret), 0o600))
	b := open(t, Config{
		S3:        &S3{Bucket: "backups", Region: "us-east-1", Endpoint: s.URL},
		Namespace: "shop", Group: "orders", CredentialsDir: dir, CAFile: filepath.Join(dir, "ca.crt"),
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return b
}

func TestAnswers(t *testing.T) {
	for code, tc := range map[string]struct {
		status int
		want   Kind
	}{
		"AccessDenied": {403, AccessDenied}, "SignatureDoesNotMatch": {403, AccessDenied}, "ExpiredToken": {400, AccessDenied},
		"NoSuchBucket": {404, NoSuchBucket}, "RequestTimeTooSkewed": {403, ClockSkew}, "XMinioStorageFull": {507, Full},
		"QuotaExceeded": {403, Full}, "Unheard": {507, Full}, "AlsoUnheard": {403, AccessDenied}, "SomethingElse": {400, Other},
	} {
		t.Run(code, func(t *testing.T) {
			err := answering(t, tc.status, code).put(t.Context(), "a/b", []byte("x"), true)
			wantKind(t, err, tc.want)
			if strings.Contains(err.Error(), testSecret) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 900 {
				t.Errorf("%q shows a secret, or is too long", err)
			}
		})
	}
}

func TestNoDeleteRight(t *testing.T) {
	wantKind(t, answering(t, 403, "AccessDenied").Delete(t.Context(), "monday"), NoDeleteRight)
}

// What the caller ended is told as such, and can be told apart.
func TestInterrupted(t *testing.T) {
	b, _ := place(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.put(ctx, "a", []byte("x"), false)
	if wantKind(t, err, Interrupted); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not tell that the context was canceled", err)
	}
}
