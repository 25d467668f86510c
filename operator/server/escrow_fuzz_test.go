// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
)

// fuzzed is the listener's handler without a network, before the real store over a cluster in memory. Site paris of group
// shop/orders is unsealed.
type fuzzed struct {
	cluster client.Client
	handler *Escrow
	token   string
	log     *safeBuffer
}

func newFuzzed(f *testing.F) *fuzzed {
	f.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.Fatal(err)
		}
	}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u"}}
	group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "paris", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringBootstrap},
	}}
	z := &fuzzed{log: &safeBuffer{}}
	z.cluster = fake.NewClientBuilder().WithScheme(scheme).WithObjects(group).WithStatusSubresource(group).Build()
	store := escrow.New(escrow.Options{Client: z.cluster, Live: z.cluster, Pods: func(_, _, _ string) (string, bool) { return podUID, true }})
	if err := store.RenewToken(f.Context(), group, "paris", 1); err != nil {
		f.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := z.cluster.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: v1alpha1.KeyringTokenSecret("orders", "paris")}, secret); err != nil {
		f.Fatal(err)
	}
	z.token = string(secret.Data["token"])
	z.handler = newEscrow(store, slog.New(slog.NewTextHandler(z.log, &slog.HandlerOptions{Level: slog.LevelDebug})), testLimits())
	return z
}

// taken is how much comes of a good push.
func (z *fuzzed) taken(f *testing.F) int {
	_, _, stored := z.push(f, bodyOf(f, keyring, nil))
	return len(stored)
}

// push pushes a body and takes away what came of it.
func (z *fuzzed) push(t testing.TB, body []byte) (answer *httptest.ResponseRecorder, said string, stored []corev1.Secret) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, wire.PathKeyringEscrow, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+z.token)
	answer = httptest.NewRecorder()
	z.handler.ServeHTTP(answer, r)
	said = z.log.String()
	z.log.mu.Lock()
	z.log.text.Reset()
	z.log.mu.Unlock()
	list := &corev1.SecretList{}
	if err := z.cluster.List(t.Context(), list, client.MatchingLabels{v1alpha1.LabelName: v1alpha1.NameKeyring}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if len(list.Items[i].Data["keyring"]) == 0 {
			continue // the token
		}
		stored = append(stored, list.Items[i])
		if err := z.cluster.Delete(t.Context(), &list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	return answer, said, stored
}

// FuzzEscrowBody: whatever the body of a push with the right token is, the answer is one of ours; only a keyring with the
// digest that was said is stored, of the one site that is unsealed, byte for byte; and nothing of it is in the answer or the
// log (I19). With repair the digest is made right first, which chance would never do, so that what lies behind it is reached.
func FuzzEscrowBody(f *testing.F) {
	two := string(bytes.ReplaceAll([]byte(keyring), []byte(`"elements":[`), []byte(`"elements":[{"user":"","data_id":"MySQLReplicationKey_x","data_type":"AES","data":"00","extension":[]},`)))
	for _, content := range []string{
		keyring, two, "hello", "", `{"version":"1.0","elements":[]}`, keyring[:len(keyring)/2], keyring + keyring, "\xff" + keyring,
		strings.Replace(keyring, `"AES"`, `null`, 1), strings.Replace(keyring, keyData, "nothex", 1), strings.Repeat("[", 5000),
	} {
		f.Add(bodyOf(f, content, nil), false)
		f.Add(bodyOf(f, content, func(p *wire.KeyringEscrow) { p.Digest = "sha256:" }), true)
	}
	f.Add(bodyOf(f, keyring, func(p *wire.KeyringEscrow) { p.Site = "madrid" }), true)
	f.Add(bodyOf(f, keyring, func(p *wire.KeyringEscrow) { p.Site = "../paris" }), true)
	f.Add(bodyOf(f, keyring, func(p *wire.KeyringEscrow) { p.PodUID = "" }), true)
	for _, body := range []string{
		"", "[", "null", "{}", `{"namespace":"shop","group":"orders","site":"paris","keyring":null}`, `{"NAMESPACE":"shop","keyring":"!!"}`,
		`{"keyring":[1,2]}`, `{"site":{"a":1}}`, string(bodyOf(f, keyring, nil)) + "{}", strings.Repeat(`{"site":`, 2000),
	} {
		f.Add([]byte(body), false)
	}
	z := newFuzzed(f)
	if stored := z.taken(f); stored != 1 {
		f.Fatalf("a good push stores %d keyrings: nothing is tested", stored)
	}
	codes := map[int]bool{200: true, 400: true, 401: true, 409: true, 413: true, 422: true}
	f.Fuzz(func(t *testing.T, body []byte, repair bool) {
		var push wire.KeyringEscrow
		parsed := json.Unmarshal(body, &push) == nil
		if repair && parsed {
			push.Digest = wire.KeyringDigest(push.Keyring)
			body = encode(t, push)
		}
		answer, said, stored := z.push(t, body)
		if !codes[answer.Code] {
			t.Errorf("answered %d %s", answer.Code, answer.Body)
		}
		if (answer.Code == http.StatusOK) != (len(stored) == 1) || len(stored) > 1 {
			t.Fatalf("answered %d, stored %d", answer.Code, len(stored))
		}
		if len(stored) == 1 && (!parsed || push.Site != "paris" || push.Group != "orders" || push.Namespace != "shop" || push.PodUID != podUID ||
			!bytes.Equal(stored[0].Data["keyring"], push.Keyring) || push.Digest != wire.KeyringDigest(push.Keyring)) {
			t.Errorf("stored %s, which was not pushed for paris", stored[0].Name)
		}
		tells := answer.Body.String() + said
		if strings.Contains(tells, z.token) {
			t.Error("the token is told")
		}
		names := push.Namespace + push.Group + push.Site
		if content := string(push.Keyring); len(content) > 32 && !strings.Contains(names, content[:32]) && strings.Contains(tells, content[:32]) {
			t.Error("the keyring is told")
		}
		for _, key := range keysOf(push.Keyring) {
			if !strings.Contains(names, key) && strings.Contains(tells, key) {
				t.Error("a key of the keyring is told")
			}
		}
		if len(body) > 32 && !strings.Contains(names, string(body[:32])) && strings.Contains(tells, string(body[:32])) {
			t.Errorf("the answer repeats the request: %s", answer.Body)
		}
	})
}

// keysOf are the data of the keys of a keyring, as text. What is shorter than half of a key may stand in a text by chance.
func keysOf(content []byte) []string {
	var file struct {
		Elements []struct {
			Data string `json:"data"`
		} `json:"elements"`
	}
	_ = json.Unmarshal(content, &file) // what could be read of it is looked for
	var keys []string
	for _, e := range file.Elements {
		if len(e.Data) >= len(keyData)/2 {
			keys = append(keys, e.Data)
		}
	}
	return keys
}

func TestKeysOfFindsWhatMustNotBeTold(t *testing.T) {
	if got := keysOf([]byte(keyring)); len(got) != 1 || got[0] != keyData {
		t.Errorf("%d keys: the fuzz test looks for none", len(got))
	}
}

func encode(t *testing.T, push wire.KeyringEscrow) []byte {
	t.Helper()
	body, err := json.Marshal(push)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
