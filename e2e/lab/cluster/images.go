// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/image"
)

// projectImage is an image of one of the project's own programs.
type projectImage struct {
	name    string
	module  string // where to run go build
	folder  string // the package, below the module
	command string // the binary's name in the image
}

func projectImages() []projectImage {
	return []projectImage{
		{name: "localhost/mfg-operator:dev", module: ".", folder: "operator", command: "operator"},
		{name: "localhost/mfg-sidecar:dev", module: ".", folder: "sidecar", command: "sidecar"},
		{name: "localhost/mfg-backup:dev", module: ".", folder: "backup", command: "backup"},
		{name: "localhost/mfg-e2e:dev", module: "e2e", folder: "writer", command: "writer"},
	}
}

// S3Image is the image of an S3 server. It is built when somebody asks for it: what it is made of takes a minute to compile, and most
// who start a lab have no use for it.
const S3Image = "localhost/s3:1"

// BuildS3Image builds S3Image from the checkout repo ("" for the one that the lab was started from) and loads it on every node.
func (c *Cluster) BuildS3Image(ctx context.Context, repo string) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	if repo == "" {
		repo = s.Repo
	}
	began := time.Now()
	tar, err := c.buildProject(ctx, repo, projectImage{name: S3Image, module: "e2e", folder: "s3", command: "s3"})
	if err != nil {
		return err
	}
	if tar == "" {
		return fmt.Errorf("build %s: the checkout %s has no S3 server", S3Image, repo)
	}
	if err := c.LoadImage(ctx, tar); err != nil {
		return err
	}
	c.say("built and loaded %s in %.1fs", S3Image, time.Since(began).Seconds())
	return nil
}

// BuildImages builds the project's images from the checkout repo ("" for the one that the lab
// was started from) and loads them on every node. It returns their names.
func (c *Cluster) BuildImages(ctx context.Context, repo string) ([]string, error) {
	s, err := c.state()
	if err != nil {
		return nil, err
	}
	if repo == "" {
		repo = s.Repo
	}
	var built []string
	for _, p := range projectImages() {
		began := time.Now()
		tar, err := c.buildProject(ctx, repo, p)
		if err != nil {
			return built, err
		}
		if tar == "" {
			c.say("no image %s: there is no program in %s yet", p.name, filepath.Join(p.module, p.folder))
			continue
		}
		if err := c.LoadImage(ctx, tar); err != nil {
			return built, err
		}
		c.say("built and loaded %s in %.1fs", p.name, time.Since(began).Seconds())
		built = append(built, p.name)
	}
	caches, err := c.buildCacheImages(ctx, repo)
	return append(built, caches...), err
}

// buildProject returns the image's archive, "" where there is nothing to build.
func (c *Cluster) buildProject(ctx context.Context, repo string, p projectImage) (string, error) {
	if !exists(filepath.Join(repo, p.module, p.folder, "main.go")) {
		return "", nil
	}
	c.building.Lock()
	defer c.building.Unlock()
	dir := filepath.Join(c.dir, "images")
	binary := filepath.Join(dir, p.command)
	args := []string{"build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./" + p.folder}
	if err := c.goRun(ctx, filepath.Join(repo, p.module), args); err != nil {
		return "", fmt.Errorf("compile %s: %w", p.folder, err)
	}
	tar := binary + ".tar"
	_, err := image.Write(tar, image.Config{
		Name: p.name, Entrypoint: []string{"/" + p.command}, User: "65532:65532", WorkingDir: "/",
	}, image.Static(binary, p.command))
	return tar, err
}

// LoadImage imports a docker-archive tar on every node that is not dead.
func (c *Cluster) LoadImage(ctx context.Context, tar string) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if s.Killed[n.Name] {
			c.say("node %s is dead and does not get %s", n.Name, tar)
			continue
		}
		if err := importImage(ctx, c.nodeConfig(n).Run+"/containerd.sock", tar); err != nil {
			return fmt.Errorf("load image on %s: %w", n.Name, err)
		}
	}
	return nil
}

func importImage(ctx context.Context, socket, tar string) error {
	_, err := output(ctx, "ctr", "-a", socket, "-n", "k8s.io", "images", "import", tar)
	return err
}

// baseImages makes the images that do not depend on the project: pause, CoreDNS and MySQL. It
// returns their archives, named after what they are made of.
func (c *Cluster) baseImages(ctx context.Context, repo, cache string) ([]string, error) {
	mysql, err := c.mysqlImage(ctx, cache)
	if err != nil {
		return nil, err
	}
	pause := filepath.Join(c.dir, "bin", "pause")
	if err := c.goRun(ctx, filepath.Join(repo, "e2e"), []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", pause, "./lab/pause"}); err != nil {
		return nil, fmt.Errorf("compile pause: %w", err)
	}
	tars := []string{mysql}
	for _, i := range []struct{ name, binary string }{
		{"localhost/pause:1", "pause"}, {"localhost/coredns:1", "coredns"},
	} {
		binary := filepath.Join(c.dir, "bin", i.binary)
		tar := filepath.Join(c.dir, "images", i.binary+".tar")
		if _, err := image.Write(tar, image.Config{
			Name: i.name, Entrypoint: []string{"/" + i.binary}, User: "65532:65532",
		}, image.Static(binary, i.binary)); err != nil {
			return nil, err
		}
		tars = append(tars, tar)
	}
	return tars, nil
}
