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

// StandardInput is the file name that stands for standard input.
const StandardInput = "-"

// Open opens a file to read, or standard input. It refuses a folder, and a file of more than most
// bytes; the caller must bound the bytes that it reads from a file without a size. Reads from a
// pipe or a terminal wait until ctx ends.
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
		err = fmt.Errorf("%s: is a directory", name)
	case info.Size() > most:
		err = tooLarge(name, most)
	case info.Mode().IsRegular():
		return f, nil
	default:
		return newContextReader(ctx, f, f), nil
	}
	_ = f.Close() // nothing was read or written
	return nil, err
}

// openContext opens a file until ctx ends: opening a named pipe waits for its writer.
func openContext(ctx context.Context, name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return os.Open(name) // a regular file opens without waiting
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
				_ = f.Close() // the caller has left
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

// contextReader reads until a context ends. Closing it closes its source.
type contextReader struct {
	*io.PipeReader

	from io.Closer
}

// Close ends the reading.
func (u *contextReader) Close() error { return errors.Join(u.PipeReader.Close(), u.from.Close()) }

// newContextReader returns a reader of r that ends with ctx, because a read from a terminal or a
// pipe does not end otherwise. A read in progress at that time continues in its goroutine, unless
// closing the source ends it.
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

// InputName returns the name of a file for messages.
func InputName(name string) string {
	if name == StandardInput {
		return "stdin"
	}
	return name
}

// AtomicFile is a file that is written completely or not at all. It gets its name when it is
// complete; until then it has a temporary name in the same folder. The methods of a nil AtomicFile
// do nothing.
type AtomicFile struct {
	flag, name string
	file       *os.File
	out        *bufio.Writer
}

// CreateAtomic begins the file that a flag names; it returns nil for an empty name.
func CreateAtomic(flag, name string) (*AtomicFile, error) {
	if name == "" {
		return nil, nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %s: is not a regular file", flag, name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	d := &AtomicFile{flag, name, file, bufio.NewWriterSize(file, 64<<10)}
	if err != nil {
		return nil, d.failed(err)
	}
	return d, nil
}

// failed returns an error that names the flag and the intended file, not the temporary one.
func (d *AtomicFile) failed(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", d.flag, d.name, err)
}

// Write writes to the file. An error names the flag and the intended file.
func (d *AtomicFile) Write(data []byte) (int, error) {
	n, err := d.out.Write(data)
	if err != nil {
		err = d.failed(err)
	}
	return n, err
}

// Discard removes an unfinished file. After Commit it does nothing.
func (d *AtomicFile) Discard() {
	if d == nil || d.file == nil {
		return
	}
	_ = d.file.Close() // its contents are discarded
	_ = os.Remove(d.file.Name())
	d.file = nil
}

// Commit gives the file its name.
func (d *AtomicFile) Commit() error {
	if d == nil {
		return nil
	}
	err := errors.Join(d.out.Flush(), d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.name)
	}
	if err != nil {
		_ = os.Remove(d.file.Name())
		err = d.failed(err)
	}
	d.file = nil
	return err
}
