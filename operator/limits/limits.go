// SPDX-License-Identifier: Apache-2.0

// Package limits is what the installation lets groups ask for.
package limits

import "strings"

// Limits are what the installation lets groups ask for. Nothing set means no limit.
type Limits struct {
	// Images are repositories of images, as they are written in spec.image without tag and digest, or with the one that is meant.
	// One that ends in a slash stands for all below it.
	Images []string
	// DNSSuffixes are domains in or below which spec.dns.name must lie; {namespace} in one stands for that of the group.
	DNSSuffixes []string
}

// AllowsImage is whether pods may be made with an image. It is compared as it is written: a shorter or longer way to write the same
// is refused, which is safe. The admission policy of the chart says the same.
func (l Limits) AllowsImage(image string) bool {
	for _, allowed := range l.Images {
		rest, is := strings.CutPrefix(image, allowed)
		switch {
		case !is:
		case strings.HasSuffix(allowed, "/"), rest == "", rest[0] == '@':
			return true
		case rest[0] == ':' && !strings.Contains(rest, "/"): // with a slash it was the port of a registry of that name
			return true
		}
	}
	return len(l.Images) == 0
}

// AllowsName is whether a group of a namespace may publish a DNS name.
func (l Limits) AllowsName(name, namespace string) bool {
	name = strings.TrimSuffix(name, ".")
	for _, suffix := range l.DNSSuffixes {
		suffix = strings.TrimPrefix(strings.ReplaceAll(suffix, "{namespace}", namespace), ".")
		if name == suffix || strings.HasSuffix(name, "."+suffix) {
			return true
		}
	}
	return len(l.DNSSuffixes) == 0
}
