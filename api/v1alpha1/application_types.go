// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"net"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplicationSpec is the database and the account of the application of a group.
//
// +kubebuilder:validation:XValidation:rule="!(self.database in ['mysql', 'sys', 'information_schema', 'performance_schema', 'ndbinfo']) && !self.database.startsWith('mfg_')",message="the name belongs to MySQL or to the operator: choose another name for the database",fieldPath=".database",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!(self.database in ['ibdata1', 'ibtmp1', 'ib_buffer_pool', 'undo_001', 'undo_002', 'mysql_upgrade_history'])",message="a file of MySQL has this name, where the database would get its directory: choose another name for the database",fieldPath=".database",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="has(self.user) || self.database.size() <= 32",message="a user of MySQL has at most 32 characters, and is named like the database by default: set application.user",fieldPath=".user",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!((has(self.user) ? self.user : self.database) in ['root', 'mysql', 'sys', 'event_scheduler']) && !(has(self.user) ? self.user : self.database).startsWith('mfg_')",message="the name belongs to MySQL or to the operator: set application.user to another one",fieldPath=".user",reason=FieldValueInvalid
type ApplicationSpec struct {
	// database is made on the active site once it is open, if there is none of that name. Lower-case letters, digits, '_' and '-', at most 64
	// characters, a letter first.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]*$`
	Database string `json:"database"`
	// user has all rights on that database and no other. Each site of a new group makes it with its data directory. Characters as in database,
	// at most 32. Default: the name of the database.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]*$`
	User string `json:"user,omitempty"`
}

// Account is the user of MySQL.
func (a *ApplicationSpec) Account() string {
	if a.User != "" {
		return a.User
	}
	return a.Database
}

// ApplicationStatus says that what spec.application asks for was made. It is not made again: who drops it wants it gone.
type ApplicationStatus struct {
	// database that was made, or was there already.
	//
	// +optional
	Database string `json:"database,omitempty"`
	// user that owns it.
	//
	// +optional
	User string `json:"user,omitempty"`
	// madeAt is when the active site and another one had it.
	//
	// +optional
	MadeAt *metav1.Time `json:"madeAt,omitempty"`
}

// ApplicationSecret holds what an application needs to log in.
func ApplicationSecret(group string) string { return fmt.Sprintf("mysql-%s-app", group) }

// Keys of the Secret of an application. Of one that a person has made only the first two have to be there.
const (
	ApplicationUsername = "username"
	ApplicationPassword = "password"
	ApplicationDatabase = "database"
	ApplicationHost     = "host"
	ApplicationPort     = "port"
	ApplicationURI      = "uri"
	ApplicationJDBC     = "jdbc-uri"
	// ApplicationNextPassword is there only while the password is being replaced: applications have the other one.
	ApplicationNextPassword = "next-password"
)

// ApplicationURIs is all that an application needs to log in, in one line, for clients of MySQL and for JDBC.
func ApplicationURIs(user, password, host, port, database string) (uri, jdbc string) {
	at := net.JoinHostPort(host, port)
	uri = (&url.URL{Scheme: "mysql", User: url.UserPassword(user, password), Host: at, Path: "/" + database}).String()
	jdbc = (&url.URL{Scheme: "jdbc:mysql", Host: at, Path: "/" + database, RawQuery: url.Values{"user": {user}, "password": {password}}.Encode()}).String()
	return uri, jdbc
}
