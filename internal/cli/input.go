package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-limiter/weir/internal/text"
)

// standardInput is the file name that means it.
const standardInput = "-"

// open opens a file to read, or standard input. A folder, or a file of more than most bytes, is
// refused; what has no size must be bounded by whoever reads it. What makes its reader wait, such
// as a pipe or a terminal, is waited for until ctx ends.
func (a *app) open(ctx context.Context, name string, most int64) (io.ReadCloser, error) {
	if name == standardInput {
		return readUntil(ctx, a.streams.In, io.NopCloser(nil)), nil
	}
	f, err := openUntil(ctx, name)
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
		return readUntil(ctx, f, f), nil
	}
	_ = f.Close() // it was only looked at
	return nil, err
}

// openUntil opens a file until ctx ends: a named pipe is open only when somebody writes to it.
func openUntil(ctx context.Context, name string) (*os.File, error) {
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

// untilReader is a reader that ends with a context. What it reads from is closed with it.
type untilReader struct {
	*io.PipeReader

	from io.Closer
}

// Close ends the reading.
func (u *untilReader) Close() error { return errors.Join(u.PipeReader.Close(), u.from.Close()) }

// readUntil reads from r until ctx ends: nothing else would wake up who waits for a terminal or a
// pipe. A read that is under way then is left alone, unless to close what it reads from ends it.
func readUntil(ctx context.Context, r io.Reader, from io.Closer) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		stop()
		in.CloseWithError(err)
	}()
	return &untilReader{out, from}
}

// read returns the whole of a file, or an error if it has more than most bytes.
func (a *app) read(ctx context.Context, name string, most int64) ([]byte, error) {
	f, err := a.open(ctx, name, most)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", inputName(name), err)
	}
	if int64(len(data)) > most {
		return nil, tooLarge(inputName(name), most)
	}
	return data, nil
}

func tooLarge(name string, most int64) error {
	return fmt.Errorf("%s: is larger than %s bytes", name, text.FormatInt(most))
}

// inputName is what messages call a file.
func inputName(name string) string {
	if name == standardInput {
		return "stdin"
	}
	return name
}
