package server

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// fingerprint stands for what a group of files is at one instant: modes and contents.
type fingerprint [sha256.Size]byte

// look returns the fingerprint of files; one that cannot be read counts by its error.
func look(files []string, most int64) fingerprint {
	h := sha256.New()
	for _, name := range files {
		data, info, err := readFile(name, most)
		if err != nil {
			h.Write(fmt.Appendf(nil, "%v\n", err))
			continue
		}
		h.Write(fmt.Appendf(nil, "%v %d\n", info.Mode(), len(data)))
		h.Write(data)
	}
	return fingerprint(h.Sum(nil))
}

// readFile returns a regular file of at most so many bytes.
func readFile(name string, most int64) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(name) // to open a pipe would wait for a writer
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	case int64(len(data)) > most:
		return nil, nil, fmt.Errorf("%s: has more than %d bytes", name, most)
	}
	return data, info, nil
}
