// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"

	"github.com/mysql-mfg/mfg/operator/keyring"
)

// Versions returns the keyrings of a site in escrow; none if the installation has no escrow listener.
func (r *Encryption) Versions(ctx context.Context, namespace, group, site string) ([]keyring.Version, error) {
	if r.Escrow == nil {
		return nil, nil
	}
	return r.Escrow.Versions(ctx, namespace, group, site)
}
