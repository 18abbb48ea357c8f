package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// decisionFile is where the decisions of a replay are written. The file gets its name when it is complete;
// until then it has another in the same folder.
type decisionFile struct {
	name string
	file *os.File
	out  *bufio.Writer
}

func createDecisions(name string) (*decisionFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, named(name, err)
	}
	return &decisionFile{name: name, file: file, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

// named says what went wrong with the log by the name that it was to have: until it is complete it has
// another one, which is nobody's business.
func named(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("--decisions %s: %w", name, err)
}

// abandon removes an unfinished log. After finish it does nothing.
func (d *decisionFile) abandon() {
	if d == nil || d.file == nil {
		return
	}
	_ = d.file.Close() // nothing in it is wanted any more
	_ = os.Remove(d.file.Name())
	d.file = nil
}

// finish gives the file its name. Without a file it does nothing.
func (d *decisionFile) finish() error {
	if d == nil {
		return nil
	}
	err := errors.Join(d.out.Flush(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.name)
	}
	if err != nil {
		_ = os.Remove(d.file.Name())
		err = named(d.name, err)
	}
	d.file = nil
	return err
}
