package server

import (
	"crypto/tls"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// maxPEM bounds the files of a certificate and its key.
const maxPEM = 1 << 20

// certificate is what was last read from a pair of files.
type certificate struct {
	current atomic.Pointer[tls.Certificate]
}

// load takes a pair of files. Where they do not belong together, the pair in force stays.
func (c *certificate) load(cert, key *fileState) error {
	pair, err := tls.X509KeyPair(cert.data, key.data)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", cert.name, key.name, err)
	}
	c.current.Store(&pair)
	return nil
}

// warnings are what is wrong with the certificate in force, and yet no reason to serve without it.
// A group may read the key: that is how a server without other rights gets it.
func (c *certificate) warnings(now time.Time, key *fileState) []string {
	var all []string
	if leaf := c.current.Load().Leaf; leaf != nil {
		switch {
		case now.After(leaf.NotAfter):
			all = append(all, "the certificate has expired: it was valid until "+
				leaf.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(leaf.NotBefore):
			all = append(all, "the certificate is not valid yet: it will be from "+
				leaf.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	if runtime.GOOS != "windows" && key.mode.Perm()&0o006 != 0 {
		all = append(all, fmt.Sprintf("the certificate's key can be read or changed by everybody on this "+
			"machine: its mode is %04o", key.mode.Perm()))
	}
	return all
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
