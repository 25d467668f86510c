// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

func statusCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes and what is broken on purpose",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "" && format != "json" {
				return fmt.Errorf("unknown output format %q: json is the only one", format)
			}
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if format == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(st)
			}
			if err := printStatus(cmd.OutOrStdout(), st); err != nil || !st.Over {
				return err
			}
			return errors.New("none of the lab's programs is left (was the machine restarted?): `lab up` starts it anew")
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "output format: json")
	return cmd
}

func printStatus(out io.Writer, st cluster.Status) error {
	api := "ready"
	if !st.API {
		api = "NOT READY"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "Lab:\t%s (%s)\nAPI server:\t%s\nKubeconfig:\t%s\n\n", st.Dir, st.Phase, api, st.Kubeconfig)
	_, _ = fmt.Fprintln(w, "NODE\tIP\tPODS\tREADY\tLAB")
	for _, n := range st.Nodes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\n", n.Name, n.IP, n.PodCIDR, n.Ready, faults(n))
	}
	for _, d := range st.Drops {
		_, _ = fmt.Fprintf(w, "\ncut: %s -> %s", d.From, d.To)
	}
	if len(st.Drops) > 0 {
		_, _ = fmt.Fprintln(w)
	}
	if len(st.Dead) > 0 {
		_, _ = fmt.Fprintf(w, "\nEnded by themselves: %s (see %s/logs)\n", strings.Join(st.Dead, ", "), st.Dir)
	}
	return w.Flush()
}

func faults(n cluster.NodeStatus) string {
	var words []string
	for _, f := range []struct {
		on   bool
		word string
	}{{n.Killed, "killed"}, {n.Cut, "cut"}, {n.Paused, "paused"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	if words == nil {
		return "-"
	}
	return strings.Join(words, ",")
}
