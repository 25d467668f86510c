// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billFile is the name of a program's bill of materials, in CycloneDX. An image holds its program, licences and the certificates
// of authorities and nothing else, so that it needs no other one.
func billFile(program, tag string, on platform) string {
	return program + "_" + tag + "_" + on.String() + ".cdx.json"
}

// bills writes a bill of materials for every program, from what Go stamped it with: that of what is published, not of what go.mod says.
func (p *plan) bills() error {
	authorities, err := sumOf(p.authorities)
	if err != nil {
		return fmt.Errorf("read the authorities: %w", err)
	}
	return p.each(func(program string, on platform) error {
		info, err := buildinfo.ReadFile(p.binary(program, on))
		if err != nil {
			return fmt.Errorf("read what %s is made of: %w", program, err)
		}
		bom := bill(program, p.version, info, p.created)
		if slices.Contains(imagePrograms, program) {
			*bom.Components = append(*bom.Components, cdx.Component{
				BOMRef: "file:" + authoritiesPath, Type: cdx.ComponentTypeFile, Name: "/" + authoritiesPath,
				Description: "Certificates of public authorities, in the image beside the program",
				Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: authorities}},
			})
		}
		return writeBill(filepath.Join(p.out, billFile(program, p.tag, on)), bom)
	})
}

// bill is made of the modules in a program, and of Go itself.
func bill(program, version string, info *buildinfo.BuildInfo, when time.Time) *cdx.BOM {
	sum := sha256.Sum256([]byte(info.String()))
	// A UUID that is the same for the same program, of the version for what somebody computes (RFC 9562, 8).
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	bom := cdx.NewBOM()
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	self := purl(info.Main.Path, info.Main.Version)
	bom.Metadata = &cdx.Metadata{
		Timestamp: when.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: self, Type: cdx.ComponentTypeApplication, Name: program, Version: version, PackageURL: self,
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cdx.Component{component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		components = append(components, component(d))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Components = &components
	// Which module needs which is not stamped: all are said to be needed by the program.
	bom.Dependencies = &[]cdx.Dependency{{Ref: self, Dependencies: &refs}}
	return bom
}

func component(m *debug.Module) cdx.Component {
	c := cdx.Component{BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version)}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "mfg:go:sum", Value: m.Sum}}
	}
	return c
}

// purl names a module as vulnerability databases do.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + url.PathEscape(version)
}

func writeBill(path string, bom *cdx.BOM) error {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a bill: %w", err)
	}
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		_ = out.Close()
		return fmt.Errorf("write a bill: %w", err)
	}
	return out.Close()
}
