package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// answerWriter passes on what a handler answers, and records the status and the number of bytes.
type answerWriter struct {
	http.ResponseWriter

	left   func() bool // whether the client has left
	status int         // 0 until the answer has begun
	late   bool        // the answer began after the client had left
	bytes  int64
}

// WriteHeader records the status, unless it is informational: then the answer has not begun.
func (w *answerWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// begin records the status.
func (w *answerWriter) begin(status int) {
	if w.status == 0 {
		w.late = w.left()
		w.status = status
	}
}

// Write counts what is written.
func (w *answerWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom lets the writer below send a file in its own way.
func (w *answerWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// Flush is for handlers that ask for an [http.Flusher].
func (w *answerWriter) Flush() { _ = w.FlushError() }

// FlushError is for [http.ResponseController].
func (w *answerWriter) FlushError() error {
	w.begin(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is for handlers that ask for an [http.Hijacker].
func (w *answerWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begin(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for the rest of [http.ResponseController].
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
