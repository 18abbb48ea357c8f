//go:build !unix

package server

// withoutWaiting is not needed on systems on which no file name is a pipe.
const withoutWaiting = 0
