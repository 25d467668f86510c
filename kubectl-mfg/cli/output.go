// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
)

// OutputJUnit is the format that CI systems read.
const OutputJUnit = "junit"

// Outputs that are ours; all others are kubectl's.
const (
	OutputScreen = ""
	OutputWide   = "wide"
	OutputName   = "name"
	OutputTree   = "tree"
)

// OutputYAML is kubectl's format too, but written by a YAML.
const OutputYAML = "yaml"

// YAML prints objects as kubectl's printer does, whatever characters their texts hold. The zero value is ready for use.
type YAML struct{ printed int }

// PrintObj writes an object, and before each but the first one the line that ends a document.
func (p *YAML) PrintObj(object runtime.Object, w io.Writer) error {
	text, err := escape.YAML(object)
	if err != nil {
		return err
	}
	if p.printed++; p.printed > 1 {
		text = append([]byte("---\n"), text...)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// Values of --color.
const (
	ColorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// Colors are the values of --color.
var Colors = []string{ColorAuto, colorAlways, colorNever}

// Output says how to write an answer.
type Output struct {
	Format  string
	Printer printers.ResourcePrinter // nil for our own formats
}

// Machine is true for the formats that programs read, in which a failure is reported too.
func (o Output) Machine() bool { return o.Printer != nil || o.Format == OutputJUnit }

// Print writes any report in one of kubectl's formats, or as JUnit if possible.
func (o Output) Print(w io.Writer, reports any) error {
	w = escape.Exact(w)
	if suite, can := reports.(interface{ JUnit() ([]byte, error) }); can && o.Format == OutputJUnit {
		xml, err := suite.JUnit()
		if err != nil {
			return err
		}
		if _, err := w.Write(xml); err != nil {
			return fmt.Errorf("print report: %w", err)
		}
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(reports)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := o.Printer.PrintObj(&unstructured.Unstructured{Object: content}, w); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// Colored decides about colour. The flag wins over the environment, the environment over the terminal.
func Colored(flag string, env Environment) bool {
	switch flag {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	_, terminal := env.Terminal()
	return terminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
}
