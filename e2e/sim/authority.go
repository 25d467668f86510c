// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
)

// newAuthority is the real one; only the signature is a number here, which stands for the statement that it signs.
func newAuthority(w *world) *authority.Authority {
	a := authority.New()
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) {
		w.truth.states(s)
		return w.sign(s), nil
	})
	return a
}

// sign, verify and nonce stand for the keys: a signature is the number of a statement that was really signed.
func (w *world) sign(s wire.Statement) wire.Signed {
	w.statements = append(w.statements, s)
	return wire.Signed(strconv.Itoa(len(w.statements)))
}

func (w *world) verify(signed wire.Signed) wire.Statement {
	n, err := strconv.Atoi(string(signed))
	if err != nil {
		panic(err)
	}
	return w.statements[n-1]
}

func (w *world) nonce() string {
	w.nonces++
	return "n" + strconv.Itoa(w.nonces)
}

func itoa(n int) string { return strconv.Itoa(n) }
