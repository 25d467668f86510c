// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// writesKeyring is what a real mysqld does besides, with a keyring that it may write.
const writesKeyring = initialises + `
cat $dir/keyring/keyring 2>/dev/null > $dir/found || true
printf '{"version":"1.0","elements":[{"user":"","data_id":"made-%s","data":"AB"}]}' "$(cat $dir/count 2>/dev/null | tr -d '\n')" > $dir/keyring/keyring
echo x >> $dir/count
`

func keyringText(id string) string {
	return `{"version":"1.0","elements":[{"user":"","data_id":"` + id + `","data":"AB"}]}`
}

// encryptedVolume is a volume beside an empty place for a keyring.
func encryptedVolume(t *testing.T) settings {
	t.Helper()
	s := volume(t, writesKeyring)
	s.site = "a"
	s.keyring = keyringSettings{file: filepath.Join(filepath.Dir(s.datadir), "keyring", "keyring"), work: workBootstrap, coverSystem: true}
	emptyPlace(t, s)
	return s
}

// emptyPlace is what becomes of the keyring in memory with a new pod.
func emptyPlace(t *testing.T, s settings) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(filepath.Dir(s.keyring.file)), os.MkdirAll(filepath.Dir(s.keyring.file), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// seed has the next pod start from a keyring.
func seed(t *testing.T, s *settings, content string) {
	t.Helper()
	s.keyring.seed = filepath.Join(filepath.Dir(s.datadir), "seed", "keyring")
	s.keyring.seedDigest = wire.KeyringDigest([]byte(content))
	write(t, s.keyring.seed, content, 0o400)
}

// rotationFrom has the next pod of a rotation start from a version in escrow.
func rotationFrom(t *testing.T, s *settings, content string, version int64) {
	t.Helper()
	seed(t, s, content)
	s.keyring.work, s.keyring.seedVersion = workRotation, version
}

func live(t *testing.T, s settings) string {
	t.Helper()
	raw, err := os.ReadFile(s.keyring.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}

func record(t *testing.T, s settings) escrow.Record {
	t.Helper()
	r, err := escrow.Store{Dir: s.stateDir}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// change changes the record as a sidecar would.
func change(t *testing.T, s settings, do func(*escrow.Record)) {
	t.Helper()
	r := record(t, s)
	do(&r)
	if err := (escrow.Store{Dir: s.stateDir}).Save(r); err != nil {
		t.Fatal(err)
	}
}

// booted is a volume whose datadir was made with a fresh keyring.
func booted(t *testing.T) settings {
	t.Helper()
	s := encryptedVolume(t)
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// statement has the volume remember who was active.
func statement(t *testing.T, s settings, active string) {
	t.Helper()
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"namespace":"shop","group":"orders","activeSite":"` + active + `","epoch":4}`))
	write(t, filepath.Join(s.stateDir, agent.StatementFile), "x."+body+".y\n", 0o600)
}

func volumeName(t *testing.T, s settings) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.stateDir, "volume-id"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestBootstrapMakesAKeyring(t *testing.T) {
	s := encryptedVolume(t)
	write(t, s.keyring.file, "what an earlier try left", 0o600)
	log, err := boot(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "found")); len(found) > 0 {
		t.Errorf("mysqld began with %s", found)
	}
	want := escrow.Record{Needs: wire.KeyringDigest([]byte(live(t, s))), Made: true}
	if diff := cmp.Diff(want, record(t, s)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	statements, _ := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "statements"))
	if !strings.Contains(string(statements), "\nALTER TABLESPACE mysql ENCRYPTION = 'Y';\n") {
		t.Errorf("the data dictionary is made in the clear:\n%s", statements)
	}
	if strings.Contains(log, `"AB"`) {
		t.Errorf("a key is in the log:\n%s", log)
	}
	// In place, as after a crash of the node's container runtime: the keyring is newer than any seed.
	before := live(t, s)
	seed(t, &s, keyringText("older"))
	if _, err := boot(t, s); err != nil || live(t, s) != before {
		t.Errorf("%v, the keyring is now %s", err, live(t, s))
	}
}

// A mysqld that loaded no keyring component makes a datadir too; nothing of it would be encrypted.
func TestBootstrapNeedsTheComponent(t *testing.T) {
	s := encryptedVolume(t)
	s.mysqld = volume(t, initialises).mysqld
	if _, err := boot(t, s); !errors.Is(err, errNoKeyring) {
		t.Errorf("got %v", err)
	}
	if found, _ := exists(filepath.Join(s.stateDir, markerFile)); found {
		t.Error("it was taken")
	}
}

func TestBootstrapWithoutAKeyringIsAsEver(t *testing.T) {
	s := volume(t, initialises)
	s.keyring.coverSystem = true
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	statements, _ := os.ReadFile(filepath.Join(filepath.Dir(s.datadir), "statements"))
	if strings.Contains(string(statements), "ENCRYPTION =") || record(t, s) != (escrow.Record{}) {
		t.Errorf("statements:\n%s\nrecord %+v", statements, record(t, s))
	}
}

// What a new pod finds that comes to a datadir of an older one. Nothing of the data is touched in any of these.
func TestBootstrapTakesTheKeyringThatTheDataNeeds(t *testing.T) {
	made := keyringText("made-")
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, *settings)
		want    error
		live    string
	}{
		"from escrow": {
			"it is the one", func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made) }, nil, made,
		},
		"for a clone": {
			"any work may be ahead",
			func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made); s.keyring.work = workClone }, nil, made,
		},
		"over an empty one": {
			"mysqld made it, where it found none",
			func(t *testing.T, s *settings) {
				t.Helper()
				seed(t, s, made)
				write(t, s.keyring.file, `{"version":"1.0","elements":[]}`, 0o600)
			}, nil, made,
		},
		"torn, with MySQL's copy": {
			"mysqld takes its copy itself",
			func(t *testing.T, s *settings) {
				t.Helper()
				write(t, s.keyring.file, made[:20], 0o600)
				write(t, s.keyring.file+".backup", made, 0o600)
			}, nil, made[:20],
		},
		"the seed is missing": {
			"mysqld would make an empty one",
			func(t *testing.T, s *settings) { t.Helper(); seed(t, s, made); _ = os.Remove(s.keyring.seed) }, errSeedMissing, "",
		},
		"the seed is another one": {
			"the operator wished for one digest, and the Secret has another",
			func(t *testing.T, s *settings) {
				t.Helper()
				seed(t, s, made)
				_ = os.Remove(s.keyring.seed)
				write(t, s.keyring.seed, keyringText("other"), 0o400)
			}, errSeedDigest, "",
		},
		"the seed is none": {
			"its digest may be right all the same",
			func(t *testing.T, s *settings) {
				t.Helper()
				seed(t, s, "{}")
				change(t, *s, func(r *escrow.Record) { r.Needs = s.keyring.seedDigest })
			}, errSeedBroken, "",
		},
		"lost in a rotation": {
			"the new key was in memory only",
			func(t *testing.T, s *settings) {
				t.Helper()
				seed(t, s, made)
				s.keyring.work = "Rotation"
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Needs = r.Needs, "sha256:new" })
			}, errKeyringLost, "",
		},
		"escrowed in a rotation, and not noted": {
			"I14: its volume was full, and what the data needs is in escrow and here: nothing is lost",
			func(t *testing.T, s *settings) {
				t.Helper()
				rotationFrom(t, s, keyringText("new"), 2)
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 1 })
			}, nil, keyringText("new"),
		},
		"escrowed in a rotation, and an older one given": {
			"the operator has the newer one; what is known to be wrong is not tried, and not noted",
			func(t *testing.T, s *settings) {
				t.Helper()
				rotationFrom(t, s, keyringText("older"), 1)
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			}, errKeyringLost, "",
		},
		"escrowed in a rotation, and another one of its number given": {
			"it is no newer one",
			func(t *testing.T, s *settings) {
				t.Helper()
				rotationFrom(t, s, keyringText("other"), 2)
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			}, errKeyringLost, "",
		},
		"lost in a rotation, and another one is in escrow": {
			"the key that the data needs was made after it, and in memory only",
			func(t *testing.T, s *settings) {
				t.Helper()
				rotationFrom(t, s, keyringText("half"), 2)
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Needs, r.Version = r.Needs, "sha256:new", 1 })
			}, errKeyringLost, "",
		},
		"escrowed in a clone, and not noted": {
			"if it is the wrong one too, the site is cloned again only if its pod says that its keyring is lost",
			func(t *testing.T, s *settings) {
				t.Helper()
				rotationFrom(t, s, keyringText("new"), 2)
				s.keyring.work = workClone
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 1 })
			}, errStored, "",
		},
		"lost, no work": {
			"nobody said that the data may go",
			func(t *testing.T, s *settings) { t.Helper(); s.keyring.work = "" }, errKeyringLost, "",
		},
		"in escrow, and not given": {
			"I16: it may have been open; the operator has the keyring and must hand it out",
			func(t *testing.T, s *settings) {
				t.Helper()
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 1 })
			}, errStored, "",
		},
		"in escrow, and an older one given": {
			"I16: it may have been open; the operator has the keyring and must hand it out",
			func(t *testing.T, s *settings) {
				t.Helper()
				seed(t, s, keyringText("older"))
				s.keyring.work = workClone
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			}, errStored, "",
		},
		"in escrow, a clone, no round told": {
			"I14: the Deployment is of an operator that tells no rounds, so it ordered nothing to be given up",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.work = workClone
				statement(t, *s, "b")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version, r.Round = r.Needs, 1, "uid/1" })
			}, errStored, "",
		},
		"in escrow, another round, not from nothing": {
			"I14: only a clone from nothing is the operator's word that it has nothing",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				seed(t, s, keyringText("older"))
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			}, errStored, "",
		},
		"in escrow, another round of a bootstrap": {
			"I14: a bootstrap gives nothing up that was in escrow",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				s.keyring.work = workBootstrap
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			}, errStored, "",
		},
		"lost in another round of a rotation": {
			"I14: a rotation gives nothing up",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				s.keyring.work = "Rotation"
			}, errKeyringLost, "",
		},
		"older than its encryption": {
			"what it holds was served before there was a keyring",
			func(t *testing.T, s *settings) { t.Helper(); change(t, *s, func(r *escrow.Record) { r.Made = false }) }, errMayHold, "",
		},
		"named, after an earlier escrow": {
			"under the earlier keyring it may have been open, and nobody else need have what it has",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.work = workClone
				statement(t, *s, "a")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = "sha256:old", 1 })
			}, errMayHold, "",
		},
		"a damaged statement, after an earlier escrow": {
			"it may name this site",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.work = workClone
				write(t, filepath.Join(s.stateDir, agent.StatementFile), "?", 0o600)
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = "sha256:old", 1 })
			}, agent.ErrDamaged, "",
		},
		"a damaged record": {
			"which keyring it needs is not known",
			func(t *testing.T, s *settings) {
				t.Helper()
				write(t, filepath.Join(s.stateDir, "keyring.json"), "{", 0o600)
			}, escrow.ErrRecord, "",
		},
		"encryption is switched on": {
			"data without a keyring needs none",
			func(t *testing.T, s *settings) {
				t.Helper()
				_ = os.Remove(filepath.Join(s.stateDir, "keyring.json"))
				s.keyring.work = "Rotation"
			}, nil, "",
		},
		"sealed": {
			"it is there",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.sealed = true
				write(t, s.keyring.file, made, 0o444)
			}, nil, made,
		},
		"rolled back": {
			"a person chose an older version; mysqld says whether it opens the data",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.sealed = true
				write(t, s.keyring.file, keyringText("older"), 0o444)
			}, nil, keyringText("older"),
		},
		"sealed without a keyring": {
			"mysqld would start, and open nothing",
			func(t *testing.T, s *settings) { t.Helper(); s.keyring.sealed = true }, errSealedAbsent, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := booted(t)
			emptyPlace(t, s)
			tc.prepare(t, &s)
			name := volumeName(t, s)
			// Twice: what the first try leaves must not mislead the second.
			for range 2 {
				if _, err := boot(t, s); !errors.Is(err, tc.want) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
			}
			if live(t, s) != tc.live {
				t.Errorf("the keyring is %q", live(t, s))
			}
			if there, _ := exists(filepath.Join(s.datadir, "auto.cnf")); !there || volumeName(t, s) != name {
				t.Errorf("the data is gone: %s", tc.reason)
			}
		})
	}
}

func TestBootstrapMakesNoDataInASealedPod(t *testing.T) {
	s := encryptedVolume(t)
	s.keyring.sealed = true
	write(t, s.keyring.file, keyringText("k"), 0o444)
	if _, err := boot(t, s); !errors.Is(err, errSealedEmpty) {
		t.Errorf("got %v", err)
	}
}

// Where the keyring was lost with its pod and what it opened was never acknowledged, a fresh datadir is made. The statement
// stays (I5), the volume gets a new name.
func TestBootstrapBeginsAnewI5(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, *settings)
	}{
		"lost before it was ever in escrow": {"bootstrap: wipe and start again", func(*testing.T, *settings) {}},
		"named before it was ever in escrow": {
			"I16: it was not open for all that",
			func(t *testing.T, s *settings) { t.Helper(); statement(t, *s, "a") },
		},
		"lost in the clone of a new site": {
			"the clone wrote the keyring again",
			func(t *testing.T, s *settings) {
				t.Helper()
				statement(t, *s, "b")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Needs = r.Needs, "sha256:new" })
			},
		},
		"lost in a clone": {
			"the data was to be replaced",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.work = workClone
				seed(t, s, live(t, *s))
				statement(t, *s, "b")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Needs = r.Needs, "sha256:new" })
			},
		},
		"its escrow Secret is lost too": {
			"I14: a person ordered the clone, and the operator starts it from nothing because it has nothing",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				statement(t, *s, "b")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 2 })
			},
		},
		"its escrow Secret is lost too, and it was the active site": {
			"I14: the same person has said that what it alone has may go; no newer statement ever came to its volume",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				statement(t, *s, "a")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Version, r.Round = r.Needs, 2, "uid/1" })
			},
		},
		"lost in a rotation, and named": {
			"the operator gave it up: the role had moved before, which its volume was not told",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				statement(t, *s, "a")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Needs = r.Needs, "sha256:new" })
			},
		},
		"adopted, and its escrow Secret is lost": {
			"the order is about data that is older than its encryption, too",
			func(t *testing.T, s *settings) {
				t.Helper()
				orderedAnew(s)
				statement(t, *s, "a")
				change(t, *s, func(r *escrow.Record) { r.Escrowed, r.Made = r.Needs, false })
			},
		},
		"lost in a clone over older data": {
			"the data was to be replaced",
			func(t *testing.T, s *settings) {
				t.Helper()
				s.keyring.work = workClone
				statement(t, *s, "b")
				change(t, *s, func(r *escrow.Record) { r.Made = false })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := booted(t)
			tc.prepare(t, &s)
			emptyPlace(t, s)
			before, first := volumeName(t, s), record(t, s).Needs
			kept, _ := os.ReadFile(filepath.Join(s.stateDir, agent.StatementFile))
			write(t, filepath.Join(s.datadir, "old"), "x", 0o600)
			if _, err := boot(t, s); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if old, _ := exists(filepath.Join(s.datadir, "old")); old || volumeName(t, s) == before {
				t.Error("the data or its name is still there")
			}
			if now, _ := os.ReadFile(filepath.Join(s.stateDir, agent.StatementFile)); string(now) != string(kept) {
				t.Errorf("the statement is now %q", now)
			}
			if r := record(t, s); r.Needs == first || r.Needs != wire.KeyringDigest([]byte(live(t, s))) || !r.Made || r.Escrowed != "" || r.Round != s.keyring.round {
				t.Errorf("record %+v", r)
			}
			if left, _ := exists(filepath.Join(s.stateDir, wipingFile)); left {
				t.Error("it would be wiped again")
			}
			name := volumeName(t, s)
			if _, err := boot(t, s); err != nil || volumeName(t, s) != name {
				t.Errorf("the next start: %v", err)
			}
			// What is made here may be the last copy by the time the pod is lost: with its keyring in escrow it stays.
			change(t, s, func(r *escrow.Record) { r.Escrowed, r.Version = r.Needs, 7 })
			emptyPlace(t, s)
			if _, err := boot(t, s); !errors.Is(err, errStored) || volumeName(t, s) != name {
				t.Errorf("I14: after it was escrowed: %v", err)
			}
			if there, _ := exists(filepath.Join(s.datadir, "auto.cnf")); !there {
				t.Error("I14: what was made is gone, and its keyring is in escrow")
			}
		})
	}
}

// orderedAnew has the next pod start a clone from nothing, in a round of its own.
func orderedAnew(s *settings) { s.keyring.work, s.keyring.round = workClone, "uid/6" }

// A clone from nothing whose pod is lost in the very round in which the data was made. Whatever state it left, the site gets on: by
// itself where bootstrap starts again, else by what the operator makes of the error (operator/keyring, "the pod is lost").
func TestLostInTheRoundOfTheCloneI14(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		left   escrow.Record
		named  string
		want   error
	}{
		"nothing in escrow": {
			"it was never open (I16)", escrow.Record{Needs: "sha256:now", Made: true}, "a", nil,
		},
		"in escrow": {
			"the operator seals it, or has it start from there, and clones again into what is half done",
			escrow.Record{Needs: "sha256:now", Escrowed: "sha256:now", Version: 7, Made: true}, "b", errStored,
		},
		"in escrow, named": {
			"the same, if it took over meanwhile", escrow.Record{Needs: "sha256:now", Escrowed: "sha256:now", Version: 7, Made: true}, "a", errStored,
		},
		"written again by the clone": {
			"it has no data yet, and was not named since", escrow.Record{Needs: "sha256:now", Escrowed: "sha256:before", Version: 6, Made: true}, "b", nil,
		},
		"written again by the clone, named": {
			"the operator has it start from version 6, hears the same, and orders a round of its own",
			escrow.Record{Needs: "sha256:now", Escrowed: "sha256:before", Version: 6, Made: true}, "a", errMayHold,
		},
		"a fresh keyring over older data": {
			"nothing of it was in escrow, and the site is not named", escrow.Record{Needs: "sha256:now"}, "b", nil,
		},
		"a fresh keyring over older data, named": {
			"what it served before may be nowhere else: a person orders again, which is another round", escrow.Record{Needs: "sha256:now"}, "a", errMayHold,
		},
		"a fresh keyring over older data, cloned": {
			"the clone has replaced that data", escrow.Record{Needs: "sha256:now", Escrowed: "sha256:now", Version: 7}, "b", errStored,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := booted(t)
			orderedAnew(&s)
			statement(t, s, tc.named)
			tc.left.Round = s.keyring.round
			if err := (escrow.Store{Dir: s.stateDir}).Save(tc.left); err != nil {
				t.Fatal(err)
			}
			emptyPlace(t, s)
			name := volumeName(t, s)
			if _, err := boot(t, s); !errors.Is(err, tc.want) || (volumeName(t, s) == name) != (tc.want != nil) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if there, _ := exists(filepath.Join(s.datadir, "auto.cnf")); !there {
				t.Errorf("no data: %s", tc.reason)
			}
			// The next order is another round, and gives up whatever is there.
			emptyPlace(t, s)
			s.keyring.round, name = "uid/7", volumeName(t, s)
			if _, err := boot(t, s); err != nil || volumeName(t, s) == name || record(t, s).Round != "uid/7" {
				t.Errorf("the next order: %v, record %+v", err, record(t, s))
			}
		})
	}
}

// A clone from nothing over data that never had a keyring wipes nothing, and what it makes of that data is of its round all the same.
func TestCloneOverPlainDataIsOfItsRoundI14(t *testing.T) {
	s := booted(t)
	_ = os.Remove(filepath.Join(s.stateDir, "keyring.json"))
	orderedAnew(&s)
	emptyPlace(t, s)
	name := volumeName(t, s)
	if _, err := boot(t, s); err != nil || volumeName(t, s) != name {
		t.Fatalf("plain data: %v", err)
	}
	change(t, s, func(r *escrow.Record) { r.Needs, r.Escrowed, r.Version = "sha256:now", "sha256:now", 1 })
	if _, err := boot(t, s); !errors.Is(err, errStored) || volumeName(t, s) != name {
		t.Errorf("I14: the clone is given up although its keyring is in escrow: %v", err)
	}
}

// A wipe that was cut off goes on, whatever it left, and never in a sealed pod.
func TestBootstrapGoesOnWithAWipe(t *testing.T) {
	s := booted(t)
	statement(t, s, "a")
	write(t, filepath.Join(s.stateDir, wipingFile), "", 0o600)
	if err := errors.Join(os.Remove(filepath.Join(s.stateDir, markerFile)), os.Remove(filepath.Join(s.datadir, "auto.cnf"))); err != nil {
		t.Fatal(err)
	}
	sealed := s
	sealed.keyring.sealed = true
	if _, err := boot(t, sealed); !errors.Is(err, errSealedEmpty) {
		t.Errorf("got %v", err)
	}
	if _, err := boot(t, s); err != nil {
		t.Fatal(err)
	}
	if left, _ := exists(filepath.Join(s.stateDir, wipingFile)); left {
		t.Error("it would be wiped again")
	}
}

// Data that is being given up is no data, however whole it looks: a sealed pod must not start mysqld on it.
func TestBootstrapDoesNotSealDataThatIsGivenUp(t *testing.T) {
	s := booted(t)
	s.keyring.sealed = true
	if _, err := boot(t, s); err != nil {
		t.Fatalf("sealed: %v", err)
	}
	write(t, filepath.Join(s.stateDir, wipingFile), "", 0o600)
	if _, err := boot(t, s); !errors.Is(err, errSealedEmpty) {
		t.Errorf("got %v", err)
	}
}

func TestTellKubelet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	encrypted := settings{keyring: keyringSettings{file: "/run/mysql-keyring/keyring"}}
	tellKubelet(path, encrypted, errSeedDigest)
	if made, _ := exists(path); made {
		t.Error("outside a pod there is no such file")
	}
	write(t, path, "", 0o600)
	tellKubelet(path, settings{}, errDataLost)
	tellKubelet(path, encrypted, nil)
	if raw, _ := os.ReadFile(path); len(raw) > 0 {
		t.Errorf("without a keyring, or without an error: %s", raw)
	}
	tellKubelet(path, encrypted, errSeedDigest)
	if raw, _ := os.ReadFile(path); string(raw) != errSeedDigest.Error() {
		t.Errorf("got %s", raw)
	}
}
