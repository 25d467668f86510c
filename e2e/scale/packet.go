// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The part of MySQL's protocol that the operator's driver speaks: the handshake, TLS, caching_sha2_password with what the
// server has cached, text queries. What else comes is answered as MySQL answers it or ends the connection.

// Capabilities that both sides must have.
const (
	capLongPassword = 1 << 0
	capFoundRows    = 1 << 1
	capLongFlag     = 1 << 2
	capConnectDB    = 1 << 3
	capProtocol41   = 1 << 9
	capTLS          = 1 << 11
	capTransactions = 1 << 13
	capSecure       = 1 << 15
	capMultiResults = 1 << 17
	capPluginAuth   = 1 << 19
	capConnectAttrs = 1 << 20
	capAuthLenEnc   = 1 << 21
	capNoEOF        = 1 << 24

	capabilities = capLongPassword | capFoundRows | capLongFlag | capConnectDB | capProtocol41 | capTransactions | capSecure |
		capMultiResults | capPluginAuth | capConnectAttrs | capAuthLenEnc | capNoEOF
)

const (
	authPlugin    = "caching_sha2_password"
	serverVersion = "9.7.4"
	charsetUTF8   = 255
	typeText      = 0xfd
	statusOpen    = 2 // autocommit

	maxPacket = 1 << 20
)

var errProtocol = errors.New("the client does not speak as expected")

// packets reads and writes the packets of one connection. What is written is kept until flush.
type packets struct {
	conn net.Conn
	in   *bufio.Reader
	seq  byte
	body []byte
	out  []byte
}

func newPackets(conn net.Conn) *packets {
	return &packets{conn: conn, in: bufio.NewReaderSize(conn, 4096)}
}

// read returns the next packet; it is good until the next read.
func (p *packets) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if n > maxPacket {
		return nil, fmt.Errorf("%w: a packet of %d bytes", errProtocol, n)
	}
	if cap(p.body) < n {
		p.body = make([]byte, n)
	}
	p.body = p.body[:n]
	p.seq = head[3] + 1
	_, err := io.ReadFull(p.in, p.body)
	return p.body, err
}

// begin starts a packet and returns where it starts; end closes it.
func (p *packets) begin() int {
	p.out = append(p.out, 0, 0, 0, p.seq)
	p.seq++
	return len(p.out)
}

func (p *packets) end(start int) {
	n := len(p.out) - start
	p.out[start-4], p.out[start-3], p.out[start-2] = byte(n), byte(n>>8), byte(n>>16)
}

func (p *packets) write(payload ...byte) {
	start := p.begin()
	p.out = append(p.out, payload...)
	p.end(start)
}

func (p *packets) flush() error {
	_, err := p.conn.Write(p.out)
	p.out = p.out[:0]
	return err
}

func (p *packets) ok() { p.write(0, 0, 0, statusOpen, 0, 0, 0) }

func (p *packets) refuse(code uint16, state, message string) {
	start := p.begin()
	p.out = append(p.out, 0xff)
	p.out = binary.LittleEndian.AppendUint16(p.out, code)
	p.out = append(append(append(p.out, '#'), state...), message...)
	p.end(start)
}

// greeting is the server's first packet.
func (p *packets) greeting(connection uint32, nonce [20]byte, caps uint32) {
	start := p.begin()
	p.out = append(append(p.out, 10), serverVersion...)
	p.out = binary.LittleEndian.AppendUint32(append(p.out, 0), connection)
	p.out = append(append(p.out, nonce[:8]...), 0)
	p.out = binary.LittleEndian.AppendUint16(p.out, uint16(caps))
	p.out = append(p.out, charsetUTF8, statusOpen, 0)
	p.out = binary.LittleEndian.AppendUint16(p.out, uint16(caps>>16))
	p.out = append(p.out, byte(len(nonce)+1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	p.out = append(append(p.out, nonce[8:]...), 0)
	p.out = append(append(p.out, authPlugin...), 0)
	p.end(start)
}

// login is what a client says of itself.
type login struct {
	caps     uint32
	user     string
	scramble []byte
	plugin   string
}

// sslRequest is true for the short form of a login that asks for TLS first.
func sslRequest(packet []byte) bool {
	return len(packet) == 32 && binary.LittleEndian.Uint32(packet)&capTLS != 0
}

func parseLogin(packet []byte) (login, error) {
	if len(packet) < 33 {
		return login{}, fmt.Errorf("%w: a login of %d bytes", errProtocol, len(packet))
	}
	l := login{caps: binary.LittleEndian.Uint32(packet)}
	if l.caps&(capProtocol41|capNoEOF|capPluginAuth) != capProtocol41|capNoEOF|capPluginAuth {
		return l, fmt.Errorf("%w: capabilities %x", errProtocol, l.caps)
	}
	rest := packet[32:]
	user, rest, ok := cutZero(rest)
	if !ok || len(rest) == 0 || len(rest) < 1+int(rest[0]) {
		return l, fmt.Errorf("%w: a login that is cut off", errProtocol)
	}
	l.user = user
	l.scramble = append([]byte(nil), rest[1:1+int(rest[0])]...)
	rest = rest[1+int(rest[0]):]
	if l.caps&capConnectDB != 0 {
		if _, rest, ok = cutZero(rest); !ok {
			return l, fmt.Errorf("%w: a login that is cut off", errProtocol)
		}
	}
	l.plugin, _, _ = cutZero(rest)
	return l, nil
}

func cutZero(b []byte) (text string, rest []byte, ok bool) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

// scrambled is what a client that knows the password answers to a nonce.
func scrambled(password string, nonce []byte) []byte {
	once := sha256.Sum256([]byte(password))
	twice := sha256.Sum256(once[:])
	mixed := sha256.Sum256(append(twice[:], nonce...))
	for i := range mixed {
		mixed[i] ^= once[i]
	}
	return mixed[:]
}

// value is a column of a row; nil is NULL.
type value *string

// result writes a result set with columns of text and at most one row.
func (p *packets) result(names []string, row []value) {
	start := p.begin()
	p.out = appendLength(p.out, len(names))
	p.end(start)
	for _, name := range names {
		start := p.begin()
		p.out = append(p.out, 3, 'd', 'e', 'f', 0, 0, 0)
		p.out = append(appendLength(p.out, len(name)), name...)
		p.out = append(p.out, 0, 0x0c, charsetUTF8, 0, 0, 0, 4, 0, typeText, 0, 0, 0, 0, 0)
		p.end(start)
	}
	if row != nil {
		start := p.begin()
		for _, v := range row {
			if v == nil {
				p.out = append(p.out, 0xfb)
				continue
			}
			p.out = append(appendLength(p.out, len(*v)), *v...)
		}
		p.end(start)
	}
	p.write(0xfe, 0, 0, statusOpen, 0, 0, 0)
}

func appendLength(b []byte, n int) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	}
	return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
}
