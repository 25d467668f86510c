// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Signatures are ECDSA over P-256 and SHA-256 in ASN.1, in base64, as cosign makes and verifies them with a key (cosign
// verify-blob --key) and as openssl does (openssl dgst -sha256 -verify). The sums are signed, and they stand for all files.
const (
	sumsFile       = "SHA256SUMS"
	signatureFile  = "SHA256SUMS.sig"
	publicKeyFile  = "rehearsal.pub"
	provenanceFile = "provenance.intoto.json"
	envelopeFile   = "provenance.intoto.dsse.json"
	inTotoType     = "application/vnd.in-toto+json"
)

var (
	errNoLayer   = errors.New("no such layer")
	errSignature = errors.New("the signature is not that of the key")
)

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func signatureOf(key *ecdsa.PrivateKey, text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return ecdsa.SignASN1(rand.Reader, key, sum[:])
}

func check(key *ecdsa.PublicKey, text []byte, signature string) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return fmt.Errorf("read the signature: %w", err)
	}
	sum := sha256.Sum256(text)
	if !ecdsa.VerifyASN1(key, sum[:], raw) {
		return errSignature
	}
	return nil
}

// envelope is the one of DSSE, in which statements of in-toto are signed.
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig string `json:"sig"`
}

// authenticated is what DSSE signs: type and content, each with its length before it.
func authenticated(kind string, payload []byte) []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(kind), kind, len(payload)), payload...)
}

// sign signs sums and provenance of a folder with a key, and leaves the public one beside them.
func sign(dir string, key *ecdsa.PrivateKey) error {
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return fmt.Errorf("read the sums: %w", err)
	}
	sig, err := signatureOf(key, sums)
	if err != nil {
		return fmt.Errorf("sign the sums: %w", err)
	}
	statement, err := os.ReadFile(filepath.Join(dir, provenanceFile))
	if err != nil {
		return fmt.Errorf("read the provenance: %w", err)
	}
	sealed, err := signatureOf(key, authenticated(inTotoType, statement))
	if err != nil {
		return fmt.Errorf("sign the provenance: %w", err)
	}
	text, err := json.Marshal(envelope{inTotoType, statement, []signature{{base64.StdEncoding.EncodeToString(sealed)}}})
	if err != nil {
		return fmt.Errorf("write the provenance: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	for name, content := range map[string][]byte{
		signatureFile: []byte(base64.StdEncoding.EncodeToString(sig)),
		envelopeFile:  text,
		publicKeyFile: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func readPublicKey(path string) (*ecdsa.PublicKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is not in PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if key, is := key.(*ecdsa.PublicKey); is {
		return key, nil
	}
	return nil, errors.New("the key is not one of ECDSA")
}
