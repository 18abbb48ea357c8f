//go:build !unix

package server

import "os"

// withoutWaiting is not needed on systems on which no file name is a pipe.
const withoutWaiting = 0

// lentByRoot is false: files have no modes there.
func lentByRoot(os.FileInfo) bool { return false }
