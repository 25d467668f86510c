// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// writesTable is what the writers of a failover fill; stage makes it.
const writesTable = "app.writes"

// coverLimit is how long status may take to say that all is covered; a sidecar looks every ten seconds.
const coverLimit = 2 * time.Minute

// tableProof is what the active site says of the table under load, and status of all sites: two groups that are both in
// the clear would compare very well.
type tableProof struct {
	Site       string `json:"site"`
	Tablespace string `json:"tablespace"`
	// Encryption is that of information_schema.INNODB_TABLESPACES: Y or N.
	Encryption string `json:"encryption"`
	// FullCoverage is true if status says of every site that all there is to encrypt is encrypted.
	FullCoverage bool `json:"fullCoverage"`
}

// fault says why a table is not what the group of its arm must have.
func (p tableProof) fault(armName string) error {
	want := tableProof{Encryption: "N"}
	if armName == armEncrypted {
		want = tableProof{Encryption: "Y", FullCoverage: true}
	}
	if p.Encryption != want.Encryption || p.FullCoverage != want.FullCoverage {
		return fmt.Errorf("group %s: the tablespace %q on %q has the encryption %q and full coverage is %t; want %q and %t",
			armName, p.Tablespace, p.Site, p.Encryption, p.FullCoverage, want.Encryption, want.FullCoverage)
	}
	return nil
}

// unproven says of both groups' tables what is not as it must be.
func unproven(plain, encrypted tableProof) []string {
	var all []string
	for _, err := range []error{plain.fault(armPlain), encrypted.fault(armEncrypted)} {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}

// prove asks a group whether a table that is there is what its arm must have.
func (a arm) prove(ctx context.Context, g *stage.Group, table string) (tableProof, error) {
	proof := tableProof{Tablespace: strings.ReplaceAll(table, ".", "/")}
	if a.name == armEncrypted {
		if _, err := g.Await(ctx, coverLimit, "status to say that all is covered", notCovered); err != nil {
			return proof, err
		}
	}
	now, err := g.Get(ctx)
	if err != nil {
		return proof, err
	}
	proof.Site, proof.FullCoverage = now.Status.ActiveSite, notCovered(now) == nil
	out, err := g.RootSQL(ctx, proof.Site,
		"SELECT ENCRYPTION FROM information_schema.INNODB_TABLESPACES WHERE NAME = '"+proof.Tablespace+"'")
	if err != nil {
		return proof, fmt.Errorf("ask %s whether %s is encrypted: %w", proof.Site, table, err)
	}
	proof.Encryption = strings.TrimSpace(out)
	return proof, proof.fault(a.name)
}

// notCovered says what is not encrypted in full, or not sealed.
func notCovered(group *v1alpha1.MysqlFailoverGroup) error {
	e := group.Status.EncryptionAtRest
	if e == nil {
		return errors.New("status says nothing of encryption")
	}
	want := v1alpha1.CoverageStatus{
		KeyringComponent: "component_keyring_file", KeyringReadOnly: true, SystemTablespaceEncrypted: true,
		RedoLogEncrypted: true, UndoLogEncrypted: true, BinlogEncrypted: true,
	}
	for _, site := range group.Spec.Sites {
		i := slices.IndexFunc(e.Sites, func(s v1alpha1.SiteKeyringStatus) bool { return s.Name == site.Name })
		if i < 0 {
			return fmt.Errorf("status says nothing of the keyring of %s", site.Name)
		}
		if got := e.Sites[i].Coverage; got != want {
			return fmt.Errorf("%s: coverage %+v", site.Name, got)
		}
	}
	if !meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionEncryptionReady) {
		return fmt.Errorf("condition %+v", meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionEncryptionReady))
	}
	return nil
}
