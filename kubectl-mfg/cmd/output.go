// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// addOutputFlag adds --output with kubectl's formats and those given.
func addOutputFlag(cmd *cobra.Command, own ...string) func() (cli.Output, error) {
	flags := genericclioptions.NewPrintFlags("")
	flags.NamePrintFlags = nil // would print the report's kind instead of the group's
	flags.TemplatePrinterFlags.AddFlags(cmd)
	formats := slices.Concat(own, flags.JSONYamlPrintFlags.AllowedFormats(), flags.TemplatePrinterFlags.AllowedFormats())
	cmd.Flags().StringVarP(flags.OutputFormat, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	flags.OutputFlagSpecified = func() bool { return cmd.Flag("output").Changed }
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return func() (cli.Output, error) {
		format := *flags.OutputFormat
		ours := format == cli.OutputScreen && *flags.TemplatePrinterFlags.TemplateArgument == ""
		if ours || slices.Contains(own, format) {
			return cli.Output{Format: format}, nil
		}
		if known, _, _ := strings.Cut(format, "="); format != cli.OutputScreen && !slices.Contains(formats, known) {
			return cli.Output{}, cli.Usage("unknown output format %q, allowed are: %s", format, strings.Join(formats, ", "))
		}
		printer, err := flags.TemplatePrinterFlags.ToPrinter(orTemplate(format))
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			printer, err = flags.JSONYamlPrintFlags.ToPrinter(format)
		}
		if format == cli.OutputYAML {
			printer = &cli.YAML{}
		}
		if err != nil {
			return cli.Output{}, cli.Usage("output format %q: %w", format, err)
		}
		return cli.Output{Format: format, Printer: printer}, nil
	}
}

// orTemplate: as in kubectl, --template alone means a Go template.
func orTemplate(format string) string {
	if format == cli.OutputScreen {
		return "go-template"
	}
	return format
}

// bareName takes a group as people and kubectl write it: orders, mfg/orders, mysqlfailovergroup.mysql-mfg.io/orders.
func bareName(arg string) (string, error) {
	kind, name, both := strings.Cut(arg, "/")
	if !both {
		return arg, nil
	}
	kind, _, _ = strings.Cut(strings.TrimSuffix(kind, "."+v1alpha1.GroupVersion.Group), ".")
	if !slices.Contains([]string{"mfg", "mysqlfailovergroup", cli.Resource}, strings.ToLower(kind)) {
		return "", cli.Usage("%q is no group: expected GROUP or mfg/GROUP", arg)
	}
	return name, nil
}
