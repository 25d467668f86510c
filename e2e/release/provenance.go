// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	// buildType is the page that says what the parameters of the build mean. builderID says who built: this program, on a machine
	// that nobody vouches for. The workflow of releases has GitHub attest beside it, as a builder of its own.
	buildType = "https://" + module + "/blob/main/docs/releasing.md#provenance"
	builderID = "https://" + module + "/blob/main/docs/releasing.md#the-builder"
)

// statement is what in-toto calls one, with the predicate of SLSA.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []dependency      `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
		Metadata struct {
			StartedOn string `json:"startedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
}

// provenance says of which commit, by which Go and with which certificates all files and images were made.
func (p *plan) provenance(digests map[string]string) error {
	authorities, err := sumOf(p.authorities)
	if err != nil {
		return fmt.Errorf("read the authorities: %w", err)
	}
	s := statement{Type: statementType, PredicateType: provenanceType}
	files, err := filesOf(p.out)
	if err != nil {
		return err
	}
	for _, name := range files {
		sum, err := sumOf(filepath.Join(p.out, name))
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, subject{name, map[string]string{"sha256": sum}})
	}
	for _, program := range imagePrograms {
		s.Subject = append(s.Subject, subject{p.registry + "/" + program, map[string]string{"sha256": strings.TrimPrefix(digests[program], "sha256:")}})
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = buildType
	d.ExternalParameters = map[string]string{"repository": "https://" + module, "version": p.version, "registry": p.registry}
	d.InternalParameters = map[string]string{"go": runtime.Version()}
	d.ResolvedDependencies = []dependency{
		{"git+https://" + module + "@" + p.commit, map[string]string{"gitCommit": p.commit}},
		{"file:///" + authoritiesPath, map[string]string{"sha256": authorities}},
	}
	s.Predicate.RunDetails.Builder.ID = builderID
	// The time of the commit: that of the run would be the one byte that differs between two runs.
	s.Predicate.RunDetails.Metadata.StartedOn = p.created.Format(time.RFC3339)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the provenance: %w", err)
	}
	return os.WriteFile(filepath.Join(p.out, provenanceFile), append(text, '\n'), 0o644)
}

// unsummed are the files that the sums cannot hold: themselves, and what is made of them.
var unsummed = []string{sumsFile, signatureFile, publicKeyFile, envelopeFile, "SHA256SUMS.sigstore.json"}

// filesOf lists the files of a release in the order of their names, without those that are unsummed.
func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a file", e.Name())
		}
		if !slices.Contains(unsummed, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// writeSums writes SHA256SUMS, as sha256sum --check reads it.
func writeSums(dir string) error {
	names, err := filesOf(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range names {
		sum, err := sumOf(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}
