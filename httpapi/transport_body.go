package httpapi

import "io"

// exchangeBody is a response's body that tells its exchange what was read, and when it is over.
type exchangeBody struct {
	io.ReadCloser

	exchange *exchange
}

// watch wraps a body. That of a connection which has switched protocols is written to as well.
func (e *exchange) watch(body io.ReadCloser) io.ReadCloser {
	watched := &exchangeBody{body, e}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*exchangeBody
			io.Writer
		}{watched, w}
	}
	return watched
}

// Read reads, and begins to settle after the last byte.
func (b *exchangeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.exchange.keep(p[:n])
	if err != nil {
		b.exchange.finish(true)
	}
	return n, err
}

// Close settles and waits for it.
func (b *exchangeBody) Close() error {
	err := b.ReadCloser.Close()
	b.exchange.finish(true)
	b.exchange.wait()
	return err
}
