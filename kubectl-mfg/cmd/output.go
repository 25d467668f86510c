// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Outputs that are ours; all others are kubectl's.
const (
	outputScreen = ""
	outputWide   = "wide"
	outputName   = "name"
	outputTree   = "tree"
)

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

var colors = []string{colorAuto, colorAlways, colorNever}

// output is how an answer is written.
type output struct {
	Format  string
	printer printers.ResourcePrinter // nil for our own formats
}

// addOutputFlag adds --output with kubectl's formats and those given.
func addOutputFlag(cmd *cobra.Command, own ...string) func() (output, error) {
	flags := genericclioptions.NewPrintFlags("")
	flags.NamePrintFlags = nil // would print the report's kind instead of the group's
	flags.TemplatePrinterFlags.AddFlags(cmd)
	formats := slices.Concat(own, flags.JSONYamlPrintFlags.AllowedFormats(), flags.TemplatePrinterFlags.AllowedFormats())
	cmd.Flags().StringVarP(flags.OutputFormat, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	flags.OutputFlagSpecified = func() bool { return cmd.Flag("output").Changed }
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return func() (output, error) {
		format := *flags.OutputFormat
		ours := format == outputScreen && *flags.TemplatePrinterFlags.TemplateArgument == ""
		if ours || slices.Contains(own, format) {
			return output{Format: format}, nil
		}
		if known, _, _ := strings.Cut(format, "="); format != outputScreen && !slices.Contains(formats, known) {
			return output{}, usage("unknown output format %q, allowed are: %s", format, strings.Join(formats, ", "))
		}
		printer, err := flags.TemplatePrinterFlags.ToPrinter(orTemplate(format))
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			printer, err = flags.JSONYamlPrintFlags.ToPrinter(format)
		}
		if err != nil {
			return output{}, usage("output format %q: %w", format, err)
		}
		return output{Format: format, printer: printer}, nil
	}
}

// orTemplate: as in kubectl, --template alone means a Go template.
func orTemplate(format string) string {
	if format == outputScreen {
		return "go-template"
	}
	return format
}

// machine is true for the formats that programs read, in which a failure is reported too.
func (o output) machine() bool { return o.printer != nil || o.Format == outputJUnit }

// print writes any report in one of kubectl's formats, or as JUnit where it can be.
func (o output) print(w io.Writer, reports any) error {
	if suite, can := reports.(interface{ JUnit() ([]byte, error) }); can && o.Format == outputJUnit {
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
	if err := o.printer.PrintObj(&unstructured.Unstructured{Object: content}, w); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

// groupName is how kubectl names a group, so that the output of -o name can be given back to it.
func groupName(name string) string {
	return "mysqlfailovergroup." + v1alpha1.GroupVersion.Group + "/" + name
}

// bareName takes a group as people and kubectl write it: orders, mfg/orders, mysqlfailovergroup.mysql-mfg.io/orders.
func bareName(arg string) (string, error) {
	kind, name, both := strings.Cut(arg, "/")
	if !both {
		return arg, nil
	}
	kind, _, _ = strings.Cut(strings.TrimSuffix(kind, "."+v1alpha1.GroupVersion.Group), ".")
	if !slices.Contains([]string{"mfg", "mysqlfailovergroup", resource}, strings.ToLower(kind)) {
		return "", usage("%q is no group: expected GROUP or mfg/GROUP", arg)
	}
	return name, nil
}

// colored decides about colour. The flag wins over the environment, the environment over the terminal.
func colored(flag string, env Environment) bool {
	switch flag {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	_, terminal := env.Terminal()
	return terminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
}
