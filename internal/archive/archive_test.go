package archive_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/archive"
	"github.com/weir-limiter/weir/internal/testkit"
)

func TestParse(t *testing.T) {
	t.Parallel()
	more := []string{"namespace", "namespace_id"}
	for in, want := range map[string]archive.Location{
		"s3://my-bucket":                 {Bucket: "my-bucket"},
		"s3://my-bucket/":                {Bucket: "my-bucket"},
		"s3://my.bucket/a/b c/":          {Bucket: "my.bucket", Prefix: "a/b c/"},
		"s3://abc/x?region=eu-central-1": {Bucket: "abc", Prefix: "x/", Region: "eu-central-1"},
		"s3://abc?endpoint=http%3A%2F%2Fminio:9000&namespace=a+b": {
			Bucket: "abc", Endpoint: "http://minio:9000", Namespace: "a+b",
		},
		"s3://abc?namespace_id=x%2Fy": {Bucket: "abc", NamespaceID: "x/y"},
	} {
		got, err := archive.Parse(in, more...)
		if err != nil || *got != want {
			t.Errorf("%s: got %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, c := range []struct{ url, field, words string }{
		{"https://bucket/secret", "archive", "s3://BUCKET/PREFIX"},
		{"bucket", "archive", "s3://BUCKET/PREFIX"},
		{"", "archive", "s3://BUCKET/PREFIX"},
		{"s3:bucket", "archive", "must be s3://BUCKET/PREFIX"},
		{"s3://key:secret@bucket", "archive", "credentials come from"},
		{"s3://bucket:9000", "archive", "must be s3://BUCKET/PREFIX"},
		{"s3://", "archive.bucket", "is missing"},
		{"s3:///prefix", "archive.bucket", "is missing"},
		{"s3://?region=x", "archive.bucket", "is missing"},
		{"s3://ab", "archive.bucket", "3 to 63"},
		{"s3://My-Bucket", "archive.bucket", "lower-case"},
		{"s3://bucket/a#b", "archive.prefix", "#"},
		{"s3://bucket/a\nb", "archive.prefix", "control characters"},
		{"s3://bucket/" + strings.Repeat("x", 701), "archive.prefix", "too long"},
		{"s3://bucket?regoin=x", "archive.regoin", "is unknown: must be region or endpoint"},
		{"s3://bucket?region", "archive.region", "must not be empty"},
		{"s3://bucket?region=", "archive.region", "must not be empty"},
		{"s3://bucket?region=EU", "archive.region", "like eu-central-1"},
		{"s3://bucket?region=a&region=b", "archive.region", "twice"},
		{"s3://bucket?endpoint=%zz", "archive.endpoint", "percent"},
		{"s3://bucket?endpoint=localhost", "archive.endpoint", "an address like"},
		{"s3://bucket?endpoint=http://u:secret@h", "archive.endpoint", "a user or password"},
		{"s3://bucket?namespace=a&namespace_id=b", "archive.namespace", "cannot both"},
	} {
		l, err := archive.Parse(c.url, more...)
		e, ok := errors.AsType[*weir.Error](err)
		if l != nil || !ok || e.Code != weir.Invalid || e.Field != c.field ||
			!strings.Contains(e.Reason, c.words) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %+v, %v", c.url, l, err)
		}
	}
	if _, err := archive.Parse("s3://bucket?namespace=a"); !errors.Is(err, weir.Invalid) {
		t.Errorf("a namespace that the caller does not take: got %v", err)
	}
}

// open opens an archive.
func open(t *testing.T, rawURL string) *archive.Archive {
	t.Helper()
	l, err := archive.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// watched is a proxy that keeps the headers of the requests that write.
func watched(t *testing.T, endpoint string) (proxied string, headers func() []http.Header) {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []http.Header
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		if r.In.Method == http.MethodPut {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.In.Header)
		}
	}}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL, func() []http.Header {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestArchive writes, lists and reads, with and without a prefix.
func TestArchive(t *testing.T) {
	t.Parallel()
	endpoint, headers := watched(t, testkit.S3(t, "audit-bucket"))
	for _, prefix := range []string{"", "/limits/prod ü"} {
		a := open(t, "s3://audit-bucket"+prefix+"?region=us-east-1&endpoint="+endpoint)
		if err := a.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, day := range []string{"2024/12/31", "2025/01/01", "2025/01/31", "2025/03/01",
			"2026/02/28"} {
			y, m, d := day[:4], day[5:7], day[8:]
			for i := range 3 {
				key := fmt.Sprintf("audit/year=%s/month=%s/day=%s/audit-s-%d-%d.jsonl.gz", y, m,
					d, i, i)
				if err := a.Put(t.Context(), key, []byte(prefix+day)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, stray := range []string{"audit/year=x/month=01/day=01/a",
			"audit/year=2025/month=13/day=01/a", "audit/README", "audit/year=2025/month=1/day=1/a"} {
			if err := a.Put(t.Context(), stray, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		listDays(t, a)
		noon := date(t, "2025-01-01").Add(12 * time.Hour)
		for day, err := range a.Days(t.Context(), "audit/", noon, noon.Add(1)) {
			if err != nil || day.Format(time.DateOnly) != "2025-01-01" {
				t.Errorf("got %v, %v", day, err)
			}
		}
		var keys []string
		for key, err := range a.Objects(t.Context(), "audit/year=2025/month=01/day=31/") {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
			body, err := a.Read(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil || body.Close() != nil || string(text) != prefix+"2025/01/31" {
				t.Errorf("%s: got %q, %v", key, text, err)
			}
		}
		if len(keys) != 3 || keys[2] != "audit/year=2025/month=01/day=31/audit-s-2-2.jsonl.gz" {
			t.Errorf("got the keys %q", keys)
		}
		if _, err := a.Read(t.Context(), "audit/none"); !errors.Is(err, weir.NotFound) ||
			!strings.Contains(err.Error(), "audit/none") {
			t.Errorf("an object that does not exist: got %v", err)
		}
	}
	if n := len(headers()); n != 2*(5*3+4) {
		t.Errorf("got %d objects written", n)
	}
	for _, h := range headers() {
		if h.Get("Content-Type") != "application/x-ndjson" ||
			!strings.HasPrefix(h.Get("Content-Encoding"), "gzip") ||
			h.Get("X-Amz-Checksum-Crc32") == "" && h.Get("X-Amz-Trailer") == "" {
			t.Errorf("got %v", h)
		}
	}
}

// listDays lists days between bounds.
func listDays(t *testing.T, a *archive.Archive) {
	t.Helper()
	for _, c := range []struct{ from, to, want string }{
		{"", "", "2026-02-28 2025-03-01 2025-01-31 2025-01-01 2024-12-31"},
		{"2025-01-01", "", "2026-02-28 2025-03-01 2025-01-31 2025-01-01"},
		{"2025-01-01", "2025-03-01", "2025-01-31 2025-01-01"},
		{"2025-01-02", "2025-03-02", "2025-03-01 2025-01-31"},
		{"", "2025-01-01", "2024-12-31"}, {"2027-01-01", "", ""},
		{"2025-02-01", "2025-02-28", ""},
	} {
		var got []string
		for day, err := range a.Days(t.Context(), "audit/", date(t, c.from), date(t, c.to)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, day.Format(time.DateOnly))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("from %s to %s: got %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

func date(t *testing.T, s string) time.Time {
	t.Helper()
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestManyObjects lists more objects than a page has.
func TestManyObjects(t *testing.T) {
	t.Parallel()
	a := open(t, "s3://many?region=us-east-1&endpoint="+testkit.S3(t, "many"))
	const n = 1010
	var all sync.WaitGroup
	work := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range work {
				if err := a.Put(t.Context(), fmt.Sprintf("audit/d/%04d", i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	all.Wait()
	var keys []string
	for key, err := range a.Objects(t.Context(), "audit/d/") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if len(keys) != n || !slices.IsSorted(keys) {
		t.Errorf("got %d keys, want %d", len(keys), n)
	}
}

// TestErrors checks that errors name the bucket and say what to do.
func TestErrors(t *testing.T) {
	t.Parallel()
	moto := testkit.S3(t, "there")
	missing := open(t, "s3://not-there/p?region=us-east-1&endpoint="+moto)
	check := func(name string, err error, code weir.Code, words ...string) {
		t.Helper()
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != code {
			t.Errorf("%s: got %v", name, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, without %q", name, err, w)
			}
		}
	}
	check("check", missing.Check(t.Context()), weir.NotFound, "s3://not-there/p/", "create it")
	check("put", missing.Put(t.Context(), "k", nil), weir.NotFound, "s3://not-there/p/k",
		"create it")
	for _, err := range missing.Objects(t.Context(), "audit/") {
		check("list", err, weir.NotFound, "s3://not-there", "create it")
	}
	for _, c := range []struct {
		status int
		code   string
		want   weir.Code
		words  string
	}{
		{403, "AccessDenied", weir.PermissionDenied, "s3:PutObject"},
		{403, "InvalidAccessKeyId", weir.PermissionDenied, "credentials"},
		{403, "InvalidObjectState", weir.Unsupported, "restore"},
		{301, "PermanentRedirect", weir.Invalid, "?region=eu-west-9"},
		{400, "AuthorizationHeaderMalformed", weir.Invalid, "?region=eu-west-9"},
		{501, "NotImplemented", weir.Unavailable, "S3 returned an error"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-9")
			w.WriteHeader(c.status)
			if _, err := fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", c.code); err != nil {
				t.Error(err)
			}
		}))
		a := open(t, "s3://there/p?region=us-east-1&endpoint="+s.URL)
		_, err := a.Read(t.Context(), "k")
		check(c.code, err, c.want, "s3://there/p/k", c.words)
		if c.code == "AccessDenied" {
			if err := a.Check(t.Context()); err != nil {
				t.Errorf("a bucket that must not be listed: got %v", err)
			}
		}
		s.Close()
		if c.code == "NotImplemented" {
			check("nobody", a.Put(t.Context(), "k", nil), weir.Unavailable, "did not answer",
				"s3://there/p/k")
		}
	}
}

// TestNoCredentials checks that nothing is sent without credentials, and that the error says
// where they may be.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	a := open(t, "s3://bucket?region=us-east-1")
	for _, err := range []error{a.Check(t.Context()), a.Put(t.Context(), "k", nil)} {
		if !errors.Is(err, weir.PermissionDenied) ||
			!strings.Contains(err.Error(), "AWS_PROFILE") {
			t.Errorf("got %v", err)
		}
	}
}

// TestNoRegion checks that a bucket without a region is refused, and that one on this machine has
// one.
func TestNoRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	l, err := archive.Parse("s3://bucket")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(t.Context(), l); !errors.Is(err, weir.Invalid) ||
		!strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("got %v", err)
	}
	open(t, "s3://bucket?endpoint=http://127.0.0.1:1")
}
