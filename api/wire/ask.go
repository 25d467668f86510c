// SPDX-License-Identifier: Apache-2.0

package wire

// Ask is who asks the operator for the active site of which group. Site, Pod and Nonce are empty when a person asks.
type Ask struct{ Namespace, Group, Site, Pod, Nonce string }
