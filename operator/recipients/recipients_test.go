// SPDX-License-Identifier: Apache-2.0

package recipients_test

import (
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/recipients"
	"github.com/mysql-mfg/mfg/operator/render"
)

const (
	good   = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	typo   = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8q"
	plugin = "age1yubikey1q2w7u3vpya839jxxuq8g0sedh3d740d4xvn639sqhr95ejj8vu3hyfumptt"
)

func group(of ...string) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{Name: "plain"}, {Name: "nightly", Encryption: &v1alpha1.BackupEncryption{Recipients: of}}},
		PITR:     &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"},
	}
	return g
}

// archiving is the Deployment of a site whose archiver has these recipients.
func archiving(of ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: render.ContainerMySQL}, {Name: render.ContainerArchiver, Env: []corev1.EnvVar{
		{Name: "GOMEMLIMIT", Value: "1"}, {Name: wire.EnvArchiverConfig, Value: wire.ArchiverConfig{Recipients: of}.Text()},
	}}}
	return d
}

func TestMalformedRecipientsAreNamed(t *testing.T) {
	quantum, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		group *v1alpha1.MysqlFailoverGroup
		want  string
	}{
		"no backups":      {&v1alpha1.MysqlFailoverGroup{}, ""},
		"a good one":      {group(good), ""},
		"post-quantum":    {group(quantum.Recipient().String()), ""},
		"a wrong letter":  {group(good, typo), "nightly (recipients[1])"},
		"of a plugin":     {group(plugin), "nightly (recipients[0])"},
		"two in one text": {group(good + "\n" + good), "nightly (recipients[0])"},
	} {
		if got := recipients.Refusal(&tc.group.Spec); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A pod is given no recipient that its archiver cannot use, and nothing is archived in the clear that was to be encrypted.
func TestTheArchiverKeepsItsRecipients(t *testing.T) {
	for name, tc := range map[string]struct {
		group    *v1alpha1.MysqlFailoverGroup
		live     *appsv1.Deployment
		archives bool
		want     []string
	}{
		"good ones":                   {group(good), archiving(), true, []string{good}},
		"a wrong letter":              {group(typo), archiving(good), true, []string{good}},
		"a wrong letter, beside one":  {group(good, typo), archiving(good), true, []string{good}},
		"it archived in the clear":    {group(typo), archiving(), false, nil},
		"it has malformed ones":       {group(typo), archiving(plugin), false, nil},
		"there is no archiver yet":    {group(typo), &appsv1.Deployment{}, false, nil},
		"there is no Deployment yet":  {group(typo), nil, false, nil},
		"nothing is archived, anyway": {&v1alpha1.MysqlFailoverGroup{}, nil, false, nil},
	} {
		before := tc.group.DeepCopy()
		out := recipients.Usable(tc.group, tc.live)
		p, archives := render.ArchiveProfile(&out.Spec)
		if archives != tc.archives || archives && !slices.Equal(p.Encryption.Recipients, tc.want) {
			t.Errorf("%s: archives %t, %+v", name, archives, p.Encryption)
		}
		if tc.group.Spec.Backup != nil && !slices.Equal(tc.group.Spec.Backup.Profiles[1].Encryption.Recipients, before.Spec.Backup.Profiles[1].Encryption.Recipients) {
			t.Errorf("%s: the group itself was changed", name)
		}
	}
}
