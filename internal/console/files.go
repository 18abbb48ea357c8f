package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-limiter/weir/internal/text"
)

// StandardInput is the file name that means it.
const StandardInput = "-"

// Open opens a file to read, or standard input. A folder, or a file of more than most bytes, is
// refused; what has no size must be bounded by whoever reads it. What makes its reader wait, such
// as a pipe or a terminal, is waited for until ctx ends.
func (a *App) Open(ctx context.Context, name string, most int64) (io.ReadCloser, error) {
	if name == StandardInput {
		return newContextReader(ctx, a.Streams.In, io.NopCloser(nil)), nil
	}
	f, err := openContext(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fmt.Errorf("%s: is a folder", name)
	case info.Size() > most:
		err = tooLarge(name, most)
	case info.Mode().IsRegular():
		return f, nil
	default:
		return newContextReader(ctx, f, f), nil
	}
	_ = f.Close() // it was only looked at
	return nil, err
}

// openContext opens a file until ctx ends: a named pipe is open only when somebody writes to it.
func openContext(ctx context.Context, name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return os.Open(name) // at once
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened)
	go func() {
		f, err := os.Open(name)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done():
			if err == nil {
				_ = f.Close() // nobody wants it anymore
			}
		}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// contextReader is a reader that ends with a context. What it reads from is closed with it.
type contextReader struct {
	*io.PipeReader

	from io.Closer
}

// Close ends the reading.
func (u *contextReader) Close() error { return errors.Join(u.PipeReader.Close(), u.from.Close()) }

// newContextReader reads from r until ctx ends: nothing else would wake up who waits for a terminal or a
// pipe. A read that is under way then is left alone, unless to close what it reads from ends it.
func newContextReader(ctx context.Context, r io.Reader, from io.Closer) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		stop()
		in.CloseWithError(err)
	}()
	return &contextReader{out, from}
}

// Read returns the whole of a file, or an error if it has more than most bytes.
func (a *App) Read(ctx context.Context, name string, most int64) ([]byte, error) {
	f, err := a.Open(ctx, name, most)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", InputName(name), err)
	}
	if int64(len(data)) > most {
		return nil, tooLarge(InputName(name), most)
	}
	return data, nil
}

func tooLarge(name string, most int64) error {
	return fmt.Errorf("%s: is larger than %s bytes", name, text.FormatInt(most))
}

// InputName is what messages call a file.
func InputName(name string) string {
	if name == StandardInput {
		return "stdin"
	}
	return name
}

// AtomicFile is a file that is written whole or not at all. It gets its name when it is complete;
// until then it has another in the same folder.
type AtomicFile struct {
	Flag, Name string
	file       *os.File
	Out        *bufio.Writer
}

// CreateWhole begins the file that a flag names.
func CreateWhole(flag, name string) (*AtomicFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %s: is no regular file", flag, name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, NameFile(flag, name, err)
	}
	return &AtomicFile{flag, name, file, bufio.NewWriterSize(file, 64<<10)}, nil
}

// NameFile says what went wrong with a file by the name that it was to have: until it is complete it
// has another one, which is nobody's business.
func NameFile(flag, name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", flag, name, err)
}

// NameError names the file in an error about it that came from elsewhere. Other errors stay.
func (d *AtomicFile) NameError(err error) error {
	if d == nil || d.file == nil {
		return err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == d.file.Name() {
		return NameFile(d.Flag, d.Name, err)
	}
	return err
}

// Discard removes an unfinished file. After finish it does nothing.
func (d *AtomicFile) Discard() {
	if d == nil || d.file == nil {
		return
	}
	_ = d.file.Close() // nothing in it is wanted any more
	_ = os.Remove(d.file.Name())
	d.file = nil
}

// Commit gives the file its name. Without a file it does nothing.
func (d *AtomicFile) Commit() error {
	if d == nil {
		return nil
	}
	err := errors.Join(d.Out.Flush(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.Name)
	}
	if err != nil {
		_ = os.Remove(d.file.Name())
		err = NameFile(d.Flag, d.Name, err)
	}
	d.file = nil
	return err
}
