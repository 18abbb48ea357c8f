package cli

import (
	"context"
	"fmt"
	"io"
	"os"
)

// standardInput is the file name that means it.
const standardInput = "-"

// open opens a file to read, or standard input until ctx ends. A folder, or a file of more than most
// bytes, is refused; what has no size must be bounded by whoever reads it.
func (a *app) open(ctx context.Context, name string, most int64) (io.ReadCloser, error) {
	if name == standardInput {
		return readUntil(ctx, a.streams.In), nil
	}
	f, err := os.Open(name)
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
	default:
		return f, nil
	}
	_ = f.Close() // it was only looked at
	return nil, err
}

// readUntil reads from r until ctx ends: nothing else would wake up who waits for a terminal. A read
// that is under way then is left alone.
func readUntil(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		stop()
		in.CloseWithError(err)
	}()
	return out
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
	return fmt.Errorf("%s: is larger than %s bytes", name, thousands(most))
}

// inputName is what messages call a file.
func inputName(name string) string {
	if name == standardInput {
		return "stdin"
	}
	return name
}
