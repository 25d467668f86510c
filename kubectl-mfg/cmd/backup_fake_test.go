// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// backupAPI is an API server that has backups too, and takes new groups.
type backupAPI struct {
	*fakeAPI
	backups []v1alpha1.MysqlBackup
	// refused replaces the answer to a method and a path below the API group and a namespace, or a whole path.
	refused map[string]func(http.ResponseWriter)
	// did is what was asked for that changes something.
	did []string
	// busy makes so many annotations of a backup fail: somebody else changed it.
	busy int
	// podsOf are the pods of a task.
	podsOf map[string]corev1.PodList
}

func (f *backupAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ours := strings.CutPrefix(r.URL.Path, groupsPath+"/namespaces/")
	namespace, path, _ := strings.Cut(rest, "/")
	if refuse, is := f.refused[r.Method+" "+path]; ours && is {
		refuse(w)
		return
	}
	if refuse, is := f.refused[r.Method+" "+r.URL.Path]; is {
		refuse(w)
		return
	}
	kind, name, _ := strings.Cut(path, "/")
	switch {
	case r.URL.Path == "/api/v1/namespaces/shop/pods" && f.podsOf != nil:
		_, task, _ := strings.Cut(r.URL.Query().Get("labelSelector"), v1alpha1.LabelBackupTask+"=")
		respond(w, http.StatusOK, f.podsOf[task])
	case ours && kind == "mysqlbackups":
		f.serveBackups(w, r, namespace, name)
	case ours && r.Method == http.MethodPost:
		f.createGroup(w, r, namespace)
	default:
		f.fakeAPI.ServeHTTP(w, r)
	}
}

func (f *backupAPI) serveBackups(w http.ResponseWriter, r *http.Request, namespace, name string) {
	at := slices.IndexFunc(f.backups, func(b v1alpha1.MysqlBackup) bool { return b.Namespace == namespace && b.Name == name })
	switch {
	case r.Method == http.MethodPost:
		f.createBackup(w, r)
		return
	case name == "":
		f.listBackups(w, r, namespace)
		return
	case at < 0:
		status(http.StatusNotFound, metav1.StatusReasonNotFound, `mysqlbackups.mysql-mfg.io "`+name+`" not found`)(w)
		return
	}
	b := &f.backups[at]
	switch r.Method {
	case http.MethodPatch:
		f.annotateBackup(w, r, b)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		_ = json.NewDecoder(r.Body).Decode(&options)
		if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != b.UID {
			status(http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition is another")(w)
			return
		}
		f.did = append(f.did, "delete "+name)
		b.DeletionTimestamp = &metav1.Time{Time: noon}
		b.Status.Phase = v1alpha1.BackupDeleting
		respond(w, http.StatusOK, b)
	default:
		respond(w, http.StatusOK, b)
	}
}

func (f *backupAPI) createBackup(w http.ResponseWriter, r *http.Request) {
	var b v1alpha1.MysqlBackup
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil || b.Kind != "MysqlBackup" {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprint(err, b.Kind))(w)
		return
	}
	if slices.ContainsFunc(f.backups, func(have v1alpha1.MysqlBackup) bool { return have.Name == b.Name }) {
		status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "it exists")(w)
		return
	}
	f.did = append(f.did, fmt.Sprintf("create %s of %s by %s %s", b.Name, b.Spec.Group, b.Spec.Profile, b.Spec.Method))
	b.UID, b.ResourceVersion, b.CreationTimestamp = types.UID("uid-"+b.Name), "1", metav1.NewTime(noon)
	f.backups = append(f.backups, b)
	respond(w, http.StatusCreated, b)
}

func (f *backupAPI) listBackups(w http.ResponseWriter, r *http.Request, namespace string) {
	var list v1alpha1.MysqlBackupList
	_, group, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "spec.group=")
	for _, b := range f.backups {
		if b.Namespace == namespace && (group == "" || b.Spec.Group == group) {
			list.Items = append(list.Items, b)
		}
	}
	// One at a time, to show that pages are put together.
	start := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &start)
	if start+1 < len(list.Items) {
		list.Continue = fmt.Sprint(start + 1)
	}
	if len(list.Items) > 0 {
		list.Items = list.Items[start : start+1]
	}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MysqlBackupList"))
	respond(w, http.StatusOK, list)
}

func (f *backupAPI) annotateBackup(w http.ResponseWriter, r *http.Request, b *v1alpha1.MysqlBackup) {
	var patch struct{ Metadata metav1.ObjectMeta }
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &patch); err != nil {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())(w)
		return
	}
	if f.busy > 0 || patch.Metadata.ResourceVersion != b.ResourceVersion || patch.Metadata.UID != b.UID {
		f.busy--
		b.ResourceVersion += "1"
		status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")(w)
		return
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	for key, value := range patch.Metadata.Annotations {
		b.Annotations[key] = value
		f.did = append(f.did, "annotate "+b.Name+" "+strings.TrimPrefix(key, v1alpha1.Domain+"/"))
	}
	b.ResourceVersion += "1"
	respond(w, http.StatusOK, b)
}

func (f *backupAPI) createGroup(w http.ResponseWriter, r *http.Request, namespace string) {
	var g v1alpha1.MysqlFailoverGroup
	if err := json.NewDecoder(r.Body).Decode(&g); err != nil || g.Kind != "MysqlFailoverGroup" || g.Namespace != namespace {
		status(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprint(err, g.Kind))(w)
		return
	}
	g.UID, g.ResourceVersion = types.UID("uid-"+g.Name), "1"
	if r.URL.Query().Get("dryRun") != "" {
		f.did = append(f.did, "rehearse "+g.Name)
	} else {
		f.did = append(f.did, "create group "+g.Name)
		f.groups = append(f.groups, g)
	}
	respond(w, http.StatusCreated, g)
}

// ofOrders is a backup of orders in the namespace shop, complete unless it is changed.
func ofOrders(name string, finished time.Duration, change ...func(*v1alpha1.MysqlBackup)) v1alpha1.MysqlBackup {
	at := func(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }
	b := v1alpha1.MysqlBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: *at(finished - 10*time.Minute)},
		Spec:       v1alpha1.MysqlBackupSpec{Group: "orders", Profile: "nightly"},
		Status: v1alpha1.MysqlBackupStatus{
			Phase: v1alpha1.BackupCompleted, Method: v1alpha1.BackupLogical, Site: "madrid", Epoch: 7, StartedAt: at(finished - 9*time.Minute), FinishedAt: at(finished), Bytes: 4402341478, Size: "4.1GiB",
			GTIDExecuted: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9000", MySQLVersion: "9.7.4", Location: "s3://backups/shop/orders", Encrypted: true, Progress: 100,
			Reason: v1alpha1.ReasonBackupCompleted, Message: "its manifest is in the storage",
		},
	}
	for _, c := range change {
		c(&b)
	}
	return b
}

func verified(outcome v1alpha1.BackupOutcome, message string) func(*v1alpha1.MysqlBackup) {
	return func(b *v1alpha1.MysqlBackup) {
		at := metav1.NewTime(noon.Add(-3 * time.Hour))
		b.Status.Verified = &v1alpha1.BackupVerified{At: &at, Outcome: outcome, Message: message, RestoreSeconds: 412}
	}
}

// waitsVerified is one whose verification was asked for by order, and waits.
func waitsVerified(by string) func(*v1alpha1.MysqlBackup) {
	return func(b *v1alpha1.MysqlBackup) {
		b.Annotations = map[string]string{v1alpha1.AnnotationVerifyBackup: by}
		again := metav1.NewTime(noon.Add(time.Minute))
		b.Status.VerificationWaits = &v1alpha1.BackupVerificationWait{Tries: 2, Order: by, NotBefore: &again, Reason: v1alpha1.ReasonStorageUnreachable, Message: "StorageUnreachable: no route"}
	}
}

func inPhase(phase v1alpha1.BackupPhase, reason v1alpha1.Reason, message string) func(*v1alpha1.MysqlBackup) {
	return func(b *v1alpha1.MysqlBackup) {
		b.Status = v1alpha1.MysqlBackupStatus{Phase: phase, Reason: reason, Message: message, Progress: 42, Site: "madrid", StartedAt: b.Status.StartedAt}
	}
}

// withProfile is a healthy group with one profile, encrypted, and the Secrets that it needs.
func withProfile(t *testing.T, backups ...v1alpha1.MysqlBackup) *backupAPI {
	t.Helper()
	f := &backupAPI{fakeAPI: loadHealthy(t), backups: backups, refused: map[string]func(http.ResponseWriter){}}
	f.groups[0].Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{nightly()}}
	secret := func(name string, keys ...string) {
		s := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("hush-" + key)
		}
		if f.objects == nil {
			f.objects = map[string]any{}
		}
		f.objects["/api/v1/namespaces/shop/secrets/"+name] = s
	}
	secret("keys", v1alpha1.BackupAccessKeyID, v1alpha1.BackupSecretKey)
	secret("ca", v1alpha1.BackupCAKey)
	secret("identity", v1alpha1.BackupIdentityKey)
	return f
}

func nightly() v1alpha1.BackupProfile {
	return v1alpha1.BackupProfile{
		Name: "nightly", Method: v1alpha1.BackupLogical,
		Storage:    v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", Endpoint: "https://s3.example.org", SecretName: "keys", CASecretName: "ca"}},
		Encryption: &v1alpha1.BackupEncryption{Recipients: []string{recipient}, IdentitySecretName: "identity"},
		Schedule:   &v1alpha1.BackupSchedule{Cron: "0 2 * * *"},
	}
}
