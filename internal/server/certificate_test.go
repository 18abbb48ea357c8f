package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pairOf makes a certificate for this machine, and its key.
func pairOf(t *testing.T, serial int64) (cert, key string) {
	t.Helper()
	return pairUntil(t, serial, time.Now().Add(time.Hour))
}

// pairUntil makes a certificate and key that are valid for the two hours before an instant.
func pairUntil(t *testing.T, serial int64, end time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "weir"},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// startTLS runs a server with a certificate of serial number 1.
func startTLS(t *testing.T, o *Options) (w *world, dir string) {
	t.Helper()
	dir = t.TempDir()
	cert, key := pairOf(t, 1)
	o.CertFile, o.KeyFile = write(t, dir, "cert.pem", cert), write(t, dir, "key.pem", key)
	w = start(t, o)
	w.client.Transport = &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the test checks the serial number
	}
	return w, dir
}

// serial returns the serial number of the certificate that a new connection gets; version is the
// highest that the client speaks.
func (w *world) serial(t *testing.T, version uint16) (int64, error) {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version,
	}}
	conn, err := d.DialContext(t.Context(), "tcp", w.server.Addr().String())
	if err != nil {
		return 0, err
	}
	defer closeQuietly(conn)
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// TestTLS checks that the server speaks HTTP/2 and HTTP/1.1 from TLS 1.2 on, and nothing
// unencrypted.
func TestTLS(t *testing.T) {
	t.Parallel()
	w, _ := startTLS(t, &Options{})
	if !strings.HasPrefix(w.url, "https://") {
		t.Errorf("got %s", w.url)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.Do(r)
	if err != nil || got.StatusCode != http.StatusOK || got.ProtoMajor != 2 {
		t.Fatalf("got %v and error %v, want 200 by HTTP/2", got, err)
	}
	if err := got.Body.Close(); err != nil {
		t.Fatal(err)
	}
	for version, fine := range map[uint16]bool{
		tls.VersionTLS13: true, tls.VersionTLS12: true, tls.VersionTLS11: false, tls.VersionTLS10: false,
	} {
		if _, err := w.serial(t, version); fine != (err == nil) {
			t.Errorf("%s: got error %v, want accepted %t", tls.VersionName(version), err, fine)
		}
	}
	if said := say(t, w.dial(t), hello); !strings.HasPrefix(said, "HTTP/1.0 400 ") {
		t.Errorf("in the clear: got %q, want 400", said)
	}
	figures := w.figures(t, "")
	from := figures["weir_certificate_not_before_timestamp_seconds"]
	at := figures["weir_certificate_not_after_timestamp_seconds"]
	if at < float64(time.Now().Unix()) || at-from != (2*time.Hour).Seconds() {
		t.Errorf("the metrics say that the certificate is valid from %v to %v", from, at)
	}
}

// TestReloadCertificate checks that new connections get the new pair, and that an invalid pair
// changes nothing.
func TestReloadCertificate(t *testing.T) {
	t.Parallel()
	w, dir := startTLS(t, &Options{})
	cert2, key2 := pairOf(t, 2)
	cert3, _ := pairOf(t, 3)
	for _, c := range []struct {
		name, cert, key string
		want            int64
		fine            bool
	}{
		{"another", cert2, key2, 2, true},
		{"a certificate of another key", cert3, key2, 2, false},
		{"no key", cert2, "", 2, false},
		{"no certificate", "garbage", key2, 2, false},
		{"the same again", cert2, key2, 2, true},
	} {
		write(t, dir, "cert.pem", c.cert)
		write(t, dir, "key.pem", c.key)
		if err := w.server.Reload(t.Context()); c.fine != (err == nil) {
			t.Errorf("%s: got %v, want accepted %t", c.name, err, c.fine)
		}
		if got, err := w.serial(t, tls.VersionTLS13); err != nil || got != c.want {
			t.Errorf("%s: got certificate %d and error %v, want %d", c.name, got, err, c.want)
		}
		if got := w.ask(t, "/healthz", "", ""); got.status != http.StatusOK {
			t.Errorf("%s: an open connection got %d", c.name, got.status)
		}
	}
	if said := w.log.String(); strings.Contains(said, "PRIVATE KEY") {
		t.Errorf("the log has a key: %s", said)
	}
}

// TestCertificateWarnings checks that a certificate that clients will refuse, or a key that every
// user can read, is used with a warning, at the start and with each reload.
func TestCertificateWarnings(t *testing.T) {
	t.Parallel()
	w, dir := startTLS(t, &Options{})
	said := func() string { return w.log.String() }
	if strings.Contains(said(), "level=WARN") {
		t.Errorf("a warning of a good pair: %s", said())
	}
	for _, c := range []struct {
		name string
		end  time.Time
		mode os.FileMode
		want string // part of the only warning; empty for none
	}{
		{"expired", time.Now().Add(-24 * time.Hour), 0o600, "the certificate has expired"},
		{"good", time.Now().Add(time.Hour), 0o640, ""},
		{"of the future", time.Now().Add(24 * time.Hour), 0o600, "the certificate is not valid yet"},
		{"everybody's", time.Now().Add(time.Hour), 0o644, "its mode is 0644"},
	} {
		if runtime.GOOS == "windows" && c.mode&0o006 != 0 {
			continue
		}
		before := len(said())
		cert, key := pairUntil(t, 2, c.end)
		write(t, dir, "cert.pem", cert)
		write(t, dir, "key.pem", key)
		if err := os.Chmod(w.server.options.KeyFile, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Reload(t.Context()); err != nil {
			t.Errorf("%s: got %v", c.name, err)
		}
		got := said()[before:]
		if n := strings.Count(got, "level=WARN"); c.want == "" && n > 0 ||
			c.want != "" && (n != 1 || !strings.Contains(got, c.want)) {
			t.Errorf("%s: want %q and no other warning: %s", c.name, c.want, got)
		}
	}
	cert, key := pairUntil(t, 3, time.Now().Add(-time.Hour))
	late := start(t, &Options{CertFile: write(t, dir, "cert.pem", cert), KeyFile: write(t, dir, "late.pem", key)})
	if !strings.Contains(late.log.String(), "the certificate has expired") {
		t.Errorf("no warning at the start: %s", late.log)
	}
}

// TestShutdownHTTP2 checks that a stream in progress is answered, and that the connection then
// ends.
func TestShutdownHTTP2(t *testing.T) {
	t.Parallel()
	store := newSlowStore(t)
	dir := t.TempDir()
	cert, key := pairOf(t, 1)
	w := startOver(t, store, &Options{
		CertFile: write(t, dir, "cert.pem", cert), KeyFile: write(t, dir, "key.pem", key),
	})
	w.client.Transport = &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	answers, stopped := w.endsUnderway(t, store)
	close(store.release)
	if got := <-answers; got.status != http.StatusOK {
		t.Errorf("the stream under way: got %d %s", got.status, got.body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("run: %v", err)
	}
}
