// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report"
)

// authority sees to the key that signs statements, and to the sites trusting it. A Secret that is missing is made anew
// even for a group that has run: without it no lease can be renewed.
func (r *Reconciler) authority(ctx context.Context, s *scope) error {
	made := false
	secret, err := r.once(ctx, s, v1alpha1.AuthoritySecret(s.key.Name), func() (*corev1.Secret, error) {
		made = true
		private, public, err := newAuthority()
		if err != nil {
			return nil, err
		}
		return render.AuthoritySecret(s.in, private, public), nil
	})
	if err != nil {
		return err
	}
	if made && s.group.Status.Epoch > 0 {
		until := "sites take no statement until they have the new key, which takes minutes, and fence themselves meanwhile"
		if len(s.facts.SignedBy) > 0 {
			until = "the former key, which the operator still has, signs until every site has the new one"
		}
		r.Recorder.Emit(s.group, nil, report.AuthorityReplaced, "Secret %s was missing and was made anew; %s", secret.Name, until)
	}
	current, err := publicKey(secret.Data[render.KeyAuthorityPrivate])
	if err != nil || len(secret.Data[render.KeyAuthorityPublic]) == 0 {
		text := fmt.Sprintf("Secret %s is incomplete; restore it, or delete it to have it made anew", secret.Name)
		s.progress(stuck(report.ReasonSecretIncomplete, text), whenWaiting)
		return errStop
	}
	if s.in.AuthorityPublic, err = trusted(current, s.facts.SignedBy); err != nil {
		return err
	}
	return r.trust(ctx, s)
}

// trusted is what the sites trust: the key of the Secret, and beside it the one that the operator signs with as long as
// that is another. No key is taken from anywhere else.
func trusted(current, signedBy ed25519.PublicKey) (string, error) {
	keys := []ed25519.PublicKey{current}
	if len(signedBy) > 0 && !signedBy.Equal(current) {
		keys = append(keys, signedBy)
	}
	var out []byte
	for _, key := range keys {
		text, err := encodePublic(key)
		if err != nil {
			return "", err
		}
		out = append(out, text...)
	}
	return string(out), nil
}

// trust gives the sites the keys at once and all of them, not when it is a site's turn: running sidecars read the file
// again, and no pod is replaced for it. Whatever else is in a site's ConfigMap waits for its turn.
func (r *Reconciler) trust(ctx context.Context, s *scope) error {
	names := s.sites()
	for site := range s.deployments {
		names[site] = v1alpha1.Site{Name: site} // also of a site that is about to go
	}
	for _, site := range sorted(names) {
		if r.same(s.work(site), s.in.AuthorityPublic) {
			continue
		}
		if err := r.trustAt(ctx, s, site); err != nil {
			return fmt.Errorf("give %s the key: %w", site, err)
		}
	}
	return nil
}

func (r *Reconciler) trustAt(ctx context.Context, s *scope, site string) error {
	wanted := render.ConfigMap(s.in, v1alpha1.Site{Name: site})
	// Live: the cache holds no content of ConfigMaps.
	config := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), config)
	if apierrors.IsNotFound(err) {
		return nil // it is made with its pod
	}
	if err != nil {
		return err
	}
	if belongs(s.group, wanted, config) != nil {
		return nil // whoever applies it says so
	}
	if config.Data[render.ConfigKeyAuthority] != s.in.AuthorityPublic {
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": config.UID},
			"data":     map[string]string{render.ConfigKeyAuthority: s.in.AuthorityPublic},
		})
		if err != nil {
			return err
		}
		if err := r.Client.Patch(ctx, config, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.ManagerController)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trusts[s.work(site)] = s.in.AuthorityPublic
	return nil
}

// same is true if a site was seen to have these keys.
func (r *Reconciler) same(site siteKey, keys string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trusts[site] == keys
}

func (r *Reconciler) forgetTrust(group types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.trusts {
		if key.group == group {
			delete(r.trusts, key)
		}
	}
}

func newAuthority() (private, public []byte, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate authority: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(privateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode authority: %w", err)
	}
	public, err = encodePublic(publicKey)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), public, err
}

func encodePublic(key ed25519.PublicKey) ([]byte, error) {
	pkix, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}), nil
}

// publicKey is the one that belongs to the private key of the Secret. What the Secret says of it is for people.
func publicKey(private []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		// Not wrapped: nothing of a key may get into a message (I11).
		return nil, errors.New("no private key")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%T is not an Ed25519 key", parsed)
	}
	public, _ := key.Public().(ed25519.PublicKey)
	return public, nil
}
