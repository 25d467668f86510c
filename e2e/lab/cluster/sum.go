// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// BuildSum changes with the programs in the images of operator and sidecar that the lab in a directory has.
func BuildSum(labDir string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"operator", "sidecar"} {
		f, err := os.Open(filepath.Join(labDir, "images", name))
		if err != nil {
			return "", fmt.Errorf("read image: %w", err)
		}
		_, err = io.Copy(sum, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("read image: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
