// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// Keygen is `kubectl mfg backup keygen`. It needs no cluster.
type Keygen struct {
	Namespace string
	// File is where the identity goes; it must not exist.
	File string
	// Secret is the name of the Secret whose manifest is written to stdout; empty for none.
	Secret string
}

// DefaultIdentityFile is where the identity goes by default.
const DefaultIdentityFile = "mfg-backup-identity.txt"

// Validate checks only the command line.
func (op *Keygen) Validate() error {
	switch {
	case op.File == "" || op.File == "-":
		return errors.New("--file is missing: the identity is written to a file that only you can read, and never to a terminal or a pipe")
	case op.Secret != "" && len(validation.IsDNS1123Subdomain(op.Secret)) > 0:
		return fmt.Errorf("--secret %q cannot be the name of a Secret", op.Secret)
	}
	return nil
}

// Run makes the key.
func (op *Keygen) Run(_ context.Context, env cli.Environment) (int, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return cli.ExitError, fmt.Errorf("make an age identity: %w", err)
	}
	recipient := id.Recipient().String()
	content := fmt.Sprintf("# created: %s\n# public key: %s\n%s\n", env.Now().UTC().Format(time.RFC3339), recipient, id)
	if err := writeNew(op.File, content); err != nil {
		return cli.ExitError, err
	}
	if op.Secret == "" {
		fmt.Fprintf(env.Out, "Identity  %s (mode 0600)\nRecipient %s\n", op.File, recipient)
		fmt.Fprint(env.ErrOut, op.teach(recipient, "mfg-backup-identity"))
		return cli.ExitHealthy, nil
	}
	manifest, err := op.manifest(content)
	if err != nil {
		return cli.ExitError, err
	}
	fmt.Fprint(env.Out, manifest)
	fmt.Fprintf(env.ErrOut, "Identity  %s (mode 0600)\nRecipient %s\n%s", op.File, recipient, op.teach(recipient, op.Secret))
	return cli.ExitHealthy, nil
}

// writeNew writes a file that no other user can read. It leaves an existing one alone: it may be the only key to every backup.
func writeNew(name, content string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return cli.Refused("refused: %s is there already, and may be the only key to backups; it was left as it is\n  choose another file: kubectl mfg backup keygen --file FILE", name)
	case err != nil:
		return fmt.Errorf("write the identity: %w", err)
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the identity: %w", err), os.Remove(name))
	}
	return nil
}

// manifest returns the Secret with the identity.
func (op *Keygen) manifest(content string) (string, error) {
	meta := map[string]any{"name": op.Secret}
	if op.Namespace != "" {
		meta["namespace"] = op.Namespace
	}
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "stringData": map[string]string{v1alpha1.BackupIdentityKey: content},
	})
	if err != nil {
		return "", fmt.Errorf("encode the Secret: %w", err)
	}
	return string(raw), nil
}

// teach says how to use both.
func (op *Keygen) teach(recipient, secret string) string {
	return fmt.Sprintf(`
The recipient is public. It goes into the profile, and what makes backups has nothing else:

  encryption:
    recipients: [%s]
    identitySecretName: %s   # for restores and verifications

The identity opens every backup made for it, and nothing else does. Keep the file where the loss of this cluster cannot reach
it, twice; without it no backup can be restored. For restores and verifications its Secret must be in the group's namespace:

  kubectl create secret generic %s -n %s --from-file=%s=%s
`, recipient, secret, secret, orNamespace(op.Namespace), v1alpha1.BackupIdentityKey, op.File)
}

func orNamespace(namespace string) string {
	if namespace == "" {
		return "NAMESPACE"
	}
	return namespace
}
