// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// inputMax bounds a file that is read.
const inputMax = 1 << 20

// template is what the new group is made from.
type template struct {
	spec v1alpha1.MysqlFailoverGroupSpec
	// living is the specification of the group of the backup, which keeps what only one group can have; nil if that group is gone.
	living *v1alpha1.MysqlFailoverGroupSpec
	// storage is the storage in a file; nil without one.
	storage *v1alpha1.BackupStorage
}

// template returns the specification of a file, or of the living group.
func (op *Op) template(ctx context.Context, c Cluster) (template, error) {
	if op.File != "" {
		var g v1alpha1.MysqlFailoverGroup
		if err := readYAML(op.File, &g); err != nil {
			return template{}, err
		}
		if len(g.Spec.Sites) == 0 {
			return template{}, cli.Usage("%s holds no MysqlFailoverGroup with sites", op.File)
		}
		there, err := c.Group(ctx, op.FromNamespace, op.From)
		switch {
		case apierrors.IsNotFound(err):
			return template{spec: g.Spec}, nil
		case apierrors.IsForbidden(err):
			return template{spec: g.Spec, living: g.Spec.DeepCopy()}, nil // it may be there, just as the file says
		case err != nil:
			return template{}, err
		}
		return template{spec: g.Spec, living: &there.Spec}, nil
	}
	g, err := c.Group(ctx, op.FromNamespace, op.From)
	switch {
	case apierrors.IsNotFound(err):
		return template{}, cli.Refused("refused: group %s is gone from namespace %s, so its specification is not known\n  give it as a file: kubectl mfg restore %s --from %s -f GROUP.yaml -n %s; docs/disaster.md says what the file must hold", op.From, op.FromNamespace, op.Group, op.From, op.Namespace)
	case err != nil:
		return template{}, err
	}
	return template{spec: *g.Spec.DeepCopy(), living: &g.Spec}, nil
}

// storage returns the storage in a file: as in a profile, with the field storage around it or without.
func (op *Op) storage() (*v1alpha1.BackupStorage, error) {
	if op.StorageFile == "" {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	var both struct {
		Storage *v1alpha1.BackupStorage `json:"storage,omitempty"`
		v1alpha1.BackupStorage
	}
	if err := readYAML(op.StorageFile, &both); err != nil {
		return nil, err
	}
	s := &both.BackupStorage
	if both.Storage != nil {
		s = both.Storage
	}
	places := 0
	for _, is := range []bool{s.S3 != nil, s.GCS != nil, s.Azure != nil, s.Volume != nil} {
		if is {
			places++
		}
	}
	if places != 1 {
		return nil, cli.Usage("%s names %d places for backups: it must hold exactly one of s3, gcs, azure and volume, as storage of a profile does", op.StorageFile, places)
	}
	return s, nil
}

// readYAML reads one document strictly: otherwise a misspelt field would be ignored silently.
func readYAML(name string, into any) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, inputMax+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case len(raw) > inputMax:
		return cli.Usage("%s has more than %d bytes: it holds something else", name, inputMax)
	}
	if documents := bytes.Split(bytes.TrimPrefix(raw, []byte("---\n")), []byte("\n---\n")); len(documents) > 1 {
		return cli.Usage("%s holds %d documents: one is expected", name, len(documents))
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return cli.Usage("%s: %s", name, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	return nil
}
