// SPDX-License-Identifier: Apache-2.0

package fence

// Archives is true while this run's opening holds, lets clients in and belongs to the newest epoch known: what commits here now is the
// history of that epoch, and of no other (I26).
func (s State) Archives() bool { return s.Names() && s.Serves() && s.openEpoch == s.word.Epoch }
