// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/passwords"
	"github.com/mysql-mfg/mfg/operator/scope"
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

// The password of backups comes in the same write as that of clones, which it follows: an archiver has no other, and the former one is refused soon.
func TestThePasswordOfBackupsComesWithThatOfClones(t *testing.T) {
	for name, tc := range map[string]struct{ has, want string }{
		"a group with backups":    {"of the former one", mysql.BackupPassword("next")},
		"a group without backups": {"", ""},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "accounts"}, Data: map[string][]byte{v1alpha1.AccountClone: []byte("former")}}
		if tc.has != "" {
			secret.Data[v1alpha1.AccountBackup] = []byte(tc.has)
		}
		c := fake.NewClientBuilder().WithObjects(secret).Build()
		r := &Passwords{Base: &scope.Base{Client: c}}
		read := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), read); err != nil {
			t.Fatal(err)
		}
		if err := r.putPasswords(t.Context(), &scope.Scope{Accounts: read}, content{entries: map[string]passwords.Entry{v1alpha1.AccountClone: {Current: "next", Known: "next"}}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		if got := string(secret.Data[v1alpha1.AccountBackup]); got != tc.want {
			t.Errorf("%s: the first write leaves it at that of the former password", name)
		}
	}
}
