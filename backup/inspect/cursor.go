// SPDX-License-Identifier: Apache-2.0

package inspect

// cursor reads fields of an event. Behind the end it reads zeros, and says so once by bad: so no field of a malformed event can panic.
type cursor struct {
	b   []byte
	bad bool
}

// take is the next n bytes; nil if there are fewer.
func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.b) {
		c.bad, c.b = true, nil
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

// little is a number of n bytes, at most 8, the lowest first.
func (c *cursor) little(n int) uint64 { return little(c.take(n)) }

func little(b []byte) uint64 {
	var v uint64
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// big is a number of n bytes, at most 8, the highest first.
func big(b []byte) uint64 {
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// packed is a number as MySQL packs it: below 251 as it is, else a marker and two, three or eight bytes.
func (c *cursor) packed() uint64 {
	switch first := c.little(1); first {
	case 0xfc:
		return c.little(2)
	case 0xfd:
		return c.little(3)
	case 0xfe:
		return c.little(8)
	case 0xfb, 0xff:
		c.bad, c.b = true, nil
		return 0
	default:
		return first
	}
}

// length is packed as a length that what is left can have.
func (c *cursor) length() int {
	n := c.packed()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return 0
	}
	return int(n)
}

// bit is the bit i of a bitmap, the lowest first; false behind its end.
func bit(bitmap []byte, i int) bool {
	return i>>3 < len(bitmap) && bitmap[i>>3]&(1<<(i&7)) != 0
}

func bitmapBytes(n int) int { return (n + 7) / 8 }

func countBits(bitmap []byte, n int) (set int) {
	for i := range n {
		if bit(bitmap, i) {
			set++
		}
	}
	return set
}
