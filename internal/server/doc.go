// Package server is the process around an [httpapi.Handler]: the listener with its bounds, TLS, the
// bearer-token file, what is read again while it runs, metrics, traces, logs and an orderly end.
//
// What is no HTTP at all never reaches the handler: a garbled request line, headers that are too
// large and headers that come too slowly are answered by net/http itself, in plain text with 400 or
// 431 or not at all, and the connection is closed. Every other answer is the handler's.
package server
