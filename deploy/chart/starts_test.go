package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir/deploy/internal/program"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestStarts runs the real program with the arguments and files of each toggle's pod, except on
// DynamoDB: it accepts them, and is ready.
func TestStarts(t *testing.T) {
	t.Parallel()
	limits, err := os.ReadFile(chartFolder + "/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := certificate(t)
	tokens := "tokens: [{name: a, role: call, token: 0123456789abcdef}]"
	mine := map[string]string{
		"limits.yaml": string(limits), "t.yaml": tokens, "tokens.yaml": tokens,
		"tls.crt": cert, "tls.key": key, "cert.pem": cert, "key.pem": key,
	}
	eachToggle(t, func(t *testing.T, o *objects) {
		if hasArg(o.container(), "--store=dynamodb:") {
			return
		}
		s := start(t, o, map[string]map[string]string{"mine": mine})
		s.Transport = &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}
		scheme, _, _ := strings.Cut(s.URL, ":")
		for _, url := range []string{s.URL, scheme + "://" + s.probe} {
			s.Expect(t, http.StatusOK, "GET", url+"/readyz", "")
		}
		s.End()
	})
}

// TestStartsOnDynamoDB does the same with a table on DynamoDB Local. It sets variables of the
// process.
func TestStartsOnDynamoDB(t *testing.T) {
	local := testkit.DynamoDB(t)
	for _, v := range local.Environment() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	table := "{table: chart-" + rand.Text()[:12] + ", region: eu-central-1}"
	o := mustRender(t,
		"store: {kind: dynamodb, query: 'endpoint="+local.Endpoint()+"', dynamodb: "+table+"}")
	var storeURL string
	for _, a := range o.container().Args {
		if url, ok := strings.CutPrefix(a, "--store="); ok {
			storeURL = url
		}
	}
	for _, args := range [][]string{
		{"table", "create", "--lean", "--store", storeURL},
		{"resource", "set-limits", "llm", "rpm:60", "tpm:100000/min", "--store", storeURL},
	} {
		program.Run(t, args, program.NoEnv)
	}
	s := start(t, o, nil)
	s.Expect(t, http.StatusOK, "GET", "http://"+s.probe+"/readyz", "")
	s.Expect(t, http.StatusOK, "POST", s.URL+"/v1/reserve", firstDecision)
}

// certificate makes a certificate of its own and its key, in PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
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
