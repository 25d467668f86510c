// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// nodeVerb is one command on one node.
type nodeVerb struct {
	name, short string
	run         func(*cluster.Cluster, context.Context, string) error
}

func nodeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Break a node, or mend it"}
	for _, v := range []nodeVerb{
		{"cut", "Take the node's cable out: nothing comes in, nothing goes out", (*cluster.Cluster).CutNode},
		{"heal", "Put the node's cable back", (*cluster.Cluster).HealNode},
		{"pause", "Stop every process of every container (SIGSTOP); kubelet goes on", (*cluster.Cluster).PauseNode},
		{"resume", "Let the containers of a paused node go on (SIGCONT)", (*cluster.Cluster).ResumeNode},
		{"pause-kubelet", "Stop the node's kubelet (SIGSTOP); containers go on", (*cluster.Cluster).PauseKubelet},
		{"resume-kubelet", "Let a paused kubelet go on (SIGCONT)", (*cluster.Cluster).ResumeKubelet},
		{"kill", "Loss of power: silent and at once; only the disk survives", (*cluster.Cluster).KillNode},
		{"start", "Boot a killed node", (*cluster.Cluster).StartNode},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: v.name + " NODE", Short: v.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := cluster.Open("")
				if err != nil {
					return err
				}
				return v.run(c, cmd.Context(), args[0])
			},
		})
	}
	return cmd
}

func netCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "net",
		Short: "Cut pairs of places off from each other",
		Long: `Cuts pairs of places off from each other, silently: packets vanish, also those of open
connections. A place is a node, "client" (a network namespace to run clients in), "host"
(the control plane, and whatever runs on this machine outside the nodes) or "all" (every
other place).`,
	}
	var oneWay bool
	cut := &cobra.Command{
		Use: "cut A B", Short: "Drop everything between A and B", Args: cobra.ExactArgs(2),
		Example: "  lab net cut east west\n  lab net cut east all\n  lab net cut east host --one-way",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			return c.CutNet(cmd.Context(), args[0], args[1], oneWay)
		},
	}
	cut.Flags().BoolVar(&oneWay, "one-way", false, "drop only what A sends to B")
	heal := &cobra.Command{
		Use: "heal [A B]", Short: "Take back the cuts between A and B, or all cuts",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			switch len(args) {
			case 0:
				return c.HealAllNet(cmd.Context())
			case 2:
				return c.HealNet(cmd.Context(), args[0], args[1])
			}
			return errors.New("name two places, or none to heal all")
		},
	}
	cmd.AddCommand(cut, heal)
	return cmd
}
