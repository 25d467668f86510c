// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/api/wire"
)

// textMost bounds the rows of one answer.
const textMost = 4 << 30

// errOwn marks errors of writing the answer: they are not the archive's.
var errOwn = errors.New("write the answer")

// answer writes lines.
type answer struct {
	out  *json.Encoder
	most int
	told int
	text int64
	full bool
	end  wire.InspectEnd
}

func newAnswer(w io.Writer, most int) *answer {
	if most <= 0 {
		most = wire.DefaultInspectTransactions
	}
	return &answer{out: json.NewEncoder(w), most: min(most, wire.MaxInspectTransactions)}
}

func (a *answer) line(l wire.InspectLine) error {
	if err := a.out.Encode(l); err != nil {
		return fmt.Errorf("%w: %w", errOwn, err)
	}
	return nil
}

// transaction tells one; errDone once there are more than may be told.
func (a *answer) transaction(t *wire.ArchivedTransaction) error {
	if a.told >= a.most {
		a.full = true
		return errDone
	}
	a.told++
	return a.line(wire.InspectLine{Transaction: t})
}

// room is false once no further transaction would be told.
func (a *answer) room() bool { return a.told < a.most && a.text < textMost }

// write tells text in pieces that are whole in UTF-8: JSON has no others.
func (a *answer) write(text string) error {
	if a.text += int64(len(text)); a.text > textMost {
		a.full = true
		return errDone
	}
	for len(text) > 0 {
		n := min(len(text), wire.MaxInspectText)
		for n < len(text) && n > wire.MaxInspectText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := a.line(wire.InspectLine{Text: text[:n]}); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}
