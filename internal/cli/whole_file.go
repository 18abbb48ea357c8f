package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// wholeFile is a file that is written whole or not at all. It gets its name when it is complete;
// until then it has another in the same folder.
type wholeFile struct {
	flag, name string
	file       *os.File
	out        *bufio.Writer
}

// createWhole begins the file that a flag names.
func createWhole(flag, name string) (*wholeFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %s: is no regular file", flag, name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, named(flag, name, err)
	}
	return &wholeFile{flag, name, file, bufio.NewWriterSize(file, 64<<10)}, nil
}

// named says what went wrong with a file by the name that it was to have: until it is complete it
// has another one, which is nobody's business.
func named(flag, name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", flag, name, err)
}

// blame names the file in an error about it that came from elsewhere. Other errors stay.
func (d *wholeFile) blame(err error) error {
	if d == nil || d.file == nil {
		return err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == d.file.Name() {
		return named(d.flag, d.name, err)
	}
	return err
}

// abandon removes an unfinished file. After finish it does nothing.
func (d *wholeFile) abandon() {
	if d == nil || d.file == nil {
		return
	}
	_ = d.file.Close() // nothing in it is wanted any more
	_ = os.Remove(d.file.Name())
	d.file = nil
}

// finish gives the file its name. Without a file it does nothing.
func (d *wholeFile) finish() error {
	if d == nil {
		return nil
	}
	err := errors.Join(d.out.Flush(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.name)
	}
	if err != nil {
		_ = os.Remove(d.file.Name())
		err = named(d.flag, d.name, err)
	}
	d.file = nil
	return err
}
