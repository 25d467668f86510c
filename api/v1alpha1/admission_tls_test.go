// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "testing"

// TestTLSComesOnlyToAGroupThatIsReadyForIt: an operator that knows the steps has looked at it, or it would require TLS at once.
func TestTLSComesOnlyToAGroupThatIsReadyForIt(t *testing.T) {
	const (
		ran       = "status/epoch = 1\n"
		plain     = ran + "status/tls = {phase: Plain}\n"
		onItsWay  = ran + "status/tls = {phase: Channels, later: true}\n"
		there     = ran + "status/tls = {phase: Clients, later: true}\n"
		tls       = "spec/tls = {secretName: t}\n"
		other     = "spec/tls = {secretName: u}\n"
		cache     = "spec/cache = {enabled: true}\n"
		cacheTLS  = "spec/cache = {enabled: true, tls: {enabled: true}}\n"
		cacheOff  = "spec/cache = {enabled: false, tls: {enabled: true}}\n"
		encrypted = "spec/encryptionAtRest = {enabled: true}\n"
	)
	s := newServer(t)
	for name, tc := range map[string]struct {
		old, change edit
		path        string
	}{
		"its status says Plain":                           {plain, plain + tls, ""},
		"nobody has looked at it":                         {ran, ran + tls, "spec.tls"},
		"it has no status at all":                         {"", tls, "spec.tls"},
		"it was on its way once":                          {onItsWay, onItsWay + tls, "spec.tls"},
		"TLS goes before it begins":                       {plain + tls, plain, "spec.tls"},
		"TLS goes":                                        {onItsWay + tls, onItsWay, "spec.tls"},
		"another Secret before it begins":                 {plain + tls, plain + other, ""},
		"another Secret on its way":                       {onItsWay + tls, onItsWay + other, "spec.tls.secretName"},
		"plain connections are refused":                   {there + tls, there + "spec/tls = {secretName: t, plainConnections: Refuse}", ""},
		"a word that is none":                             {there + tls, there + "spec/tls = {secretName: t, plainConnections: Never}", "spec.tls.plainConnections"},
		"encryption with TLS":                             {plain, plain + tls + encrypted, "spec.encryptionAtRest.enabled"},
		"encryption on its way":                           {onItsWay + tls, onItsWay + tls + encrypted, "spec.encryptionAtRest.enabled"},
		"encryption once the sites are verified":          {there + tls, there + tls + encrypted, ""},
		"the running cache gets TLS with it":              {plain + cache, plain + tls + cacheTLS, "spec.cache.tls.enabled"},
		"the running cache stays without":                 {plain + cache, plain + tls + cache, ""},
		"the running cache gets TLS later":                {there + tls + cache, there + tls + cacheTLS, "spec.cache.tls.enabled"},
		"a cache is turned on with TLS that is not there": {plain + tls, plain + tls + cacheTLS, "spec.cache.tls.enabled"},
		"a cache is turned on without":                    {plain + tls, plain + tls + cache, ""},
		"the cache that is off gets TLS":                  {there + tls, there + tls + cacheOff, ""},
		"the cache gets TLS when it is turned on":         {there + tls + cacheOff, there + tls + cacheTLS, ""},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := parse(t, minimal), parse(t, minimal)
			tc.old.apply(t, was)
			tc.change.apply(t, now)
			if errs := s.admit(was, nil); len(errs) != 0 {
				t.Fatalf("the old object is refused: %v", errs)
			}
			if tc.path != "" {
				wantError(t, s, now, was, tc.path)
			} else if errs := s.admit(now, was); len(errs) != 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}
