// SPDX-License-Identifier: Apache-2.0

package mysqlclient

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// Accounts of a group whose passwords are in Secrets. The operator makes the first one, and the second if the group has spec.application. A person
// makes the third, by kubectl mfg account create or by hand, with a Secret of the name that AccountSecret returns.
const (
	AccountAdmin    = "admin"
	AccountApp      = "app"
	AccountReadOnly = "readonly"
)

// Accounts are the values of --account.
var Accounts = []string{AccountAdmin, AccountApp, AccountReadOnly}

// Keys of the Secret of an account. Without a username it is the account's; with a database the session begins there.
const (
	keyUsername = v1alpha1.ApplicationUsername
	keyPassword = v1alpha1.ApplicationPassword
	keyDatabase = v1alpha1.ApplicationDatabase
)

const root = "root"

// maxUser is how many characters a MySQL user name may have.
const maxUser = 32

// AccountSecret returns the name of an account's Secret.
func AccountSecret(group, account string) string {
	if account == AccountAdmin {
		return v1alpha1.RootSecret(group)
	}
	return "mysql-" + group + "-" + account
}

// login is a user with the password, which is empty if a person must type it. The session begins in the database, if there is one.
type login struct{ user, password, database string }

// String never shows the password.
func (l login) String() string { return l.user + " (redacted)" }

// GoString never shows the password.
func (l login) GoString() string { return l.String() }

// Password returns root's. The plugin knows no other user's.
func (op *Op) Password(ctx context.Context, c Cluster) (string, error) {
	if op.User != root {
		return "", cli.Usage("without a terminal only --login root is possible, or an account with a Secret (--account): the password of %s is not known", op.User)
	}
	who, err := op.secret(ctx, c, AccountAdmin)
	return who.password, err
}

// login returns the user that logs in. The password is empty if a person must type it, which takes a terminal.
func (op *Op) login(ctx context.Context, c Cluster, terminal bool) (login, error) {
	switch {
	case op.Account == "" && terminal:
		return login{user: op.User}, nil
	case op.Account == "":
		password, err := op.Password(ctx, c)
		return login{user: op.User, password: password}, err
	}
	who, err := op.secret(ctx, c, op.Account)
	if terminal && op.Account == AccountAdmin && apierrors.IsForbidden(err) {
		return login{user: root}, nil // a user who may exec into the pod, and knows the password, may log in
	}
	return who, err
}

// secret reads the Secret of an account.
func (op *Op) secret(ctx context.Context, c Cluster, account string) (login, error) {
	name := AccountSecret(op.Group, account)
	secret, err := c.Kube().CoreV1().Secrets(op.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && account != AccountAdmin:
		if account == AccountApp {
			return login{}, fmt.Errorf(`there is no Secret %[1]s in namespace %[2]s: the group has no spec.application
  name a database there, and the operator makes the Secret: kubectl patch mfg %[3]s -n %[2]s --type=merge -p '{"spec":{"application":{"database":"%[4]s"}}}'`,
				name, op.Namespace, op.Group, account)
		}
		return login{}, fmt.Errorf(`there is no Secret %[1]s in namespace %[2]s: the group has no such account yet
  make both: kubectl mfg account create %[3]s -n %[2]s`, name, op.Namespace, op.Group)
	case err != nil:
		return login{}, cli.RightsHint(err, "get", "secrets/"+name, op.Namespace)
	}
	return credentials(secret, account)
}

// credentials reads a Secret, and refuses what could not be passed on unchanged. No message contains its data.
func credentials(secret *corev1.Secret, account string) (login, error) {
	user, password := account, string(secret.Data[keyPassword])
	database := string(secret.Data[keyDatabase])
	if account == AccountAdmin {
		user, database = root, ""
	} else if given := secret.Data[keyUsername]; len(given) > 0 {
		user = string(given)
	}
	strange := func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
	switch {
	case password == "":
		return login{}, fmt.Errorf("the Secret %[1]s has no password under the key %[2]q\n  see which keys it has: kubectl describe secret %[1]s -n %[3]s", secret.Name, keyPassword, secret.Namespace)
	case strange(password):
		return login{}, fmt.Errorf("the password in the Secret %s holds a line break or another control character\n  write it without one: printf %%s instead of echo", secret.Name)
	case strange(user), len([]rune(user)) > maxUser:
		return login{}, fmt.Errorf("the username in the Secret %s cannot be one of MySQL: at most %d characters, and no control characters\n  %s", secret.Name, maxUser,
			write(secret, keyUsername, "USER"))
	case strange(database), strings.HasPrefix(database, "-"):
		return login{}, fmt.Errorf("the database in the Secret %s cannot be one of MySQL: it begins with - or has control characters\n  %s", secret.Name, write(secret, keyDatabase, "DATABASE"))
	}
	return login{user, password, database}, nil
}

// write is the command that puts another value under a key of a Secret. It is for what is no secret: a command line is in the history of a shell.
func write(secret *corev1.Secret, key, value string) string {
	return fmt.Sprintf(`write another one there: kubectl patch secret %s -n %s --type=merge -p '{"stringData":{"%s":"%s"}}'`, secret.Name, secret.Namespace, key, value)
}
