package manifest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weir-limiter/weir/manifest"
)

// TestDocumentedFiles parses every whole limits file that a page shows, and those in examples.
func TestDocumentedFiles(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?ms)^```yaml\n(version: .*?)^```$")
	found := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllSubmatch(text, -1) {
			found++
			if _, err := manifest.Parse(page, m[1]); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d limits files in the pages, want at least those of the guides", found)
	}
	examples, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(examples) < 3 {
		t.Fatalf("got examples %v and error %v", examples, err)
	}
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manifest.Parse(file, text); err != nil {
			t.Error(err)
		}
	}
}
