// SPDX-License-Identifier: Apache-2.0

package fence

// Archives is true while this run's opening stands, lets clients in and is that of the newest epoch known: what commits here now is the history
// of that epoch, and of nothing else (I26).
func (s State) Archives() bool { return s.Names() && s.Serves() && s.openEpoch == s.word.Epoch }
