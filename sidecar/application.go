// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/mysql-mfg/mfg/internal/mysql/application"
)

// applicationStatements make the account of the group's application along with the data directory. A fault in it prevents no start:
// the operator says that the account is not there.
func applicationStatements(dir string, log *slog.Logger) []string {
	account, is, err := application.Read(dir)
	if err != nil {
		log.Warn("the data directory is made without the account of the application", "error", err)
	}
	if !is {
		return nil
	}
	return application.Statements(account)
}
