// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// verifier holds the files of a release against each other. It takes nothing from the one that built them but the files.
type verifier struct {
	dir, helm string
	key       *ecdsa.PublicKey
	log       io.Writer

	// What earlier steps have found out: the sums of all files, the version, the commit, the registry, and the digests of images.
	sums                      map[string]string
	version, commit, registry string
	digests                   map[string]string
	// programs is what the programs in images and archives are made of, by the name of their bill of materials.
	programs map[string]*buildinfo.BuildInfo
}

// verify runs all steps, in order: each may use what the former ones have proven. It stops at the first that fails.
func (v *verifier) verify(ctx context.Context) error {
	v.digests, v.programs = map[string]string{}, map[string]*buildinfo.BuildInfo{}
	for _, s := range []struct {
		what string
		do   func() error
	}{
		{"checksums of all files, and none beside them", v.checkSums},
		{"signatures", v.checkSignatures},
		{"provenance: every file and image is a subject of it", v.checkProvenance},
		{"images: both architectures, programs of that commit, licences, no root", v.checkImages},
		{"archives of the plugin: programs of that commit, licences; and the manifest of Krew", v.checkPlugin},
		{"bills of materials name the modules that are in the programs", v.checkBills},
		{"charts: images by digest, rendered by helm", func() error { return v.checkCharts(ctx) }},
		{"install.yaml: every field is one that its type has", v.checkManifest},
	} {
		if s.what == "signatures" && v.key == nil {
			fmt.Fprintln(v.log, "NOT verified: signatures, because no key was given")
			continue
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("verify %s: %w", s.what, err)
		}
		fmt.Fprintf(v.log, "verified: %s\n", s.what)
	}
	return nil
}

func (v *verifier) read(name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(v.dir, name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// checkSums: each file has the sum that is written, and each has one.
func (v *verifier) checkSums() error {
	text, err := v.read(sumsFile)
	if err != nil {
		return err
	}
	v.sums = map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !found || name != filepath.Base(name) || v.sums[name] != "" {
			return fmt.Errorf("%s has the line %q", sumsFile, line)
		}
		v.sums[name] = sum
	}
	files, err := filesOf(v.dir)
	if err != nil {
		return err
	}
	if listed := slices.Sorted(maps.Keys(v.sums)); !slices.Equal(listed, files) {
		return fmt.Errorf("listed are %v, and there are %v", listed, files)
	}
	for _, name := range files {
		sum, err := sumOf(filepath.Join(v.dir, name))
		if err != nil {
			return err
		}
		if sum != v.sums[name] {
			return fmt.Errorf("%s has the sum %s, and %s was written", name, sum, v.sums[name])
		}
	}
	return nil
}

func (v *verifier) checkSignatures() error {
	sums, err := v.read(sumsFile)
	if err != nil {
		return err
	}
	sig, err := v.read(signatureFile)
	if err != nil {
		return err
	}
	if err := check(v.key, sums, string(sig)); err != nil {
		return fmt.Errorf("%s: %w", sumsFile, err)
	}
	text, err := v.read(envelopeFile)
	if err != nil {
		return err
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("read %s: %w", envelopeFile, err)
	}
	if e.PayloadType != inTotoType || len(e.Signatures) != 1 {
		return fmt.Errorf("%s has the type %q and %d signatures", envelopeFile, e.PayloadType, len(e.Signatures))
	}
	if err := check(v.key, authenticated(e.PayloadType, e.Payload), e.Signatures[0].Sig); err != nil {
		return fmt.Errorf("%s: %w", envelopeFile, err)
	}
	plain, err := v.read(provenanceFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(plain, e.Payload) {
		return fmt.Errorf("%s and %s say different things", provenanceFile, envelopeFile)
	}
	return nil
}

// checkProvenance: its subjects are all files but itself, with their sums; and it says what the other steps compare with.
func (v *verifier) checkProvenance() error {
	text, err := v.read(provenanceFile)
	if err != nil {
		return err
	}
	var s statement
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("read %s: %w", provenanceFile, err)
	}
	if s.Type != statementType || s.PredicateType != provenanceType {
		return fmt.Errorf("it is a %q about %q", s.Type, s.PredicateType)
	}
	build := s.Predicate.BuildDefinition
	v.commit, v.digests = "", map[string]string{}
	v.version, v.registry = build.ExternalParameters["version"], build.ExternalParameters["registry"]
	for _, dep := range build.ResolvedDependencies {
		if commit := dep.Digest["gitCommit"]; commit != "" {
			v.commit = commit
		}
	}
	if v.version == "" || v.registry == "" || len(v.commit) != 40 {
		return fmt.Errorf("it says version %q, registry %q and commit %q", v.version, v.registry, v.commit)
	}
	want := maps.Clone(v.sums)
	delete(want, provenanceFile)
	for _, one := range s.Subject {
		if program, is := strings.CutPrefix(one.Name, v.registry+"/"); is {
			v.digests[program] = "sha256:" + one.Digest["sha256"]
			continue
		}
		if want[one.Name] != one.Digest["sha256"] {
			return fmt.Errorf("it says %v of %s, whose sum is %q", one.Digest, one.Name, want[one.Name])
		}
		delete(want, one.Name)
	}
	if len(want) > 0 {
		return fmt.Errorf("it says nothing of %v", slices.Sorted(maps.Keys(want)))
	}
	return nil
}

// checkStamp: a program was compiled of the commit and nothing else, the way that releases are, for its platform.
func (v *verifier) checkStamp(info *buildinfo.BuildInfo, on platform) error {
	stamped := map[string]string{}
	for _, s := range info.Settings {
		stamped[s.Key] = s.Value
	}
	var wrong []error
	for key, want := range map[string]string{
		"vcs.revision": v.commit, "vcs.modified": "false", "GOOS": on.os, "GOARCH": on.arch, "CGO_ENABLED": "0", "-trimpath": "true",
	} {
		if stamped[key] != want {
			wrong = append(wrong, fmt.Errorf("it is stamped with %s=%q, and %q is right", key, stamped[key], want))
		}
	}
	if info.Main.Path != module {
		wrong = append(wrong, fmt.Errorf("it is of the module %q", info.Main.Path))
	}
	return errors.Join(wrong...)
}
