package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// fingerprint stands for what a group of files is at one instant.
type fingerprint [sha256.Size]byte

// fileState is what a file was when it was read.
type fileState struct {
	name string
	data []byte
	mode os.FileMode
	err  error // why it cannot be read, without the name
}

// readFiles reads each of the files, which have at most so many bytes.
func readFiles(files []string, most int64) []fileState {
	states := make([]fileState, 0, len(files))
	for _, name := range files {
		s := fileState{name: name}
		s.data, s.mode, s.err = readFile(name, most)
		states = append(states, s)
	}
	return states
}

// fingerprintOf stands for these contents and, where modes count, for them too. A file that cannot be
// read counts by its error.
func fingerprintOf(states []fileState, modes bool) fingerprint {
	h := sha256.New()
	for i := range states {
		s := &states[i]
		if s.err != nil {
			h.Write(fmt.Appendf(nil, "error %v\n", s.err))
			continue
		}
		if modes {
			h.Write(fmt.Appendf(nil, "mode %v\n", s.mode))
		}
		h.Write(fmt.Appendf(nil, "bytes %d\n", len(s.data)))
		h.Write(s.data)
	}
	return fingerprint(h.Sum(nil))
}

// readFile returns what is in a regular file of at most so many bytes, and its mode. Its errors do not
// name the file.
func readFile(name string, most int64) ([]byte, os.FileMode, error) {
	info, err := os.Stat(name) // merely to open a device may do something
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	return readRegular(name, most)
}

// readRegular opens a file without waiting for anybody, as a pipe would make it, and looks at what it
// has opened: the name may stand for something else than a moment ago.
func readRegular(name string, most int64) ([]byte, os.FileMode, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err := f.Stat()
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, 0, withoutPath(err)
	case int64(len(data)) > most:
		return nil, 0, fmt.Errorf("has more than %d bytes", most)
	}
	return data, info.Mode(), nil
}

var errNotRegular = errors.New("is not a regular file")

// withoutPath returns the cause of an error of package os, which names the file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// ReadLimits reads a limits file as [New] does. Its errors are [*FileError]s.
func ReadLimits(file string) ([]byte, error) {
	data, _, err := readFile(file, maxLimitsFile)
	if err != nil {
		return nil, &FileError{Option: "limits", File: file, Err: err}
	}
	return data, nil
}
