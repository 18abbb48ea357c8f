package local

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shelf is a Maven repository with three files, of which one can be spoiled.
type shelf struct {
	files []File
	texts map[string]string
	cut   string // is sent half
	wrong string // is sent with other contents
	asked []string
}

func newShelf(t *testing.T) (s *shelf, at Repository) {
	t.Helper()
	s = &shelf{texts: map[string]string{}}
	for _, name := range []string{"org/a/1/a-1.jar", "org/b/1/b-1.jar", "org/c/1/c-1.jar"} {
		text := strings.Repeat(name, 10_000)
		sum := sha256.Sum256([]byte(text))
		s.texts["/maven/"+name] = text
		s.files = append(s.files, File{name, hex.EncodeToString(sum[:])})
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, Repository{server.URL + "/maven", "the test"}
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := filepath.Base(r.URL.Path)
	s.asked = append(s.asked, name)
	text, ok := s.texts[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case name == s.cut:
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte(text[:len(text)/2]))
		panic(http.ErrAbortHandler)
	case name == s.wrong:
		_, _ = w.Write([]byte("x" + text[1:]))
	default:
		_, _ = w.Write([]byte(text))
	}
}

// names returns what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestFetch spoils the second of three files, and checks that nothing of it is left, that the error
// says what to do, and that the next download fetches only what is missing.
func TestFetch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(s *shelf)
		want  []string // words of the error
	}{
		{"nothing", func(*shelf) {}, nil},
		{"cut", func(s *shelf) { s.cut = "b-1.jar" }, []string{"b-1.jar", "was cut", "run the command again"}},
		{"damaged", func(s *shelf) { s.wrong = "b-1.jar" }, []string{"b-1.jar", "SHA-256", "must have", "the test"}},
		{"missing", func(s *shelf) { s.files[1].Path = "org/b/1/none.jar" }, []string{"none.jar", "404", "the test"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, at := newShelf(t)
			right := slices.Clone(s.files)
			c.spoil(s)
			dir := filepath.Join(t.TempDir(), "new")
			var last Progress
			f := &Fetcher{Folder: dir, Repository: at, Files: s.files, Progress: func(p Progress) { last = p }}
			err := f.Fetch(t.Context())
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("got %v, want %q in it", err, word)
				}
			}
			if got := names(t, dir); c.want != nil && !slices.Equal(got, []string{"a-1.jar"}) {
				t.Errorf("got %q in the folder, want only the first file", got)
			}
			if last.Of != 3 || last.Bytes == 0 {
				t.Errorf("got progress %+v", last)
			}
			s.cut, s.wrong, s.asked, f.Files = "", "", nil, right
			if err := f.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []string{"b-1.jar", "c-1.jar"}
			if c.want == nil {
				want = nil
			}
			if !slices.Equal(s.asked, want) {
				t.Errorf("the second time it asked for %q, want %q", s.asked, want)
			}
			if got := names(t, dir); len(got) != 3 {
				t.Errorf("got %q in the folder", got)
			}
		})
	}
}

// TestFetchSums checks that the error of a wrong sum names both sums.
func TestFetchSums(t *testing.T) {
	t.Parallel()
	s, at := newShelf(t)
	s.files[0].SHA256 = strings.Repeat("0", 64)
	text := sha256.Sum256([]byte(s.texts["/maven/org/a/1/a-1.jar"]))
	err := (&Fetcher{Folder: t.TempDir(), Repository: at, Files: s.files}).Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), s.files[0].SHA256) ||
		!strings.Contains(err.Error(), hex.EncodeToString(text[:])) {
		t.Errorf("got %v, want both sums", err)
	}
}

// TestFetchRepairs checks that a file that was damaged on the disk is fetched again.
func TestFetchRepairs(t *testing.T) {
	t.Parallel()
	s, at := newShelf(t)
	f := &Fetcher{Folder: t.TempDir(), Repository: at, Files: s.files}
	if err := f.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(f.Folder, "c-1.jar")
	if err := os.WriteFile(damaged, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.asked = nil
	if err := f.Fetch(t.Context()); err != nil || !slices.Equal(s.asked, []string{"c-1.jar"}) {
		t.Errorf("got %v, and asked for %q, want the damaged file", err, s.asked)
	}
	if sum, err := sumOf(damaged); err != nil || sum != s.files[2].SHA256 {
		t.Errorf("got %s, %v, want the right file", sum, err)
	}
}
