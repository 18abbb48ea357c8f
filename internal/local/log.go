package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// maxLogBytes bounds each of the two files of a log.
	maxLogBytes = 1 << 20
	// olderLog is added to the name of a log for its older file.
	olderLog = ".1"
)

// KeepLog writes what it reads to a file until the input ends. When the file is full it becomes the
// older one, and the one before is removed, so a log never has more than two files of 1 MiB. What
// cannot be written, such as on a full disk, is lost: the server that writes must not wait for it.
func KeepLog(from io.Reader, name string) error {
	k := &keptLog{name: name}
	buffer := make([]byte, 32<<10)
	var lost error
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := k.write(buffer[:n]); err != nil {
				lost = err
			}
		}
		if errors.Is(err, io.EOF) {
			return errors.Join(lost, k.close())
		}
		if err != nil {
			return errors.Join(err, lost, k.close())
		}
	}
}

// keptLog is a log that is written.
type keptLog struct {
	name string
	file *os.File
	size int64
}

func (k *keptLog) write(b []byte) error {
	if k.file != nil && k.size+int64(len(b)) > maxLogBytes {
		if err := k.close(); err != nil {
			return err
		}
		// On Windows it cannot be renamed while somebody reads it, and is written over.
		if os.Rename(k.name, k.name+olderLog) != nil && os.Truncate(k.name, 0) != nil {
			_ = os.Remove(k.name) // as the last resort
		}
	}
	if k.file == nil {
		f, err := os.OpenFile(k.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		k.file, k.size = f, info.Size()
	}
	n, err := k.file.Write(b)
	k.size += int64(n)
	return err
}

func (k *keptLog) close() error {
	if k.file == nil {
		return nil
	}
	f := k.file
	k.file = nil
	return f.Close()
}

// Logs writes the log of the server that runs, or that ran last. With follow, it goes on until the
// server or ctx ends; the end of ctx is no error then.
func (l *Server) Logs(ctx context.Context, to io.Writer, follow bool) error {
	s, err := l.readState()
	if err != nil {
		return err
	}
	e := engine(&java{server: l})
	if s != nil {
		e = l.engineOf(s)
	}
	err = e.logs(ctx, s, to, follow)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no log: DynamoDB Local has not been started with weir local up")
	}
	if follow && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// writeLog writes both files of a log, and what is added, until more reports that no more will come.
func writeLog(
	ctx context.Context, name string, to io.Writer, more func(ctx context.Context) bool,
) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if older, err := os.ReadFile(name + olderLog); err == nil {
		if _, err := to.Write(older); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	for {
		goesOn := more(ctx) // before reading, so that the last words are not missed
		if f, err = copyLog(f, name, to); err != nil {
			return err
		}
		if !goesOn {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// copyLog writes what is left of f, and if f was renamed, also the file that has the name now. It
// returns the file to go on with.
func copyLog(f *os.File, name string, to io.Writer) (*os.File, error) {
	for {
		next, err := successor(f, name)
		if err != nil {
			return f, err
		}
		// Nothing is added to f if it has a successor.
		if _, err := io.Copy(to, f); err != nil {
			return f, fmt.Errorf("output: %w", err)
		}
		if next == nil {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return next, err
		}
		f = next
	}
}

// successor opens the file that has a name now; nil if that is f, or none yet.
func successor(f *os.File, name string) (*os.File, error) {
	had, err := f.Stat()
	if err != nil {
		return nil, err
	}
	has, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(had, has) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}
