package testkit

import (
	"net/http"
	"time"
)

// maxCallers is how many callers at once keep their connections.
const maxCallers = 256

// newHTTPClient returns a client without a timeout of its own, over the transport given or else a
// new one that is meant for one server on this machine.
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
