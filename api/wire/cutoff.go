// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// PathPITRCutoff is where the archiver of a group asks the operator what may go from the archive, and what each epoch began with.
const PathPITRCutoff = "/pitr-cutoff"

const (
	// MaxCutoffEpochs is how many epochs a Cutoff tells of, the newest.
	MaxCutoffEpochs = 64
	// MaxCutoffBackups is how many backups a Cutoff names.
	MaxCutoffBackups = 256
	// MaxCutoffBytes bounds the answer to GET /pitr-cutoff: everything is in it twice, once signed.
	MaxCutoffBytes = 512 << 10
)

// Cutoff is what the archiver of a group needs of the operator. It is true for the moment in which it was made; an older one prunes less,
// and knows of fewer epochs.
type Cutoff struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	// Cutoff is when the oldest backup that is kept was begun, or earlier while one is being made. Backup is its name, and GTIDExecuted are the
	// transactions that every backup that is kept holds. What lies wholly before both may go from the archive. Without Cutoff nothing may.
	Cutoff       *time.Time `json:"cutoff,omitempty"`
	Backup       string     `json:"backup,omitempty"`
	GTIDExecuted string     `json:"gtidExecuted,omitempty"`
	// Backups are the names of all backups that are kept, at most MaxCutoffBackups, if the operator does not know what each of them holds. Then
	// GTIDExecuted is empty, and the archiver reads it from their manifests in the storage.
	Backups []string `json:"backups,omitempty"`
	// Epoch is the present one, and Site the site that is active under it, or about to be.
	Epoch int64  `json:"epoch"`
	Site  string `json:"site,omitempty"`
	// Epochs are those that the operator remembers, at most MaxCutoffEpochs, the newest first. An epoch whose beginning is not known, or
	// whose site has not passed its promotion gate yet, is not among them.
	Epochs []CutoffEpoch `json:"epochs"`
	// Keys is how the key that signs follows from those before it, as in a Statement.
	Keys Chain `json:"keys,omitempty"`
}

// CutoffEpoch is how an epoch began.
type CutoffEpoch struct {
	Epoch int64  `json:"epoch"`
	Site  string `json:"site"`
	// ServerUUID is that of the site's server at its promotion; empty if it is not known any more. Two epochs one after the other of the
	// same server lost nothing between them, whatever their sets say.
	ServerUUID string    `json:"serverUUID,omitempty"`
	PromotedAt time.Time `json:"promotedAt"`
	// Kind is Bootstrap, Emergency, Planned or Forced.
	Kind string `json:"kind"`
	// GTIDExecuted is what the site had when it was promoted. What another site had beyond it is lost.
	GTIDExecuted string `json:"gtidExecuted"`
}

// CutoffAnswer is the answer to GET /pitr-cutoff: the Cutoff for people, and the same signed with the group's key for the archiver, which
// believes nothing else. What it does on this word cannot be undone, and the way to the operator is plain HTTP.
type CutoffAnswer struct {
	Cutoff
	Signed string `json:"signed,omitempty"`
}

// ErrCutoff says that an answer to GET /pitr-cutoff is not the word of the group's operator.
var ErrCutoff = errors.New("the cutoff is not signed by the group's authority")

// cutoffPurpose keeps a signed Cutoff apart from everything else that is signed with the same key.
const cutoffPurpose = "mysql-mfg.io/pitr-cutoff"

type signedCutoff struct {
	Purpose string `json:"purpose"`
	Cutoff
}

// SignCutoff signs a Cutoff with the group's private key.
func SignCutoff(key ed25519.PrivateKey, c Cutoff) (string, error) {
	body, err := json.Marshal(signedCutoff{Purpose: cutoffPurpose, Cutoff: c})
	if err != nil {
		return "", fmt.Errorf("encode cutoff: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, nil)
	if err != nil {
		return "", fmt.Errorf("make signer: %w", err)
	}
	jws, err := signer.Sign(body)
	if err != nil {
		return "", fmt.Errorf("sign cutoff: %w", err)
	}
	return jws.CompactSerialize()
}

// OpenCutoff reads the body of an answer for one who trusts anchor and asked for this group.
func OpenCutoff(anchor ed25519.PublicKey, namespace, group string, body []byte) (Cutoff, error) {
	if len(body) > MaxCutoffBytes {
		return Cutoff{}, fmt.Errorf("%w: it is longer than %d bytes", ErrCutoff, MaxCutoffBytes)
	}
	var answer CutoffAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return Cutoff{}, fmt.Errorf("%w: %w", ErrCutoff, err)
	}
	jws, err := jose.ParseSignedCompact(answer.Signed, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Cutoff{}, fmt.Errorf("%w: %w", ErrCutoff, err)
	}
	// What is read here is not believed: a chain proves itself, and names the key that the whole must be signed by.
	var claimed struct {
		Keys Chain `json:"keys"`
	}
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), &claimed); err != nil {
		return Cutoff{}, fmt.Errorf("%w: %w", ErrCutoff, err)
	}
	key, trusted := claimed.Keys.Last(anchor)
	if !trusted {
		return Cutoff{}, fmt.Errorf("%w: nothing leads from the trusted key %s to the one that signs", ErrCutoff, KeyID(anchor))
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return Cutoff{}, fmt.Errorf("%w: %w", ErrCutoff, err)
	}
	var c signedCutoff
	switch err := json.Unmarshal(payload, &c); {
	case err != nil:
		return Cutoff{}, fmt.Errorf("%w: %w", ErrCutoff, err)
	case c.Purpose != cutoffPurpose:
		return Cutoff{}, fmt.Errorf("%w: it was signed for something else", ErrCutoff)
	case c.Namespace != namespace || c.Group != group:
		return Cutoff{}, fmt.Errorf("%w: it is that of another group", ErrCutoff)
	case len(c.Epochs) > MaxCutoffEpochs:
		return Cutoff{}, fmt.Errorf("%w: it tells of more than %d epochs", ErrCutoff, MaxCutoffEpochs)
	case len(c.Backups) > MaxCutoffBackups:
		return Cutoff{}, fmt.Errorf("%w: it names more than %d backups", ErrCutoff, MaxCutoffBackups)
	}
	return c.Cutoff, nil
}
