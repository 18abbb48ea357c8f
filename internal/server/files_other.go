//go:build !unix

package server

// withoutWaiting is nothing where no name of a file stands for a pipe.
const withoutWaiting = 0
