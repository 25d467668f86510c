// SPDX-License-Identifier: Apache-2.0

package image

import "path/filepath"

// NonRoot is the user that our own images run as.
const NonRoot = 65532

// Static returns the files of an image around one static binary, installed as /NAME: just
// enough of a root file system for the Go runtime and for restricted pod security.
func Static(binary, name string) []File {
	return []File{
		{Path: "etc", Mode: 0o755},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Data: []byte("hosts: files dns\n")},
		{Path: "tmp", Mode: 0o1777},
		{Path: filepath.Base(name), Mode: 0o755, Source: binary},
	}
}
