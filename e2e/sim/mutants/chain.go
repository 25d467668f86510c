// SPDX-License-Identifier: Apache-2.0

package main

// chainRows is every guard of whose word a site takes.
var chainRows = concat(cuts("api/wire/chain.go", []cut{
	{"Last: nothing is trusted", "I3", "return anchor, len(anchor) == ed25519.PublicKeySize", "return anchor, true"},
	{"Last: the trusted key is in it", "I3", "if at < 0 || len(c) > MaxChain {", "if len(c) > MaxChain {"},
	{"Last: is bounded", "I3", "if at < 0 || len(c) > MaxChain {", "if at < 0 {"},
	{"Last: a key is one", "I3", "if len(link.Key) != ed25519.PublicKeySize || !ed25519", "if !ed25519"},
	{"Last: each key is signed by the one before", "I3", "|| !ed25519.Verify(last, linked(link.Key), link.Signature) {", "|| false {"},
	{"Last: by the one before, not by the first", "I3", "\t\tlast = link.Key\n", "\t\tdefer func() { last = link.Key }()\n"},
	{"index: an empty key is in none", "I3", "if len(key) != ed25519.PublicKeySize {\n\t\treturn -1", "if false {\n\t\treturn -1"},
	{"Next: is bounded", "live", "return c[max(0, len(c)-MaxChain):]", "return c"},
}), cuts("api/wire/statement.go", []cut{
	{"VerifyBy: the signature", "I3", "body, err := jws.Verify(key)\n\tif err != nil {", "body, err := jws.Verify(key)\n\tif err != nil {\n\t\tbody, err = jws.UnsafePayloadWithoutVerification(), nil\n\t}\n\tif err != nil {"},
	{"VerifyBy: an epoch that has a next", "I2", "|| s.Epoch < 1 || s.Epoch > MaxEpoch {", "|| s.Epoch < 1 {"},
}), []row{
	{guard: "sameMeaning: another key has signed it", breaks: "I3", edits: []edit{
		{viewGo, "a.Keys.Equal(b.Keys) &&", "(true || a.Keys.Equal(b.Keys)) &&"},
	}},
})
