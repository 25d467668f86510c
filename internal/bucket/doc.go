// SPDX-License-Identifier: Apache-2.0

// Package bucket keeps backups in object storage: S3, Google Cloud Storage, Azure Blob Storage or a folder of a volume. It alone defines
// the format in which they are there.
//
//	<prefix>/<namespace>/<group>/owner.json                            which group may write here
//	<prefix>/<namespace>/<group>/backups/<name>/manifest.json          what the backup consists of; written last
//	<prefix>/<namespace>/<group>/backups/<name>/<attempt>/<part>.00000 the parts, each cut into objects of at most 1 GiB
//
// A part is one stream: plaintext, zstd, age, then a multipart upload. Nothing touches a disk, and memory is bounded by a few buffers.
// Without a manifest there is no backup: Sweep removes what a killed attempt leaves. Every attempt has a folder of its own, so that
// one that was taken for dead cannot write into another.
//
// The package cannot tell who wrote a backup. Anyone who may write to the bucket and knows the recipients, which are public, can put
// another backup there. The package does not know Kubernetes or MySQL.
package bucket
