// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"testing"
)

func TestAllowedImages(t *testing.T) {
	l := Limits{Images: []string{"mysql", "registry.example.com/db/", "registry.example.com:5000/mysql", "ghcr.io/x/mysql:9.7"}}
	for image, want := range map[string]bool{
		"mysql": true, "mysql:9.7": true, "mysql@sha256:00": true, "mysql:9.7@sha256:00": true,
		"mysql-evil:9.7": false, "mysql/evil": false, "mysql:5000/evil": false, "evil/mysql:9.7": false, "docker.io/library/mysql:9.7": false,
		"registry.example.com/db/mysql:9": true, "registry.example.com/dbs/mysql:9": false, "registry.example.com/db": false,
		"registry.example.com:5000/mysql:9.7": true, "registry.example.com:5000/mysql/evil": false,
		"ghcr.io/x/mysql:9.7": true, "ghcr.io/x/mysql:9.7@sha256:00": true, "ghcr.io/x/mysql:9.8": false, "ghcr.io/x/mysql:9.7.4": false, "": false,
	} {
		if got := l.AllowsImage(image); got != want {
			t.Errorf("%q is allowed: %t, want %t", image, got, want)
		}
		if !(Limits{}).AllowsImage(image) {
			t.Errorf("%q is refused without a limit", image)
		}
	}
}

func TestAllowedNames(t *testing.T) {
	l := Limits{DNSSuffixes: []string{"{namespace}.db.example.com", ".shared.example.com"}}
	for name, want := range map[string]bool{
		"shop.db.example.com": true, "orders.shop.db.example.com": true, "orders.shop.db.example.com.": true,
		"billing.db.example.com": false, "orders.billing.db.example.com": false, "eshop.db.example.com": false, "www.example.com": false,
		"a.shared.example.com": true, "shared.example.com": true, "unshared.example.com": false, "db.example.com": false,
	} {
		if got := l.AllowsName(name, "shop"); got != want {
			t.Errorf("%q is allowed: %t, want %t", name, got, want)
		}
		if !(Limits{}).AllowsName(name, "shop") {
			t.Errorf("%q is refused without a limit", name)
		}
	}
}
