// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/passwords"
)

func TestWhatTheSecretSays(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{
		v1alpha1.AccountClone: []byte("c"), v1alpha1.AccountClone + v1alpha1.PasswordNext: []byte("n"), v1alpha1.PasswordSerial: []byte("7"),
	}}
	if got := entriesOf(secret)[v1alpha1.AccountClone]; got != (passwords.Entry{Current: "c", Next: "n"}) {
		t.Errorf("entry %+v", got)
	}
	if got := serialOf(secret); got != 7 {
		t.Errorf("serial %d", got)
	}
	before := Settling(secret)
	secret.Data[v1alpha1.PasswordSerial] = []byte("seven")
	if got := serialOf(secret); got != 0 {
		t.Errorf("serial %d of what is no number", got)
	}
	if Settling(secret) == before {
		t.Error("another content is waited for like the former one")
	}
}

// Whoever makes a password makes one that a server takes which checks for kinds of letters: it is one beginning, of which two packages
// have a copy, since one must not know the other.
func TestPasswordsBeginAlike(t *testing.T) {
	if mysql.PasswordPrefix != v1alpha1.PasswordPrefix {
		t.Errorf("%q and %q", mysql.PasswordPrefix, v1alpha1.PasswordPrefix)
	}
	for what, password := range map[string]string{
		"probe": mysql.ProbePassword("s"), "backup": mysql.BackupPassword("c"),
	} {
		if !strings.HasPrefix(password, v1alpha1.PasswordPrefix) {
			t.Errorf("%s begins otherwise", what)
		}
	}
}
