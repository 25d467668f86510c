// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// secretOf is what the Secret has, what it lacks beside it, and the lines that are made of the other keys as those are now.
func secretOf(group types.NamespacedName, spec *v1alpha1.ApplicationSpec, secret *corev1.Secret) map[string][]byte {
	out := map[string][]byte{}
	maps.Copy(out, secret.Data)
	put := func(key, value string) string {
		if len(out[key]) == 0 {
			out[key] = []byte(value)
		}
		return string(out[key])
	}
	user, password := put(v1alpha1.ApplicationUsername, spec.Account()), put(v1alpha1.ApplicationPassword, v1alpha1.PasswordPrefix+rand.Text())
	database := put(v1alpha1.ApplicationDatabase, spec.Database)
	host := put(v1alpha1.ApplicationHost, v1alpha1.PrimaryService(group.Name)+"."+group.Namespace+".svc")
	port := put(v1alpha1.ApplicationPort, strconv.Itoa(wire.PortMySQL))
	uri, jdbc := v1alpha1.ApplicationURIs(user, password, host, port, database)
	for key, line := range map[string]string{v1alpha1.ApplicationURI: uri, v1alpha1.ApplicationJDBC: jdbc} {
		if len(out[key]) == 0 || ours(secret, key) {
			out[key] = []byte(line)
		}
	}
	return out
}

// ours is true for a key of a Secret that the operator wrote last, or the plugin, which writes no other lines (kubectl mfg app-password).
// Anybody else who wrote it meant what it says.
func ours(secret *corev1.Secret, key string) bool {
	is := false
	for _, entry := range secret.ManagedFields {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return false
		}
		if _, has := fields.Data["f:"+key]; !has {
			continue
		}
		known := entry.Manager == v1alpha1.ManagerController || entry.Manager == v1alpha1.ManagerPlugin
		if !known || entry.Operation != metav1.ManagedFieldsOperationUpdate {
			return false
		}
		is = true
	}
	return is
}
