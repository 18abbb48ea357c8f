package local

import (
	_ "embed"
	"path"
	"strings"
)

// Version is the version of DynamoDB Local.
const Version = "3.1.0"

// files has a line for each jar that DynamoDB Local needs to run: its SHA-256 and its path in a
// Maven repository. `make dynamodb-files` writes it.
//
//go:embed files.txt
var files string

// File is a file of DynamoDB Local.
type File struct {
	// Path is its path in a Maven repository.
	Path string
	// SHA256 is the sum of its contents, in hexadecimal digits.
	SHA256 string
}

// Name is its name in the folder of the server.
func (f *File) Name() string { return path.Base(f.Path) }

// Files returns the files that DynamoDB Local needs to run, besides Java.
func Files() []File {
	var all []File
	for line := range strings.Lines(files) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		all = append(all, File{name, sum})
	}
	return all
}
