// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"fmt"
	"slices"
	"strings"
)

// seen is what the Secret and the active site say.
type seen struct {
	// Secret is true if there is a Secret of the account, and Ours if this command made it and its password can be used.
	Secret, Ours bool
	// Exists is true if the active site has the account, Accepts if it lets it in with the password of the Secret.
	Exists, Accepts bool
	// Open is true if the active site accepts changes.
	Open bool
	// PartialRevokes is how the server reads names of databases in a GRANT.
	PartialRevokes bool
	// Databases are those of the wanted ones that the active site has.
	Databases []string
}

// why says in words why something is refused, and what to do; the group's command line completes the words.
type why string

const (
	whyNotOpen   why = "the active site takes no changes at the moment\n  see why: kubectl mfg status %[1]s -n %[2]s"
	whyNotOurs   why = "there is a Secret mysql-%[1]s-readonly already, and this command did not make it, or its password was taken off it\n  log in with it: kubectl mfg mysql %[1]s -n %[2]s --account readonly\n  or remove it and its account yourself"
	whyAccount   why = "MySQL has an account readonly already, and no Secret has its password\n  if you do not need it, drop it, and create it again: kubectl mfg account drop %[1]s -n %[2]s"
	whyDatabases why = "the active site has no such database: "
	whyNoneNamed why = "the group has no application (spec.application), so nothing says what the account may read\n  name a database: kubectl mfg account create %[1]s -n %[2]s --database DATABASE"
)

func (w why) of(group, namespace string) string { return fmt.Sprintf(string(w), group, namespace) }

// creation says why the account is not made; empty if it may be. It may be asked again after any crash: the Secret has the password before MySQL
// does, so that it is never lost.
func creation(s seen, databases []string) why {
	switch {
	case s.Secret && !s.Ours:
		return whyNotOurs // its password, or its user, may be that of something else
	case s.Exists && !s.Secret:
		return whyAccount // another password would lock out those who have the present one
	case !s.Open:
		return whyNotOpen
	}
	var missing []string
	for _, d := range databases {
		if !slices.Contains(s.Databases, d) {
			missing = append(missing, d)
		}
	}
	if len(missing) > 0 {
		return whyDatabases + why(strings.ReplaceAll(strings.Join(missing, ", "), "%", "%%")) + "\n  see those that there are: kubectl mfg mysql %[1]s -n %[2]s -e 'SHOW DATABASES'"
	}
	return ""
}

// removal says why the account is not dropped; empty if it may be.
func removal(s seen) why {
	switch {
	case s.Secret && !s.Ours:
		return whyNotOurs
	case !s.Open:
		return whyNotOpen
	}
	return ""
}

// systemDatabases are MySQL's own: what they have of accounts and of other sessions is not for everybody.
var systemDatabases = []string{"mysql", "sys", "information_schema", "performance_schema"}

// maxDatabase is how many characters the name of a database may have.
const maxDatabase = 64

// checkDatabase says why a database cannot be given to the account.
func checkDatabase(name string) error {
	switch {
	case slices.Contains(systemDatabases, strings.ToLower(name)):
		return fmt.Errorf("--database %s: the database is MySQL's own, and shows accounts and statements of others", name)
	case name == "", len([]rune(name)) > maxDatabase, strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("`\\/", r) }):
		return fmt.Errorf("--database %q: a name has 1 to %d characters of printable ASCII, without ` \\ and /", name, maxDatabase)
	}
	return nil
}
