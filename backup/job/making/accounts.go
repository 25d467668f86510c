// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// accountsMax and statementsMax bound what is kept in memory of accounts.
const (
	accountsMax   = 100000
	statementsMax = 64 << 20
)

// readAccounts tells the accounts and roles of users as statements that make them beside ours: hashes of passwords in hexadecimal, those
// that are granted to others first, then what is granted. root, those of MySQL itself and ours are left out: they are this group's.
func readAccounts(ctx context.Context, conn *sql.Conn) ([]string, error) {
	if err := mysqld.Run(ctx, conn, "SET SESSION print_identified_with_as_hex = ON"); err != nil {
		return nil, err
	}
	names, err := accountNames(ctx, conn)
	if err != nil {
		return nil, err
	}
	var makes, grants []string
	size := 0
	for _, name := range names {
		create, err := mysqld.Texts(ctx, conn, "SHOW CREATE USER "+name)
		if err != nil {
			return nil, fmt.Errorf("read account: %w", err)
		}
		for _, statement := range create {
			makes = append(makes, strings.Replace(statement, "CREATE USER ", "CREATE USER IF NOT EXISTS ", 1))
			size += len(statement)
		}
		granted, err := mysqld.Texts(ctx, conn, "SHOW GRANTS FOR "+name)
		if err != nil {
			return nil, fmt.Errorf("read what is granted to an account: %w", err)
		}
		for _, statement := range granted {
			size += len(statement)
		}
		if grants = append(grants, granted...); size > statementsMax {
			return nil, errors.New("the accounts of the site are more than can be kept in memory")
		}
	}
	return append(makes, grants...), nil
}

// accountNames are the names of users' accounts, quoted, each after those that are granted to it: its default roles must be there when
// it is made.
func accountNames(ctx context.Context, conn *sql.Conn) ([]string, error) {
	ours := append(mysql.OwnAccounts(), "root", "mysql.sys", "mysql.session", "mysql.infoschema")
	args := make([]any, len(ours))
	for i, name := range ours {
		args[i] = name
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(ours)), ", ")
	// QUOTE quotes as sql_mode '' reads it.
	names, err := mysqld.Texts(ctx, conn, "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user WHERE user NOT IN ("+marks+") ORDER BY 1", args...)
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	if len(names) > accountsMax {
		return nil, fmt.Errorf("the site has %d accounts, more than the %d that a backup takes", len(names), accountsMax)
	}
	edges, err := mysqld.Texts(ctx, conn, "SELECT CONCAT(QUOTE(from_user), '@', QUOTE(from_host), '\\n', QUOTE(to_user), '@', QUOTE(to_host)) FROM mysql.role_edges ORDER BY 1")
	if err != nil {
		return nil, fmt.Errorf("list roles: %w", err)
	}
	granted := map[string][]string{}
	for _, edge := range edges {
		role, to, _ := strings.Cut(edge, "\n")
		granted[to] = append(granted[to], role)
	}
	return rolesFirst(names, granted), nil
}

// rolesFirst sorts names so that each comes after those that are granted to it. MySQL allows no circle.
func rolesFirst(names []string, granted map[string][]string) []string {
	var out []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, role := range granted[name] {
			visit(role)
		}
		if slices.Contains(names, name) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		visit(name)
	}
	return out
}
