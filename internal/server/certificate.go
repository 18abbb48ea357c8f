package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"
)

// maxPEM bounds the files of a certificate and its key.
const maxPEM = 1 << 20

// certificate is a pair of files, and what was last read from them.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// load reads both files. Where they do not belong together, the pair in force stays.
func (c *certificate) load() error {
	cert, _, err := readFile(c.certFile, maxPEM)
	if err != nil {
		return err
	}
	key, _, err := readFile(c.keyFile, maxPEM)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

// config makes every new connection use the pair that is in force by then.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}

// expires is when the certificate in force does.
func (c *certificate) expires() time.Time {
	if leaf := c.current.Load().Leaf; leaf != nil {
		return leaf.NotAfter
	}
	return time.Time{}
}
