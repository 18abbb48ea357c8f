// Package local runs DynamoDB Local on this machine, one for each user, for trying things out and
// for development. The commands of `weir local` call it.
//
// A [Server] keeps everything in one folder: the jars, which are fetched once ([Fetcher]) and
// checked against the sums in files.txt; the log; and a state file that says what runs. A lock on
// the folder keeps two calls of [Server.Up] apart. The state names the process with the time at
// which it was started, so that another process with the same number is never taken for it. It is
// written before the process becomes Java (waiting.go), so that none is forgotten.
//
// The server runs with Java, and if there is none, in a container.
package local
