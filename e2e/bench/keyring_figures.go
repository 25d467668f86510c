// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// keyringFigures are the output of `make bench-keyring`. Seconds and rates are said in the names.
type keyringFigures struct {
	Machine machine `json:"machine"`
	// Commit is that of the last run; each part has its own beside it.
	Commit     string               `json:"commit"`
	BringUp    *bringUpFigures      `json:"bringUp,omitempty"`
	Rotation   *rotationFigures     `json:"rotation,omitempty"`
	Throughput *throughputFigures   `json:"throughput,omitempty"`
	Failovers  []failoverComparison `json:"failovers,omitempty"`
	// FailedParts are those that could not be measured when they were tried last, and why.
	FailedParts []string `json:"failedParts,omitempty"`
	// Against is all that is not within its target, was not measured, or is of another commit than the last run.
	Against []string `json:"against,omitempty"`
	// WithinTarget is true if there is nothing of that.
	WithinTarget bool `json:"withinTarget"`
}

// origin says of what and when a part was measured.
type origin struct {
	Commit     string    `json:"commit"`
	MeasuredAt time.Time `json:"measuredAt"`
}

// bringUpFigures are of a new group: from `kubectl apply` until every site is sealed.
type bringUpFigures struct {
	origin
	AppliedToSealedSeconds float64      `json:"appliedToSealedSeconds"`
	Sites                  []siteSteps  `json:"sites"`
	Target                 keyringLimit `json:"target"`
}

// rotationFigures are of one site, from the annotation until it is sealed again and the annotation is gone.
type rotationFigures struct {
	origin
	OrderedToAnsweredSeconds float64 `json:"orderedToAnsweredSeconds"`
	siteSteps
}

// siteSteps is when a site was first seen in each step, in seconds since it was asked for. Zero: it was not seen there.
type siteSteps struct {
	Site string `json:"site"`
	// UnsealedSeconds: status says so, and the pod is replaced. RotatingSeconds: the unsealed pod is ready, and its keys may
	// be rotated from now on.
	UnsealedSeconds float64 `json:"unsealedSeconds"`
	RotatingSeconds float64 `json:"rotatingSeconds,omitempty"`
	RotatedSeconds  float64 `json:"rotatedSeconds,omitempty"`
	// EscrowedSeconds is the first time; a new replica escrows again after its clone.
	EscrowedSeconds float64 `json:"escrowedSeconds"`
	SealingSeconds  float64 `json:"sealingSeconds"`
	SealedSeconds   float64 `json:"sealedSeconds"`
	// What lies between them. Work is all between the first escrow and sealing: the clone, and the calm before sealing.
	UnsealToEscrowSeconds float64       `json:"unsealToEscrowSeconds"`
	WorkSeconds           float64       `json:"workSeconds"`
	SealSeconds           float64       `json:"sealSeconds"`
	Steps                 []keyringStep `json:"steps"`
}

// keyringStep is one change that was seen in status.
type keyringStep struct {
	AtSeconds float64               `json:"atSeconds"`
	Phase     v1alpha1.KeyringPhase `json:"phase"`
	Work      v1alpha1.KeyringWork  `json:"work,omitempty"`
	Stage     v1alpha1.KeyringStage `json:"stage,omitempty"`
	Rotated   bool                  `json:"rotated,omitempty"`
	Version   int64                 `json:"version,omitempty"`
}

// throughputFigures compare what two groups take that differ in encryption only.
type throughputFigures struct {
	origin
	Connections int     `json:"connections"`
	RowBytes    int     `json:"rowBytes"`
	RunSeconds  float64 `json:"runSeconds"`
	// Rows are commits, one row each; medians of the runs.
	PlainRowsPerSecond     float64 `json:"plainRowsPerSecond"`
	EncryptedRowsPerSecond float64 `json:"encryptedRowsPerSecond"`
	EncryptedToPlainRatio  float64 `json:"encryptedToPlainRatio"`
	PlainStolenPercent     float64 `json:"plainStolenPercent"`
	EncryptedStolenPercent float64 `json:"encryptedStolenPercent"`
	// The tables are what was under load in the last runs, as the servers say.
	PlainTable     tableProof         `json:"plainTable"`
	EncryptedTable tableProof         `json:"encryptedTable"`
	Samples        []throughputSample `json:"samples"`
}

type throughputSample struct {
	Group         string  `json:"group"`
	RowsPerSecond float64 `json:"rowsPerSecond"`
	// P99CommitSeconds is how long a commit takes at most, but for one in a hundred.
	P99CommitSeconds float64 `json:"p99CommitSeconds"`
	// StolenPercent is how much of the machine's time its host gave to others from the warm-up to the end.
	StolenPercent float64 `json:"stolenPercent"`
}

// keyringLimit is a limit and what was measured.
type keyringLimit struct {
	Figure string  `json:"figure"`
	Limit  float64 `json:"limit"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
}

func limited(figure string, limit, got float64) keyringLimit {
	return keyringLimit{Figure: figure, Limit: limit, Got: got, Met: got <= limit}
}

const (
	// sealedLimit is from apply until three new sites are sealed.
	sealedLimit = 240.0
	// slowerLimit is how much longer a pause may be with encryption.
	slowerLimit = 1.1

	armPlain     = "plain"
	armEncrypted = "encrypted"
)

// mark fills in when each step was seen first.
func (s *siteSteps) mark() {
	first := func(is func(keyringStep) bool) float64 {
		i := slices.IndexFunc(s.Steps, is)
		if i < 0 {
			return 0
		}
		return s.Steps[i].AtSeconds
	}
	s.UnsealedSeconds = first(func(k keyringStep) bool { return k.Phase == v1alpha1.KeyringUnsealed })
	s.RotatingSeconds = first(func(k keyringStep) bool { return k.Stage == v1alpha1.KeyringRotating })
	s.RotatedSeconds = first(func(k keyringStep) bool { return k.Rotated && k.Phase != v1alpha1.KeyringSealed })
	s.EscrowedSeconds = first(func(k keyringStep) bool { return k.Phase == v1alpha1.KeyringEscrowed })
	if sealed := len(s.Steps) - 1; sealed >= 0 && s.Steps[sealed].Phase == v1alpha1.KeyringSealed {
		// The last time: sealing is taken back if the keyring changes.
		for sealed > 0 && s.Steps[sealed-1].Phase == v1alpha1.KeyringSealed && s.Steps[sealed-1].AtSeconds > s.EscrowedSeconds {
			sealed-- // what follows is that the order is forgotten
		}
		s.SealedSeconds = s.Steps[sealed].AtSeconds
		for i := sealed - 1; i >= 0 && s.Steps[i].Stage == v1alpha1.KeyringSealing; i-- {
			s.SealingSeconds = s.Steps[i].AtSeconds
		}
	}
	s.UnsealToEscrowSeconds = round(s.EscrowedSeconds - s.UnsealedSeconds)
	s.WorkSeconds = round(s.SealingSeconds - s.EscrowedSeconds)
	s.SealSeconds = round(s.SealedSeconds - s.SealingSeconds)
}

// sum fills in the medians.
func (f *throughputFigures) sum() {
	rates, stolen := map[string][]float64{}, map[string][]float64{}
	for _, s := range f.Samples {
		rates[s.Group], stolen[s.Group] = append(rates[s.Group], s.RowsPerSecond), append(stolen[s.Group], s.StolenPercent)
	}
	f.PlainRowsPerSecond, f.EncryptedRowsPerSecond = percentile(rates[armPlain], 50), percentile(rates[armEncrypted], 50)
	f.EncryptedToPlainRatio = ratio(f.EncryptedRowsPerSecond, f.PlainRowsPerSecond)
	f.PlainStolenPercent, f.EncryptedStolenPercent = percentile(stolen[armPlain], 50), percentile(stolen[armEncrypted], 50)
}

// read takes over what a file says; one that is not there says nothing.
func (f *keyringFigures) read(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read figures: %w", err)
	}
	if err := json.Unmarshal(raw, f); err != nil {
		return fmt.Errorf("read figures of %s: %w", path, err)
	}
	return nil
}

// forgive forgets that a part failed, since it is measured again. Until then it counts, also in a file that others are
// merged into.
func (f *keyringFigures) forgive(part string) {
	f.FailedParts = slices.DeleteFunc(f.FailedParts, func(text string) bool { return strings.HasPrefix(text, part+": ") })
}
