// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// numberAccessDenied is MySQL's error for an account or a password that it refuses.
const numberAccessDenied = 1045

// hidingAccounts lists accounts that may hide ours: of all hosts that fit, MySQL takes the most specific, and then refuses our password.
const hidingAccounts = "SELECT user, host FROM mysql.user WHERE (LEFT(user, 4) = 'mfg_' OR user = '') AND host <> '%'"

// Refusal explains a MySQL of a site that answers and cannot be queried; empty for every other error.
func Refusal(group types.NamespacedName, site string, err error) string {
	why := mysql.Refusal(err)
	if why == "" {
		return ""
	}
	why = "the operator cannot ask its MySQL: " + why
	if refused, ok := errors.AsType[*driver.MySQLError](err); ok && refused.Number == numberAccessDenied {
		why += fmt.Sprintf(`; an account with the name of ours, or with none, may hide ours: see them with kubectl mfg mysql %s %s -n %s -e "%s", `+
			"and DROP USER each on the active site; a site that was added again may have a volume from before passwords were replaced (docs/updates.md)", group.Name, site, group.Namespace, hidingAccounts)
	}
	return why
}
