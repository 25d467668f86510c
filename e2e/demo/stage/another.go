// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"maps"
	"path/filepath"
	"time"
)

// InstallVersion installs the operator whose images have a tag, through the chart of the checkout repo ("" for this one), and waits until it
// leads. The images of tags other than dev are made by Lab.BuildAnother. More are values beside those of the lab.
func (s *Stage) InstallVersion(ctx context.Context, repo, tag string, more map[string]any) error {
	if repo == "" {
		repo = s.Repo
	}
	s.Say("installing the operator, version %s (chart of %s)", tag, repo)
	values, err := s.OperatorValues()
	if err != nil {
		return err
	}
	for _, key := range []string{"image", "sidecarImage", "backupImage"} {
		if image, is := values[key].(map[string]any); is {
			image["tag"] = tag
		}
	}
	values["podAnnotations"] = map[string]any{"mfg-lab/images": tag}
	delete(values, "upgrades") // charts of before know of none
	maps.Copy(values, more)
	if _, err := s.Helm(ctx, values, "upgrade", "--install", OperatorRelease, filepath.Join(repo, "charts", "mfg"),
		"--namespace", OperatorNamespace, "--timeout", "2m"); err != nil {
		return err
	}
	return s.AwaitOperator(ctx, 2*time.Minute)
}
