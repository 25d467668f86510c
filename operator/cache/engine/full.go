// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// An engine with as many clients as it may have (maxclients) refuses the next connection. It keeps none back for the operator, whatever account
// that has. Valkey and Dragonfly write the same words before they end the connection. With TLS, Valkey writes nothing, and Dragonfly writes the
// words as they are, outside of TLS. So the operator keeps the one connection that it has.

// fullWords begin the refusal. The library takes them for the answer to its first command, tries another, and names only that one's failure.
var fullWords = []byte("-ERR max number of clients")

// isRefusal is true for the first line of a connection if that refuses it.
func isRefusal(line []byte) bool { return bytes.HasPrefix(line, fullWords) }

// whyEnded is the error of a TLS handshake, or what it shows: that the engine is full.
func whyEnded(err error) error {
	if e, is := errors.AsType[tls.RecordHeaderError](err); is && bytes.HasPrefix(fullWords, e.RecordHeader[:]) {
		return ErrFull
	}
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%w: %w", ErrDropped, err)
		}
	}
	return err
}
