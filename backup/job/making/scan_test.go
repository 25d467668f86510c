// SPDX-License-Identifier: Apache-2.0

package making

import (
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

const stream = "-- MySQL dump\n\nSET @@SESSION.SQL_LOG_BIN= 0;\n" +
	"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '6301addd-e83a-11f1-97ee-02fc00000001:1-3:tag:5,\n7301addd-e83a-11f1-97ee-02fc00000001:1';\n\n" +
	"USE `a``b`;\nCREATE TABLE `x` (\n  `id` int\n);\nLOCK TABLES `x` WRITE;\n/*!40000 ALTER TABLE `x` DISABLE KEYS */;\n" +
	"INSERT INTO `x` (`V(`, `b`) VALUES (1,'x);,(\\'\\\\\\n'),(2,NULL),(3,'it''s (');\nINSERT INTO `x` VALUES (4,0x29);\n" +
	"/*!40000 ALTER TABLE `x` ENABLE KEYS */;\nUNLOCK TABLES;\nDELIMITER ;;\nCREATE TRIGGER BEGIN\nINSERT INTO `x` VALUES (1);\nLOCK TABLES `no` WRITE;\nEND;;\nDELIMITER ;\n" +
	"USE `c;\nd`;\nLOCK TABLES `VALUES` WRITE;\nINSERT INTO `VALUES` VALUES ('(');\nUNLOCK TABLES;\nLOCK TABLES `empty` WRITE;\nUNLOCK TABLES;\n"

func scanned(t *testing.T, text string, piece int) *scanner {
	t.Helper()
	s := &scanner{}
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := s.Write([]byte(text[:n])); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	return s
}

// named is a dump of objects whose names, texts and bodies hold lines like those of a dump, and of one table more.
const named = "DROP TABLE IF EXISTS `t`;\n/*!50503 SET character_set_client = utf8mb4 */;\nCREATE TABLE `t` (\n  `a\nDELIMITER x` int COMMENT 'it''s\nLOCK TABLES `ghost` WRITE;\n\\'',\n" +
	"  `b;\nSET @@GLOBAL.GTID_PURGED='x:1';\n-- Dump completed\n` int DEFAULT (_utf8mb4'\\'\nUSE `n`;\n')\n) ENGINE=InnoDB;\n/*!50001 CREATE VIEW `t\nDELIMITER x` AS SELECT \n 1 AS `b\nUSE `*/;\n" +
	"/*!50003 SET sql_mode              = 'ANSI_QUOTES' */ ;\nDELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a;;\n`@`b`*/ /*!50003 TRIGGER BEGIN\n-- it's\n# it's \"\n/* ;;\nDELIMITER ;\n" +
	"LOCK TABLES `ghost` WRITE;\nit's **/SET @a = 1--1, @b = 'x;;\nDELIMITER ;\nUSE `n`;', @c = 2/**/*3;\nSELECT /*+ it's */ 1 AS\nDELIMITER ;\nSET @@GLOBAL.GTID_PURGED=@a;\nEND */;;\nDELIMITER ;\n" +
	"/*!50003 SET sql_mode              = 'NO_BACKSLASH_ESCAPES' */ ;\nDELIMITER ;;\nCREATE PROCEDURE p() SELECT '\\' ;;\nDELIMITER ;\n/*!50003 SET sql_mode              = @saved_sql_mode */ ;\n" +
	"DELIMITER ;;\n/*!50003 SET sql_mode              = 'NO_BACKSLASH_ESCAPES' */ ;;\n/*!50106 CREATE EVENT DO SELECT '\\' */ ;;\n/*!50003 SET sql_mode              = @saved_sql_mode */ ;;\nDELIMITER ;\n" +
	"CREATE TABLE `u` (`x\n` int COMMENT '\\'');\nLOCK TABLES `t` WRITE;\n/*!40000 ALTER TABLE `t` DISABLE KEYS */;\nINSERT INTO `t` VALUES (1),(2);\nUNLOCK TABLES;\n"

// No name, text or body passes for a statement of mysqldump. MySQL writes line breaks in names as they are.
func TestScannerTakesNothingFromNames(t *testing.T) {
	want := []terms.TableRows{{Schema: "c;\nd", Table: "t", Rows: 2}}
	for _, piece := range []int{1, 2, 3, 7, 31, 32, 33, 1 << 20} {
		s := scanned(t, stream+named+"-- Dump completed\n", piece)
		if _, err := s.complete(); err != nil {
			t.Fatalf("in pieces of %d: %v", piece, err)
		}
		if got := s.tables[3:]; !slices.Equal(want, got) {
			t.Errorf("in pieces of %d: %v", piece, got)
		}
	}
}

// However the stream is cut, the same is read of it.
func TestScanner(t *testing.T) {
	for _, piece := range []int{1, 2, 3, 7, 31, 32, 33, 1 << 20} {
		s := scanned(t, stream+"-- Dump completed\n", piece)
		set, err := s.complete()
		if err != nil {
			t.Fatalf("in pieces of %d: %v", piece, err)
		}
		if set.Count() != 5 {
			t.Errorf("in pieces of %d: %s", piece, set)
		}
		want := []terms.TableRows{{Schema: "a`b", Table: "x", Rows: 4}, {Schema: "c;\nd", Table: "VALUES", Rows: 1}, {Schema: "c;\nd", Table: "empty", Rows: 0}}
		if !slices.Equal(want, s.tables) {
			t.Errorf("in pieces of %d: %v", piece, s.tables)
		}
	}
}

// A stream without its last line, or with one that is not the last, is no dump.
func TestScannerIncomplete(t *testing.T) {
	for name, text := range map[string]string{
		"cut":        stream,
		"no end":     stream + "-- Dump compl",
		"goes on":    stream + "-- Dump completed\nINSERT INTO `x` VALUES (1);\n",
		"no GTIDs":   "-- Dump completed\n",
		"bad GTIDs":  "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'x:1';\n-- Dump completed\n",
		"two sets":   stream + "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '';\n-- Dump completed\n",
		"in a name":  "USE `a\n-- Dump completed\n",
		"in a text":  stream + "CREATE TABLE `a` (`b` int COMMENT 'x\n-- Dump completed\n",
		"in a body":  stream + "DELIMITER ;;\nCREATE PROCEDURE p() SELECT 1;\n-- Dump completed\n",
		"in a value": strings.Replace(stream, "'it''s ('", "'\n-- Dump completed\n", 1),
	} {
		s := &scanner{}
		_, _ = s.Write([]byte(text))
		if _, err := s.complete(); err == nil {
			t.Errorf("%s: taken for a dump", name)
		}
	}
	// A last line without its newline is whole.
	if _, err := scanned(t, stream+"-- Dump completed", 5).complete(); err != nil {
		t.Error(err)
	}
}

func TestRolesFirst(t *testing.T) {
	got := rolesFirst([]string{"a", "b", "c", "d"}, map[string][]string{"a": {"c"}, "c": {"d", "unknown"}})
	if text := strings.Join(got, " "); text != "d c a b" {
		t.Error(text)
	}
}

func BenchmarkScanner(b *testing.B) {
	row := "(12345,'" + strings.Repeat("abcdefghij", 20) + "',NULL,0x" + strings.Repeat("FF", 50) + "),"
	text := []byte("LOCK TABLES `x` WRITE;\nINSERT INTO `x` VALUES " + strings.TrimSuffix(strings.Repeat(row, 3000), ",") + ";\n")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := &scanner{}
		_, _ = s.Write(text)
	}
}
