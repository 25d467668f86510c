// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

// MySQL's error numbers.
const (
	numberReused  = 3638
	numberNotFree = 3141
)

// server runs SQL in the pod of a site.
type server struct{ mysqlclient.Server }

// account is what a server knows of the account.
type account struct {
	exists, retained, open bool
	sessions               int
}

// look asks as root.
func (s server) look(ctx context.Context, rootPassword, user string) (account, error) {
	said, err := s.Run(ctx, mysqlclient.Root, rootPassword, lookStatement(user))
	if err != nil {
		return account{}, err
	}
	fields := strings.Fields(said)
	if len(fields) != 4 {
		return account{}, fmt.Errorf("mysql in pod %s answered %q, not four numbers", s.Pod, escape.Text(said))
	}
	var n [4]int
	for i, f := range fields {
		if n[i], err = strconv.Atoi(f); err != nil {
			return account{}, fmt.Errorf("mysql in pod %s answered %q, not four numbers", s.Pod, escape.Text(said))
		}
	}
	return account{exists: n[0] > 0, retained: n[1] > 0, open: n[2] == 0, sessions: n[3]}, nil
}

const (
	// attributeRetained is where MySQL keeps the older one of two passwords.
	attributeRetained = "User_attributes->>'$.additional_password' IS NOT NULL"
	// lock keeps two people from doing this at once.
	lock = "mfg_app_password"
)

func lookStatement(user string) string {
	return "SELECT COUNT(*), COALESCE(SUM(" + attributeRetained + "), 0), @@GLOBAL.read_only, (SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = " + mysqlclient.Quote(user) + ")" +
		" FROM mysql.user WHERE User = " + mysqlclient.Quote(user) + " AND Host = '%'"
}

// introduceStatements gives the account a password beside its present one. An earlier statement fails unless it has exactly one: with two, MySQL would
// end the older. The lock keeps out other sessions of ours.
func introduceStatements(user, password string) []string {
	free := "GET_LOCK('" + lock + "', 5) = 1 AND (SELECT COUNT(*) FROM mysql.user WHERE User = " + mysqlclient.Quote(user) + " AND Host = '%' AND NOT (" + attributeRetained + ")) = 1"
	return []string{
		"SET SESSION sql_mode = ''", // backslashes are escapes
		"DO CAST(IF(" + free + ", '0', 'the account has two passwords') AS JSON)",
		"ALTER USER " + mysqlclient.Quote(user) + "@'%' IDENTIFIED BY " + mysqlclient.Quote(password) + " RETAIN CURRENT PASSWORD",
	}
}

// ownStatements makes a password the account's primary one. The other stays beside it.
func ownStatements(user, password string) []string {
	return []string{"SET SESSION sql_mode = ''", "ALTER USER " + mysqlclient.Quote(user) + "@'%' IDENTIFIED BY " + mysqlclient.Quote(password)}
}

// discardStatement ends the older password.
func discardStatement(user string) string {
	return "ALTER USER " + mysqlclient.Quote(user) + "@'%' DISCARD OLD PASSWORD"
}
