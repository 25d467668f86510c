// SPDX-License-Identifier: Apache-2.0

// Package making makes a backup of one site: it copies the site by mysqldump or by CLONE, and stores what came of it. Whatever ends it, none of
// its sessions stays on the site.
package making
