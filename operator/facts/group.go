// SPDX-License-Identifier: Apache-2.0

package facts

import "cmp"

// Group names a group in commands. Commands say GROUP if the name is empty.
type Group struct{ Namespace, Name string }

// Command is a command of the plugin for this group; the site and the flags are left out if they are empty.
func (g Group) Command(verb, site, flags string) string {
	command := "kubectl mfg " + verb + " " + cmp.Or(g.Name, "GROUP")
	if site != "" {
		command += " " + site
	}
	if g.Namespace != "" {
		command += " -n " + g.Namespace
	}
	if flags != "" {
		command += " " + flags
	}
	return command
}
