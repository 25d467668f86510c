// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// packetMax is the largest payload of one packet; what is longer goes on in the next.
const packetMax = 1<<24 - 1

// commandMax is the size of the largest packet that is taken from a receiver: a set of GTIDs.
const commandMax = 8 << 20

// conn is one connection of a receiver, in MySQL's protocol, as far as a receiver uses it.
type conn struct {
	raw net.Conn
	in  *bufio.Reader
	out *bufio.Writer
	seq byte
}

var errProtocol = errors.New("the receiver speaks otherwise than it is known to")

func newConn(raw net.Conn) *conn {
	return &conn{raw: raw, in: bufio.NewReaderSize(raw, 16<<10), out: bufio.NewWriterSize(raw, 256<<10)}
}

// take reads one packet of bounded size.
func (c *conn) take() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if size > commandMax {
		return nil, fmt.Errorf("%w: a packet of %d bytes", errProtocol, size)
	}
	c.seq = head[3] + 1
	body := make([]byte, size)
	_, err := io.ReadFull(c.in, body)
	return body, err
}

// give writes one small packet, and sends what is written.
func (c *conn) give(body []byte) error {
	if err := c.begin(len(body)); err != nil {
		return err
	}
	if _, err := c.out.Write(body); err != nil {
		return err
	}
	return c.out.Flush()
}

// begin writes the header of a packet.
func (c *conn) begin(size int) error {
	head := [4]byte{byte(size), byte(size >> 8), byte(size >> 16), c.seq}
	c.seq++
	_, err := c.out.Write(head[:])
	return err
}

// event sends one event of a known size, in as many packets as it takes. Nothing is sent before the buffer is full; see flush.
func (c *conn) event(size int64, from io.Reader) error {
	left := size + 1 // a byte that says that all is well
	from = io.MultiReader(&okByte{}, from)
	for {
		n := min(left, packetMax)
		if err := c.begin(int(n)); err != nil {
			return err
		}
		if _, err := io.CopyN(c.out, from, n); err != nil {
			return err
		}
		if left -= n; n < packetMax {
			return nil
		}
	}
}

// okByte is a reader of one byte that is zero.
type okByte struct{ done bool }

func (o *okByte) Read(p []byte) (int, error) {
	if o.done || len(p) == 0 {
		return 0, io.EOF
	}
	p[0], o.done = 0, true
	return 1, nil
}

func (c *conn) ok() error { return c.give([]byte{0, 0, 0, 2, 0, 0, 0}) }

// fail answers with an error that a receiver takes for final.
func (c *conn) fail(text string) error {
	const fatal = 1236
	return c.give(append([]byte{0xff, fatal & 0xff, fatal >> 8, '#', 'H', 'Y', '0', '0', '0'}, text...))
}

// row answers with one row of one column.
func (c *conn) row(value string) error {
	eof := []byte{0xfe, 0, 0, 2, 0}
	column := []byte{3, 'd', 'e', 'f', 0, 0, 0, 1, 'v', 0, 0x0c, 0x21, 0, 0, 1, 0, 0, 0xfd, 0, 0, 0, 0, 0}
	for _, body := range [][]byte{{1}, column, eof, append([]byte{byte(len(value))}, value...), eof} {
		if err := c.give(body); err != nil {
			return err
		}
	}
	return nil
}

// Capabilities that a source offers: the protocol of today, and a login by plugin.
const (
	capLongPassword = 0x1
	capConnectDB    = 0x8
	capProtocol41   = 0x200
	capTransactions = 0x2000
	capSecure       = 0x8000
	capPluginAuth   = 0x80000
	capLenencAuth   = 0x200000
)

const plugin = "caching_sha2_password"

// login lets in who knows the password, and nobody else.
func (c *conn) login(version, user, password string) error {
	nonce := make([]byte, 20)
	_, _ = rand.Read(nonce)
	for i := range nonce { // it ends with a zero byte, and may have none in it
		nonce[i] = nonce[i]&0x7f | 0x01
	}
	caps := uint32(capLongPassword | capConnectDB | capProtocol41 | capTransactions | capSecure | capPluginAuth | capLenencAuth)
	hello := append([]byte{10}, version...)
	hello = append(hello, 0, 1, 0, 0, 0)
	hello = append(hello, nonce[:8]...)
	hello = append(hello, 0, byte(caps), byte(caps>>8), 0x21, 2, 0, byte(caps>>16), byte(caps>>24), 21)
	hello = append(hello, make([]byte, 10)...)
	hello = append(append(hello, nonce[8:]...), 0)
	hello = append(append(hello, plugin...), 0)
	if err := c.give(hello); err != nil {
		return err
	}
	answer, err := c.take()
	if err != nil {
		return err
	}
	name, proof, err := parseLogin(answer)
	if err != nil {
		return err
	}
	want := scramble(password, nonce)
	if subtle.ConstantTimeCompare([]byte(name), []byte(user))&subtle.ConstantTimeCompare(proof, want) != 1 {
		_ = c.fail("access denied")
		return errors.New("somebody else than the receiver wants in")
	}
	if err := c.give([]byte{1, 3}); err != nil { // the password is known here: no more is needed
		return err
	}
	return c.ok()
}

// parseLogin reads the name and the proof out of the answer to the greeting.
func parseLogin(answer []byte) (name string, proof []byte, err error) {
	const fixed = 32
	if len(answer) < fixed+2 || binary.LittleEndian.Uint32(answer)&capPluginAuth == 0 {
		return "", nil, errProtocol
	}
	rest := answer[fixed:]
	end := 0
	for end < len(rest) && rest[end] != 0 {
		end++
	}
	if end+1 >= len(rest) {
		return "", nil, errProtocol
	}
	name, rest = string(rest[:end]), rest[end+1:]
	n := int(rest[0])
	if n > len(rest)-1 || n > 250 {
		return "", nil, errProtocol
	}
	return name, rest[1 : 1+n], nil
}

// scramble is what a client proves by that it knows the password.
func scramble(password string, nonce []byte) []byte {
	one := sha256.Sum256([]byte(password))
	two := sha256.Sum256(one[:])
	h := sha256.New()
	h.Write(two[:])
	h.Write(nonce)
	out := h.Sum(nil)
	for i := range out {
		out[i] ^= one[i]
	}
	return out
}
