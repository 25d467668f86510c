// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// volumeIDFile holds the random name of the data volume.
const volumeIDFile = "volume-id"

// errVolumeID asks for a person: a new name would say that the volume was replaced, and a clone would replace its data.
var errVolumeID = errors.New("the name of the data volume is damaged: " + volumeIDFile + " is empty; " +
	"write the name from status.sites[].volumeID of the group into it, or delete the volume claim of this site and let it be cloned again")

// VolumeID returns the random name of the data volume, and gives it one if it has none: a new volume, or one from
// before volumes had names. Once returned, the name survives a crash and never changes. The caller holds the lock
// of the volume.
func (s Store) VolumeID() (string, error) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, volumeIDFile))
	if errors.Is(err, os.ErrNotExist) {
		id := rand.Text()
		if err := s.write(volumeIDFile, []byte(id+"\n")); err != nil {
			return "", fmt.Errorf("name data volume: %w", err)
		}
		return id, nil
	}
	if err != nil {
		return "", fmt.Errorf("read name of data volume: %w", err)
	}
	id := strings.TrimSpace(string(raw))
	if id == "" {
		return "", errVolumeID
	}
	return id, nil
}

// ForgetVolumeID removes the name, so that the volume gets another one: the data under the old name is gone.
func (s Store) ForgetVolumeID() error {
	if err := os.Remove(filepath.Join(s.Dir, volumeIDFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget name of data volume: %w", err)
	}
	return nil
}
