package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxFileBytes bounds a file. The largest has 10 MB.
	maxFileBytes = 64 << 20
	// fileTimeout bounds the download of one file.
	fileTimeout = 10 * time.Minute
)

// Fetcher downloads the files of DynamoDB Local.
type Fetcher struct {
	// Folder is where the files are kept.
	Folder string
	// Repository is the URL from which they are fetched.
	Repository Repository
	// Files are the files. Default: those of [Files].
	Files []File
	// Progress is called before each file, and while one is read. Default: it is not called.
	Progress func(p Progress)
}

// Progress is the state of a download.
type Progress struct {
	// Done and Of are numbers of files: those that are there, and all.
	Done, Of int
	// Bytes is the number of bytes downloaded.
	Bytes int64
}

// Fetch downloads the files that are missing or damaged. A file gets its name only after its sum
// was checked; so if the download ends early, the next one goes on with the files that are still
// missing. Only one process may fetch into a folder at a time.
func (f *Fetcher) Fetch(ctx context.Context) error {
	if err := os.MkdirAll(f.Folder, 0o700); err != nil {
		return err
	}
	list := f.Files
	if list == nil {
		list = Files()
	}
	p := Progress{Of: len(list)}
	for i := range list {
		file := &list[i]
		sum, err := sumOf(filepath.Join(f.Folder, file.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if sum != file.SHA256 {
			if err := f.fetch(ctx, file, &p); err != nil {
				return fmt.Errorf("fetch DynamoDB Local: %s: %w", file.Name(), err)
			}
		}
		p.Done++
	}
	return nil
}

// sumOf returns the SHA-256 of a file.
func sumOf(name string) (string, error) {
	r, err := os.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, r.Close())
}

// fetch downloads a file to a temporary name, checks it, and renames it.
func (f *Fetcher) fetch(ctx context.Context, file *File, p *Progress) error {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	f.tell(*p)
	body, err := f.get(ctx, file)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	name := filepath.Join(f.Folder, file.Name())
	part := name + ".part"
	sum, err := f.write(part, body, p)
	if err == nil && sum != file.SHA256 {
		err = fmt.Errorf("the file from %s has the SHA-256 %s, and must have %s: it is damaged, or "+
			"not the file that weir was tested with", f.Repository.describe(), sum, file.SHA256)
	}
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		_ = os.Remove(part) // the next download would overwrite it
	}
	return err
}

// get requests a file.
func (f *Fetcher) get(ctx context.Context, file *File) (io.ReadCloser, error) {
	u, err := url.JoinPath(f.Repository.URL, file.Path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", f.Repository.describe(), err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // it is not used
		return nil, fmt.Errorf("%s answered %s", f.Repository.describe(), resp.Status)
	}
	return resp.Body, nil
}

// write writes a download to a file and returns its SHA-256.
func (f *Fetcher) write(name string, body io.Reader, p *Progress) (string, error) {
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	counted := writerFunc(func(b []byte) (int, error) {
		p.Bytes += int64(len(b))
		f.tell(*p)
		return len(b), nil
	})
	n, err := io.Copy(io.MultiWriter(w, h, counted), io.LimitReader(body, maxFileBytes+1))
	err = errors.Join(err, w.Sync(), w.Close())
	if err != nil {
		return "", fmt.Errorf("the download was cut: %w: run the command again, and it goes on from here",
			err)
	}
	if n > maxFileBytes {
		return "", fmt.Errorf("it has more than %d MiB", maxFileBytes>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (f *Fetcher) tell(p Progress) {
	if f.Progress != nil {
		f.Progress(p)
	}
}

// writerFunc is a function as a writer.
type writerFunc func(b []byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
