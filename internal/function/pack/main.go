// Command pack puts the program of a Lambda function into a zip archive. The same program always
// gives the same bytes.
//
//	pack OUTPUT.zip PROGRAM
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack OUTPUT.zip PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(output, program string) error {
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	packed, err := pack(code)
	if err != nil {
		return err
	}
	return os.WriteFile(output, packed, 0o600)
}

// bootstrap is the name of the program that Lambda starts.
const bootstrap = "bootstrap"

// pack returns the archive of a program. Its time is the earliest that a zip archive can have, so
// that it does not depend on when the program was built.
func pack(program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{
		Name: bootstrap, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	h.SetMode(0o755)
	f, err := w.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
