// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// What a dump says of databases and tables is changed, and nothing that a name, a text, a row or a body says, however the stream is cut.
func TestADumpMakesEncryptedTables(t *testing.T) {
	const dump = "-- it's\n--\n\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `a ENCRYPTION='N'` /*!40100 DEFAULT CHARACTER SET utf8mb4 */ /*!80016 DEFAULT ENCRYPTION=<N> */;\n\nUSE `a ENCRYPTION='N'`;\n" +
		"CREATE TABLE `t\nCREATE TABLE ENCRYPTION='N'` (\n  `x` int COMMENT 'ENCRYPTION=''N''' DEFAULT 'ENCRYPTION=\\'N\\''\n) ENGINE=InnoDB COMMENT='\n) ENCRYPTION=' /*!80016 ENCRYPTION=<N> */\n/*!50100 PARTITION BY */;\n" +
		"CREATE TABLE `y` (`x` int) /*!80016 ENCRYPTION='Y' */;\n/* ENCRYPTION='N' */;\n" +
		"INSERT INTO `t` VALUES ('a;\\'\\\\','ENCRYPTION=\\'N\\'');\nDELIMITER ;;\nCREATE PROCEDURE p() BEGIN\nCREATE TABLE t (x INT) ENCRYPTION='N';\nEND ;;\nDELIMITER ;\n" +
		"/*!50003 SET sql_mode              = 'NO_BACKSLASH_ESCAPES' */ ;\nDELIMITER ;;\nCREATE PROCEDURE p() SELECT '\\' ;;\nDELIMITER ;\n/*!50003 SET sql_mode              = @saved_sql_mode */ ;\n" +
		"CREATE TABLE `z` (`x` int COMMENT '\\'') /*!80016 ENCRYPTION=<N> */;\n-- ENCRYPTION='N'\n"
	in, want := strings.NewReplacer("<N>", "'N'").Replace(dump), strings.NewReplacer("<N>", "'Y'").Replace(dump)
	for name, reader := range map[string]io.Reader{"whole": strings.NewReader(in), "in bytes": iotest.OneByteReader(strings.NewReader(in))} {
		if got, err := io.ReadAll(&encrypting{in: reader}); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func BenchmarkEncrypting(b *testing.B) {
	text := "CREATE TABLE `x` (`x` int);\nINSERT INTO `x` VALUES " + strings.Repeat("(12345,'"+strings.Repeat("abcdefghij", 20)+"',NULL,0x"+strings.Repeat("FF", 50)+"),", 3000) + ";\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = io.Copy(io.Discard, &encrypting{in: strings.NewReader(text)})
	}
}
