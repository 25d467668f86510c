// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Keys of the generated Secrets.
const (
	AccountOperator    = v1alpha1.AccountOperator
	AccountReplication = v1alpha1.AccountReplication
	AccountSidecar     = v1alpha1.AccountSidecar
	AccountClone       = v1alpha1.AccountClone

	KeyRootPassword = "password"
)

// Passwords are those of the operator's own MySQL accounts. They print as redacted.
type Passwords struct {
	Operator    string
	Replication string
	Sidecar     string
	Clone       string
}

// String hides the passwords from logs and messages.
func (Passwords) String() string { return "[redacted]" }

// GoString hides the passwords from %#v.
func (p Passwords) GoString() string { return p.String() }

// ErrSecretIncomplete means that a Secret lacks a key without which it is of no use.
var ErrSecretIncomplete = errors.New("secret is incomplete")

// Accounts says whether a Secret has a password of every account, its own or the operator's copy.
func Accounts(secret *corev1.Secret) error {
	for _, key := range []string{AccountOperator, AccountReplication, AccountSidecar, AccountClone} {
		if len(secret.Data[key]) == 0 && len(secret.Data[key+v1alpha1.PasswordKnown]) == 0 {
			return fmt.Errorf("%w: %s has no key %q", ErrSecretIncomplete, secret.Name, key)
		}
	}
	return nil
}

// AccountsSecret holds the passwords of the operator's MySQL accounts, each with the operator's copy of it.
func AccountsSecret(in Input, p Passwords) *corev1.Secret {
	data := map[string][]byte{v1alpha1.PasswordSerial: []byte("1")}
	for key, password := range map[string]string{
		AccountOperator: p.Operator, AccountReplication: p.Replication, AccountSidecar: p.Sidecar, AccountClone: p.Clone,
	} {
		data[key], data[key+v1alpha1.PasswordKnown] = []byte(password), []byte(password)
	}
	return secret(in, v1alpha1.AccountsSecret(in.Group.Name), data)
}

// RootSecret holds the password of root@localhost, for the user.
func RootSecret(in Input, password string) *corev1.Secret {
	return secret(in, v1alpha1.RootSecret(in.Group.Name), map[string][]byte{KeyRootPassword: []byte(password)})
}

// ReportSecret holds the key with which a site authenticates its reports. Nothing is lost with it, so it goes with the group.
func ReportSecret(in Input, site string, key []byte) *corev1.Secret {
	out := secret(in, v1alpha1.ReportSecret(in.Group.Name, site), map[string][]byte{v1alpha1.ReportKey: key})
	out.ObjectMeta = in.meta(out.Name, SiteLabels(in.Group.Name, site))
	return out
}

func secret(in Input, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: in.keptMeta(name, GroupLabels(in.Group.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}
