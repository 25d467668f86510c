// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"k8s.io/apimachinery/pkg/types"
)

// TestARefusedPasswordNamesWhatHidesOurAccounts: MySQL takes an account of a narrower host for ours, at every site at once, and says no more than
// that the password is wrong.
func TestARefusedPasswordNamesWhatHidesOurAccounts(t *testing.T) {
	group := types.NamespacedName{Namespace: "shop", Name: "orders"}
	got := Refusal(group, "east", fmt.Errorf("read status: %w", &driver.MySQLError{Number: 1045}))
	want := `kubectl mfg mysql orders east -n shop -e "SELECT user, host FROM mysql.user WHERE (LEFT(user, 4) = 'mfg_' OR user = '') AND host <> '%'"`
	if !strings.Contains(got, "it refuses our password") || !strings.Contains(got, want) || !strings.Contains(got, "DROP USER") ||
		!strings.Contains(got, "docs/updates.md") {
		t.Errorf("told %q", got)
	}
	if got := Refusal(group, "east", fmt.Errorf("read status: %w", &driver.MySQLError{Number: 1040})); got != "" {
		t.Errorf("told %q", got)
	}
}
