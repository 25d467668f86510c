// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
)

// Campaign is when the rotation of several sites began, and which keyring each had then. It is kept on the group, so that
// whoever goes on, and from where, knows what is left.
type Campaign struct {
	Began time.Time
	// replicas is true if the active site is not among what is wanted.
	replicas bool
	versions map[string]int64
	// order keeps the text as people read the specification.
	order []string
}

// NewCampaign notes the keyring that each site has now.
func NewCampaign(g *v1alpha1.MysqlFailoverGroup, now time.Time) Campaign {
	c := Campaign{Began: now.UTC().Truncate(time.Second), versions: map[string]int64{}}
	for _, s := range g.Spec.Sites {
		c.order = append(c.order, s.Name)
		c.versions[s.Name] = versionBefore(g, s.Name)
	}
	return c
}

// versionBefore is the keyring version that a site is rotated from. While that is under way it is the seed.
func versionBefore(g *v1alpha1.MysqlFailoverGroup, site string) int64 {
	k := keyrings.SiteStatus(g, site)
	if k.SeedVersion > 0 {
		return k.SeedVersion
	}
	return k.KeyringVersion
}

// campaignLasts is for how long an interrupted campaign is gone on with. Who asks for new keys a day later does not want to be
// told that those of then will do.
const campaignLasts = 24 * time.Hour

// ofReplicas marks the note of a campaign that leaves the active site out.
const ofReplicas = "replicas"

// String is the annotation: 2026-11-03T12:00:00Z paris=3 frankfurt=3, or with the word replicas before the sites.
func (c Campaign) String() string {
	words := []string{c.Began.Format(time.RFC3339)}
	if c.replicas {
		words = append(words, ofReplicas)
	}
	for _, site := range c.order {
		words = append(words, site+"="+strconv.FormatInt(c.versions[site], 10))
	}
	return strings.Join(words, " ")
}

// ParseCampaign reads the note of a campaign from the group.
func ParseCampaign(text string) (Campaign, error) {
	c := Campaign{versions: map[string]int64{}}
	words := strings.Fields(text)
	if len(words) == 0 {
		return c, fmt.Errorf("%q says not when it began", text)
	}
	var err error
	if c.Began, err = time.Parse(time.RFC3339, words[0]); err != nil {
		return c, fmt.Errorf("%q is no time", words[0])
	}
	words = words[1:]
	if len(words) > 0 && words[0] == ofReplicas {
		c.replicas, words = true, words[1:]
	}
	for _, word := range words {
		site, number, _ := strings.Cut(word, "=")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || site == "" || version < 0 {
			return c, fmt.Errorf("%q names no site with its keyring version", word)
		}
		c.versions[site] = version
		c.order = append(c.order, site)
	}
	return c, nil
}

// rotated is true if a site has got new master keys since the campaign began, and is sealed with them. The version alone
// would not do: a clone makes one too, and keeps the keys; after a roll-back the older keys count again.
func (c Campaign) rotated(g *v1alpha1.MysqlFailoverGroup, site string) bool {
	k := keyrings.SiteStatus(g, site)
	return k.Phase == v1alpha1.KeyringSealed && k.RotatedVersion > c.versions[site] && k.KeyringVersion >= k.RotatedVersion
}
