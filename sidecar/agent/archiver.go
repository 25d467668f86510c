// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mysql-mfg/mfg/api/wire"
)

// ArchiverStatusFile reads what the archiver of this pod wrote. Anything that can write the file may have written it, so it refuses content
// that does not parse as a status.
func ArchiverStatusFile(path string) func() (wire.ArchiverStatus, error) {
	return func() (wire.ArchiverStatus, error) {
		f, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
		if err != nil {
			return wire.ArchiverStatus{}, err
		}
		defer func() { _ = f.Close() }()
		// A pipe or a device in its place must not be read.
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return wire.ArchiverStatus{}, errors.New("the status of the archiver is no file")
		}
		raw, err := io.ReadAll(io.LimitReader(f, wire.MaxArchiverStatusBytes+1))
		if err != nil {
			return wire.ArchiverStatus{}, err
		}
		return wire.ParseArchiverStatus(raw)
	}
}

// getArchiverStatus passes on what the archiver says.
func (a *Agent) getArchiverStatus(w http.ResponseWriter, _ *http.Request) {
	if a.Archiver == nil {
		a.decline(w, http.StatusNotFound, wire.Error{Reason: wire.ReasonNotFound, Error: "no archiver runs in this pod"})
		return
	}
	s, err := a.Archiver()
	switch {
	case errors.Is(err, os.ErrNotExist):
		a.decline(w, http.StatusNotFound, wire.Error{Reason: wire.ReasonNotFound, Error: "the archiver has not said anything yet"})
	case err != nil:
		a.decline(w, http.StatusBadGateway, wire.Error{Reason: wire.ReasonInternal, Error: "what the archiver left is not its status"})
	default:
		reply(w, http.StatusOK, s)
	}
}

// getArchiverTurn says whether this site is the one that archives. It changes nothing and asks MySQL nothing, so anyone may ask.
func (a *Agent) getArchiverTurn(w http.ResponseWriter, _ *http.Request) {
	s := a.now()
	reply(w, http.StatusOK, wire.ArchiverTurn{Epoch: s.Newest().Epoch, Site: s.Newest().ActiveSite, Active: s.Archives()})
}
