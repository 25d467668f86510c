// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"unicode/utf8"
)

// charsets are the character sets by the numbers of their collations, each from and to. A test compares them with a server's.
var charsets = []struct {
	from, to uint64
	name     string
}{
	{1, 1, "big5"}, {2, 2, "latin2"}, {3, 3, "dec8"}, {4, 4, "cp850"}, {5, 5, "latin1"}, {6, 6, "hp8"}, {7, 7, "koi8r"}, {8, 8, "latin1"},
	{9, 9, "latin2"}, {10, 10, "swe7"}, {11, 11, "ascii"}, {12, 12, "ujis"}, {13, 13, "sjis"}, {14, 14, "cp1251"}, {15, 15, "latin1"},
	{16, 16, "hebrew"}, {18, 18, "tis620"}, {19, 19, "euckr"}, {20, 20, "latin7"}, {21, 21, "latin2"}, {22, 22, "koi8u"}, {23, 23, "cp1251"},
	{24, 24, "gb2312"}, {25, 25, "greek"}, {26, 26, "cp1250"}, {27, 27, "latin2"}, {28, 28, "gbk"}, {29, 29, "cp1257"}, {30, 30, "latin5"},
	{31, 31, "latin1"}, {32, 32, "armscii8"}, {33, 33, "utf8mb3"}, {34, 34, "cp1250"}, {35, 35, "ucs2"}, {36, 36, "cp866"}, {37, 37, "keybcs2"},
	{38, 38, "macce"}, {39, 39, "macroman"}, {40, 40, "cp852"}, {41, 42, "latin7"}, {43, 43, "macce"}, {44, 44, "cp1250"}, {45, 46, "utf8mb4"},
	{47, 49, "latin1"}, {50, 52, "cp1251"}, {53, 53, "macroman"}, {54, 55, "utf16"}, {56, 56, "utf16le"}, {57, 57, "cp1256"}, {58, 59, "cp1257"},
	{60, 61, "utf32"}, {62, 62, "utf16le"}, {63, 63, "binary"}, {64, 64, "armscii8"}, {65, 65, "ascii"}, {66, 66, "cp1250"}, {67, 67, "cp1256"},
	{68, 68, "cp866"}, {69, 69, "dec8"}, {70, 70, "greek"}, {71, 71, "hebrew"}, {72, 72, "hp8"}, {73, 73, "keybcs2"}, {74, 74, "koi8r"},
	{75, 75, "koi8u"}, {76, 76, "utf8mb3"}, {77, 77, "latin2"}, {78, 78, "latin5"}, {79, 79, "latin7"}, {80, 80, "cp850"}, {81, 81, "cp852"},
	{82, 82, "swe7"}, {83, 83, "utf8mb3"}, {84, 84, "big5"}, {85, 85, "euckr"}, {86, 86, "gb2312"}, {87, 87, "gbk"}, {88, 88, "sjis"},
	{89, 89, "tis620"}, {90, 90, "ucs2"}, {91, 91, "ujis"}, {92, 93, "geostd8"}, {94, 94, "latin1"}, {95, 96, "cp932"}, {97, 98, "eucjpms"},
	{99, 99, "cp1250"}, {101, 124, "utf16"}, {128, 151, "ucs2"}, {159, 159, "ucs2"}, {160, 183, "utf32"}, {192, 223, "utf8mb3"},
	{224, 247, "utf8mb4"}, {248, 250, "gb18030"}, {255, 400, "utf8mb4"},
}

// Words that are no character sets of a server.
const (
	noCharset     = ""        // bytes that are no text
	unsaidCharset = "unknown" // the log does not say it
)

// charsetOf is the character set of a collation.
func charsetOf(collation uint64) string {
	if collation == 0 {
		return unsaidCharset
	}
	for _, c := range charsets {
		if collation >= c.from && collation <= c.to {
			if c.name == "binary" {
				return noCharset
			}
			return c.name
		}
	}
	return unsaidCharset
}

func utf8Charset(name string) bool {
	return name == "utf8mb4" || name == "utf8mb3" || name == "ascii" || name == unsaidCharset
}

// plainUTF8 is true for text that can be written as it is.
func plainUTF8(raw []byte) bool { return utf8.Valid(raw) }

// identifier is the name of a table or column for SQL.
func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
