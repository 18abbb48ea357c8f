package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

const demoLimits = "../../examples/demo.yaml"

// pastedLine is a printed line that runs curl.
type pastedLine struct {
	text, url, body string
	headers         []string
}

// parseLine reads "curl -i URL -H 'NAME: VALUE' -d 'BODY'" as a shell would.
func parseLine(text string) (*pastedLine, error) {
	words, err := shellWords(text)
	if err != nil || len(words) == 0 || words[0] != "curl" {
		return nil, fmt.Errorf("%s: no curl line: %w", text, err)
	}
	l := &pastedLine{text: text}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-i":
		case "-H":
			i++
			l.headers = append(l.headers, words[i])
		case "-d":
			i++
			l.body = words[i]
		default:
			l.url = words[i]
		}
	}
	return l, nil
}

// shellWords splits a line at spaces, except those between single quotes.
func shellWords(text string) ([]string, error) {
	var words []string
	word, quoted, begun := "", false, false
	for _, r := range text {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		case !quoted && strings.ContainsRune("\"\\$`&|;<>()*?#~!{}[]", r):
			return nil, fmt.Errorf("%q means something to a shell", r)
		default:
			word, begun = word+string(r), true
		}
	}
	if quoted {
		return nil, errors.New("a quote is open")
	}
	if begun {
		words = append(words, word)
	}
	return words, nil
}

// send makes the request that curl would make, and returns the status and the body.
func (l *pastedLine) send(ctx context.Context) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(l.body))
	if err != nil {
		return 0, "", err
	}
	for _, h := range l.headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), errors.Join(err, answer.Body.Close())
}

// demoOutput runs the demo, and returns its output line by line. end interrupts the demo and
// returns the result.
func demoOutput(
	t *testing.T, args ...string,
) (lines *bufio.Scanner, end func() (code int, errs string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	read, write := io.Pipe()
	var errs strings.Builder
	done := make(chan int, 1)
	go func() {
		args := append([]string{"demo", "--limits", demoLimits, "--listen", "127.0.0.1:0"}, args...)
		code := runE(ctx, args, console.Streams{In: strings.NewReader(""), Out: write, Err: &errs}, noEnv)
		_ = write.Close()
		done <- code
	}()
	return bufio.NewScanner(read), func() (int, string) {
		cancel()
		_ = read.Close() // does not wait for output that is still to come
		return <-done, errs.String()
	}
}

// TestDemo checks that the demo shows decisions of both kinds while it plays, and that the printed
// commands do what the text beside them says, however often they are pasted, until the demo is
// interrupted.
func TestDemo(t *testing.T) {
	t.Parallel()
	out, end := demoOutput(t, "--trace", liveTrace(t, 300), "--speed", "100000", "--latency", "1s")
	var pasted []*pastedLine
	seen := map[string]bool{}
	for len(pasted) < 3 && out.Scan() {
		text := out.Text()
		for _, begin := range []string{
			"serving ", "first admitted: tenant-", "first denied:   tenant-", "ENTITY ",
			"# admitted", "# denied", "# settled",
		} {
			seen[begin] = seen[begin] || strings.HasPrefix(text, begin)
		}
		if !strings.HasPrefix(text, "curl ") {
			continue
		}
		line, err := parseLine(text)
		if err != nil {
			t.Fatal(err)
		}
		pasted = append(pasted, line)
	}
	for begin, found := range seen {
		if !found {
			t.Errorf("got no line that begins with %q", begin)
		}
	}
	if len(pasted) != 3 {
		code, errs := end()
		t.Fatalf("got %d lines to paste, want 3; exit code %d, %s", len(pasted), code, errs)
	}
	for round := range 3 {
		for i, want := range []struct {
			status int
			body   string
		}{
			{http.StatusOK, `"allowed":true`},
			{http.StatusTooManyRequests, `"allowed":false`},
			{http.StatusOK, `"lease_id":`},
		} {
			status, body, err := pasted[i].send(t.Context())
			if err != nil || status != want.status || !strings.Contains(body, want.body) {
				t.Errorf("round %d, %s: got %d, %s, %v, want %d and %s",
					round, pasted[i].text, status, body, err, want.status, want.body)
			}
		}
	}
	pasteIntoShell(t, pasted)
	checkPage(t, pasted[0].url)
	if code, errs := end(); code != console.ExitDone || errs != "" {
		t.Errorf("got exit code %d and %q, want 0 and nothing", code, errs)
	}
	if _, _, err := pasted[0].send(context.WithoutCancel(t.Context())); err == nil {
		t.Error("got an answer after the interrupt, want the server gone")
	}
}

// pasteIntoShell runs the lines in a shell, unchanged, if curl is installed.
func pasteIntoShell(t *testing.T, pasted []*pastedLine) {
	t.Helper()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("there is no %s: the lines were only sent by the test itself", tool)
			return
		}
	}
	const ok = "HTTP/1.1 200 OK"
	for i, want := range []string{ok, "HTTP/1.1 429 Too Many Requests", ok} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", pasted[i].text).Output()
		if err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s: got %v and %s, want %s", pasted[i].text, err, got, want)
		}
	}
}

// checkPage checks that the status page is at the address that the demo prints.
func checkPage(t *testing.T, url string) {
	t.Helper()
	url = strings.TrimSuffix(url, "v1/reserve")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	page, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = page.Body.Close() }()
	kind := page.Header.Get("Content-Type")
	if page.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("got %s, %s, want a page", page.Status, kind)
	}
}

// TestDemoInterrupted checks that an interrupt while the trace is played ends the demo before it
// prints the commands.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	out, end := demoOutput(t, "--trace", liveTrace(t, 5000), "--speed", "100")
	begun := false
	for !begun && out.Scan() {
		begun = strings.HasPrefix(out.Text(), "first admitted: ")
	}
	if !begun {
		t.Error("got no decision, want one before the interrupt")
	}
	if code, errs := end(); code != console.ExitFailed || errs != "weir: interrupted\n" {
		t.Errorf("got exit code %d and %q, want 1 and an interruption", code, errs)
	}
}

// TestDemoExit checks that the demo ends by itself with --exit, and that it takes another port if
// the default one is in use and no flag asked for it.
func TestDemoExit(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", connect.DefaultListen)
	if err == nil {
		defer func() { _ = taken.Close() }()
	} // another process uses the port
	trace := liveTrace(t, 3)
	r := runWeir(t, "demo", "--limits", demoLimits, "--trace", trace, "--speed", "1000000", "--exit")
	if r.code != console.ExitDone || r.err != "" || strings.Count(r.out, "\ncurl ") != 3 {
		t.Errorf("got exit code %d, %q and\n%s\nwant 0 and three lines", r.code, r.err, r.out)
	}
	if strings.Contains(r.out, connect.DefaultServer+"/") || strings.Contains(r.out, "Ctrl-C") {
		t.Errorf("got\n%s\nwant another address, and no advice to interrupt", r.out)
	}

	r = runWeir(t, "demo", "--limits", demoLimits, "--trace", trace, "--listen", connect.DefaultListen,
		"--exit")
	want := `weir: unavailable: listen "` + connect.DefaultListen + `": `
	if r.code != console.ExitFailed || !strings.HasPrefix(r.err, want) ||
		!strings.Contains(r.err, "(--listen names another address)") {
		t.Errorf("got exit code %d and %q, want that the port asked for is taken", r.code, r.err)
	}
}

// TestDemoMistakes checks that each mistake ends the demo with one line that says how to correct
// it.
func TestDemoMistakes(t *testing.T) {
	t.Parallel()
	trace := liveTrace(t, 2)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--trace", "nowhere.csv"}, console.ExitFailed, "(without --trace and --limits the demo "},
		{
			[]string{"--trace", trace, "--limits", "nowhere.yaml"}, console.ExitFailed,
			"(without --trace and --limits the demo has its own)",
		},
		{[]string{"--trace", trace, "--limits", trace}, console.ExitFailed, "trace.csv:1:"},
		{
			[]string{"--trace", trace, "--speed", "0"}, console.ExitMisused,
			"--speed 0: must be between 1 and 1,000,000 (see weir demo --help)",
		},
		{[]string{"--trace", trace, "--entities", "0"}, console.ExitMisused, "--entities 0: must be "},
		{[]string{"--trace", trace, "extra"}, console.ExitMisused, "extra"},
		{
			[]string{"--trace", trace, "--limits", demoLimits, "--listen", "nonsense"}, console.ExitMisused,
			`listen "nonsense": must be host:port, such as 127.0.0.1:7117 (see weir demo --help)`,
		},
		{
			[]string{"--trace", trace, "--limits", demoLimits, "--listen", "0.0.0.0:0"}, console.ExitMisused,
			`listen "0.0.0.0:0": must be a loopback address: in the demo every client is admin (see`,
		},
		{
			[]string{"--trace", trace, "--limits", "../../examples/limits.yaml", "--listen", "127.0.0.1:0"},
			console.ExitFailed, "../../examples/limits.yaml: the example calls need the entity \"you\" as in " +
				`examples/demo.yaml: limit "parallel" on resource "one-at-a-time": is missing`,
		},
		{[]string{"--trace", ""}, console.ExitMisused, "--trace must not be empty"},
		{[]string{"--listen", ""}, console.ExitMisused, "must be host:port"},
	} {
		r := runWeir(t, append([]string{"demo"}, c.args...)...)
		if r.code != c.code || r.out != "" || !strings.Contains(r.err, c.want) ||
			strings.Count(r.err, "\n") == 0 {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", c.args, r.code, r.err, c.code, c.want)
		}
	}
}

// TestDemoMemory checks that the lease of the demo's last line can be settled repeatedly, even much
// later.
func TestDemoMemory(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "slots", Kind: weir.Concurrency, Capacity: 1, Timeout: time.Minute},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	o := demoLimiter()
	o.Now = func() time.Time { return now }
	l, err := limiter.New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Reserve(t.Context(), &weir.Request{Entity: demoEntity, Resource: "llm"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := l.Complete(t.Context(), lease.ID, nil); err != nil {
			t.Error(err)
		}
		now = now.Add(24 * time.Hour)
	}
	now = now.Add(30 * 24 * time.Hour)
	if _, err := l.Complete(t.Context(), lease.ID, nil); !errors.Is(err, weir.UnknownLease) {
		t.Errorf("got %v, want it forgotten in the end", err)
	}
}
