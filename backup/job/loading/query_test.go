// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// A person who may write the query of a verification reads nothing of the data in its errors, which are in the status of the MysqlBackup: MySQL quotes values in them,
// as in SELECT EXTRACTVALUE(1, CONCAT('~', (SELECT ...))). What is wrong with the query itself is told.
func TestAQueryTellsNoData(t *testing.T) {
	for number, tells := range map[uint16]bool{
		1064: true, 1146: true, 1054: true, 1105: false /* XPATH syntax error: '~...' */, 1292: false /* Truncated incorrect DOUBLE value: '...' */, 1690: false, 3141: false,
	} {
		err := queryError(fmt.Errorf("query: %w", &driver.MySQLError{Number: number, Message: "it quotes 'a value'"}))
		if strings.Contains(err.Error(), "a value") != tells || !strings.Contains(err.Error(), fmt.Sprint(number)) {
			t.Errorf("error %d: %v", number, err)
		}
	}
	if other := errors.New("no connection"); queryError(other) != other || queryError(nil) != nil { //nolint:errorlint // the very same
		t.Error("other errors are not told")
	}
}
