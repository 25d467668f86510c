// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/image"
)

// BuildAnother builds the images of the operator, the sidecar and backups once more, from the checkout repo ("" for the one that the lab was
// started from), under another tag than dev, and loads them on every node. The programs have a build id of their own: also of the
// same sources they are another version. Those of the tag dev, and what is known of them, stay as they are.
func (c *Cluster) BuildAnother(ctx context.Context, repo, tag string) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	if repo == "" {
		repo = s.Repo
	}
	for _, command := range []string{"operator", "sidecar", "backup"} {
		began, name := time.Now(), "localhost/mfg-"+command+":"+tag
		binary := filepath.Join(c.dir, "images", command+"-"+tag)
		args := []string{"build", "-p", "2", "-trimpath", "-ldflags", "-s -w -buildid=" + tag, "-o", binary, "./" + command}
		if err := c.goRun(ctx, repo, args); err != nil {
			return fmt.Errorf("compile %s: %w", command, err)
		}
		tar := binary + ".tar"
		if _, err := image.Write(tar, image.Config{Name: name, Entrypoint: []string{"/" + command}, User: "65532:65532", WorkingDir: "/"}, image.Static(binary, command)); err != nil {
			return err
		}
		if err := c.LoadImage(ctx, tar); err != nil {
			return err
		}
		c.say("built and loaded %s in %.1fs", name, time.Since(began).Seconds())
	}
	return nil
}
