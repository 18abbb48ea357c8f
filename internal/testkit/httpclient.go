package testkit

import (
	"net/http"
	"time"
)

// maxCallers is the number of concurrent callers whose connections are kept.
const maxCallers = 256

// newHTTPClient returns a client without a timeout, over the given transport or else a new one for
// one server on this machine.
func newHTTPClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = newTransport()
	}
	return &http.Client{Transport: transport}
}

func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns: maxCallers, MaxIdleConnsPerHost: maxCallers,
		IdleConnTimeout: time.Minute,
	}
}
