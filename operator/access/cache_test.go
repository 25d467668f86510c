// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"crypto/x509"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/render"
)

func cacheSecret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-cache-auth"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// How a cache is reached: with the password that its pod was made with, then with others that it may still take, and never without the
// TLS that the group has, unless a person switched it off.
func TestAccessToTheCache(t *testing.T) {
	off := false
	for name, tc := range map[string]struct {
		data      map[string]string
		tls       bool
		off       *bool
		passwords []string
		secure    bool
	}{
		"the operator's own": {data: map[string]string{"password": "a"}, passwords: []string{"a"}},
		"a wish, and what was before": {data: map[string]string{"password": "wish", "password-known": "known", "password-previous": "before"},
			passwords: []string{"known", "wish", "before"}},
		"each once":   {data: map[string]string{"password": "a", "password-known": "a", "password-previous": "b"}, passwords: []string{"a", "b"}},
		"with TLS":    {data: map[string]string{"password": "a"}, tls: true, passwords: []string{"a"}, secure: true},
		"without TLS": {data: map[string]string{"password": "a"}, tls: true, off: &off, passwords: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := access.New(reader(cacheSecret(tc.data)), reader(newAuthority(t).secret(t)))
			g := group(tc.tls)
			g.Spec.Cache = &v1alpha1.CacheSpec{TLS: v1alpha1.CacheTLS{Enabled: tc.off}, Auth: v1alpha1.CacheAuth{SecretName: "theirs"}}
			passwords, config, err := a.Cache(t.Context(), g, "paris")
			if err != nil || !slices.Equal(passwords, tc.passwords) || (config != nil) != tc.secure {
				t.Errorf("%v %v %v", passwords, config, err)
			}
			if tc.secure && (config.ServerName != render.Host("shop", "orders", "paris") || config.RootCAs == nil || config.InsecureSkipVerify) {
				t.Errorf("the cache is not verified: %+v", config)
			}
			certificate, err := a.CacheCertificate(t.Context(), g)
			if err != nil || (certificate != nil) != tc.secure {
				t.Errorf("certificate %x %v", certificate, err)
			}
			if leaf, err := x509.ParseCertificate(certificate); tc.secure && (err != nil || leaf.IsCA) {
				t.Errorf("what the cache has to show is %+v, %v", leaf, err)
			}
		})
	}
	g := group(false)
	g.Spec.Cache = &v1alpha1.CacheSpec{}
	if _, _, err := access.New(reader(cacheSecret(nil)), reader()).Cache(t.Context(), g, "paris"); !errors.Is(err, access.ErrSecretIncomplete) {
		t.Errorf("without a password: %v", err)
	}
}
