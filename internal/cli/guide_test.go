package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit"
)

// callersGuide is the page whose programs these tests run.
const callersGuide = "../../docs/callers.md"

// guideTime bounds the start of a server, and the run of a program, on a busy machine.
const guideTime = 2 * time.Minute

// guideBlock is a fenced block of a page.
type guideBlock struct{ language, text string }

// guideBlocks returns the fenced blocks of the page, in order.
func guideBlocks(t *testing.T) []guideBlock {
	t.Helper()
	page, err := os.ReadFile(callersGuide)
	if err != nil {
		t.Fatal(err)
	}
	fenced := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	var blocks []guideBlock
	for _, m := range fenced.FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, guideBlock{m[1], m[2]})
	}
	return blocks
}

// guideProgram returns the blocks of a language as one program, and the output that the page shows
// after the last of them.
func guideProgram(t *testing.T, language string) (program, want string) {
	t.Helper()
	last := ""
	for _, b := range guideBlocks(t) {
		switch {
		case b.language == language:
			program += b.text
			last = language
		case b.language == "text" && last == language:
			want = b.text
			last = ""
		default:
			last = ""
		}
	}
	if program == "" || want == "" {
		t.Fatalf("%s has program %q in %s and output %q", callersGuide, program, language, want)
	}
	return program, want
}

// startGuideServer runs `weir serve` with the limits that the page names until the test ends, and
// returns its URL. Slots have the timeout, in seconds, and the month does not end while the test
// runs.
func startGuideServer(t *testing.T, timeout string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limits := string(text)
	month := "every: month"
	if now := time.Now().UTC(); now.Add(time.Hour).Month() != now.Month() {
		month += ", zone: Asia/Tokyo"
	}
	for _, edit := range [][2]string{{"timeout: 60}", "timeout: " + timeout + "}"}, {"every: month", month}} {
		if !strings.Contains(limits, edit[0]) {
			t.Fatalf("got limits %q, want %q", limits, edit[0])
		}
		limits = strings.ReplaceAll(limits, edit[0], edit[1])
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	output, log := io.Pipe()
	ended := make(chan int, 1)
	var errors bytes.Buffer
	go func() {
		ended <- cli.Run(ctx, []string{"serve", "--limits", file, "--listen", "127.0.0.1:0"},
			console.Streams{In: strings.NewReader(""), Out: log, Err: &errors},
			func(string) string { return "" })
		_ = log.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("weir serve ended with %d: %s", code, errors.String())
		}
	})
	line := make([]byte, 256)
	n, err := output.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	server := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if server == "" {
		t.Fatalf("weir serve wrote %q, want its URL", line[:n])
	}
	return server
}

// lossyProxy forwards requests to a server. It forwards the first reserve of each lease ID and
// closes the connection instead of returning the answer.
type lossyProxy struct {
	next *httputil.ReverseProxy

	mu       sync.Mutex
	reserves map[string]int // the reserves of each lease ID
	extended chan struct{}  // closed after the first extend
	once     sync.Once
}

func newLossyProxy(t *testing.T, server string) (*lossyProxy, string) {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyProxy{
		next: httputil.NewSingleHostReverseProxy(target), reserves: map[string]int{},
		extended: make(chan struct{}),
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, front.URL
}

// ServeHTTP forwards a request, or loses its answer.
func (p *lossyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent struct {
		LeaseID string `json:"lease_id"`
	}
	if err != nil || json.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.URL.Path == "/v1/reserve" {
		p.mu.Lock()
		p.reserves[sent.LeaseID]++
		lost := p.reserves[sent.LeaseID] == 1
		p.mu.Unlock()
		if lost {
			p.next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // closes the connection without an answer
		}
	}
	p.next.ServeHTTP(w, r)
	if r.URL.Path == "/v1/extend" {
		p.once.Do(func() { close(p.extended) })
	}
}

// guideUsage is the member of the model's answer that says what the call used.
const guideUsage = `, "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}`

// startGuideModel returns the URL of a server with OpenAI's API, which answers after the first
// extend of a lease. Its answer ends with usage.
func startGuideModel(t *testing.T, extended <-chan struct{}, usage string) string {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-extended:
		case <-r.Context().Done():
			return
		}
		if r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"message": {"role": "assistant", "content": "Hello!"}}]`+usage+"}")
	}))
	t.Cleanup(model.Close)
	return model.URL + "/v1"
}

// TestCallersGuidePrograms runs the programs of the page behind a proxy that loses answers. What
// they print, and the units in use afterwards, show that each reservation was charged once.
func TestCallersGuidePrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, tool, command, file string }{
		{"python", "python", "python3", "caller.py"},
		{"javascript", "node", "node", "caller.mjs"},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(c.command)
			if err != nil {
				testkit.Require(t, c.tool, err.Error())
			}
			program, want := guideProgram(t, c.language)
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			server := startGuideServer(t, "3") // so that the program extends its lease after a second
			proxy, front := newLossyProxy(t, server)
			got, _ := runGuide(t, path, file, "WEIR_SERVER="+front,
				"OPENAI_BASE_URL="+startGuideModel(t, proxy.extended, guideUsage), "OPENAI_API_KEY=none")
			if got != want {
				t.Errorf("got output\n%swant\n%s", got, want)
			}
			proxy.mu.Lock()
			defer proxy.mu.Unlock()
			for id, n := range proxy.reserves {
				if n != 2 {
					t.Errorf("lease %s: got %d reserves, want the lost one and its repeat", id, n)
				}
			}
			if len(proxy.reserves) != 2 {
				t.Errorf("got %d lease IDs, want one admitted and one denied", len(proxy.reserves))
			}
			checkGuideUse(t, server, c.language, map[string]int64{"parallel": 5, "usd_micros": 49_999_875})
		})
	}
}

// guideFunctions returns the blocks of a language without the last one, which has the calls.
func guideFunctions(t *testing.T, language string) string {
	t.Helper()
	var texts []string
	for _, b := range guideBlocks(t) {
		if b.language == language {
			texts = append(texts, b.text)
		}
	}
	if len(texts) < 2 {
		t.Fatalf("%s has %d blocks in %s, want the functions and the calls", callersGuide, len(texts), language)
	}
	return strings.Join(texts[:len(texts)-1], "")
}

// newUnsettledProxy returns the URL of a proxy that forwards requests to a server. It closes the
// connection of each complete without forwarding it.
func newUnsettledProxy(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/complete" {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestCallersGuideKeepsAnswer checks that `ask` of the page returns the model's answer even if the
// lease cannot be completed, and that it completes the lease if the answer has no usage. In both
// cases what was reserved stays charged.
func TestCallersGuideKeepsAnswer(t *testing.T) {
	t.Parallel()
	const reserved = 5_065 // 26 tokens of the prompt and 500 of the answer
	for _, language := range []struct{ name, tool, command, file, call string }{
		{"python", "python", "python3", "caller.py", "print(ask(\"acme\", \"Say hello.\"))\n"},
		{"javascript", "node", "node", "caller.mjs", "console.log(await ask('acme', 'Say hello.'))\n"},
	} {
		for _, c := range []struct {
			name, usage string
			unsettled   bool
			slots       int64 // free afterwards
		}{
			{"complete fails", guideUsage, true, 4},
			{"no usage", "", false, 5},
			{"usage is null", `, "usage": null`, false, 5},
			{"a count is null", `, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": null}`, false, 5},
		} {
			t.Run(language.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(language.command)
				if err != nil {
					testkit.Require(t, language.tool, err.Error())
				}
				file := filepath.Join(t.TempDir(), language.file)
				program := guideFunctions(t, language.name) + language.call
				if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
					t.Fatal(err)
				}
				server := startGuideServer(t, "3600")
				front := server
				if c.unsettled {
					front = newUnsettledProxy(t, server)
				}
				answered := make(chan struct{})
				close(answered)
				got, log := runGuide(t, path, file, "WEIR_SERVER="+front,
					"OPENAI_BASE_URL="+startGuideModel(t, answered, c.usage), "OPENAI_API_KEY=none")
				if got != "Hello!\n" {
					t.Errorf("got output %q, want the answer", got)
				}
				if strings.Contains(log, "was not settled: complete") != c.unsettled {
					t.Errorf("got log %q, want a failure in it: %v", log, c.unsettled)
				}
				checkGuideUse(t, server, "acme",
					map[string]int64{"parallel": c.slots, "usd_micros": 50_000_000 - reserved})
			})
		}
	}
}

// runGuide runs a program and returns what it wrote.
func runGuide(
	t *testing.T, command, file string, environment ...string,
) (output, errorOutput string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guideTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, file)
	cmd.Env = append(append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"), environment...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, errors.String())
	}
	return string(out), errors.String()
}

// checkGuideUse checks how many units of limits are available to an entity.
func checkGuideUse(t *testing.T, server, entity string, want map[string]int64) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		server+"/v1/status?resource=llm&entity="+entity, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var status struct {
		Limits []struct {
			Limit     string `json:"limit"`
			Available int64  `json:"available"`
		} `json:"limits"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	for _, l := range status.Limits {
		if units, ok := want[l.Limit]; ok && l.Available != units {
			t.Errorf("%s: got %d units available, want %d", l.Limit, l.Available, units)
		}
		delete(want, l.Limit)
	}
	if len(want) > 0 {
		t.Errorf("the status lacks %v", want)
	}
}

// TestCallersGuideCurl runs the shell commands of the page in one shell. Each block must write what
// the page shows after it, in which … stands for any text.
func TestCallersGuideCurl(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			testkit.Require(t, "curl", err.Error())
		}
	}
	const end = "\x1e\n" // after the output of each block
	var script strings.Builder
	script.WriteString("set -eu\n")
	var commands, want []string
	for _, b := range guideBlocks(t) {
		switch b.language {
		case "sh":
			script.WriteString(b.text + "printf '\\036\\n'\n")
			commands = append(commands, b.text)
			want = append(want, "")
		case "json":
			want[len(want)-1] = strings.ReplaceAll(b.text, "…\n", "…")
		}
	}
	file := filepath.Join(t.TempDir(), "caller.sh")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	output, _ := runGuide(t, "sh", file, "WEIR_SERVER="+startGuideServer(t, "60"))
	got := strings.Split(strings.TrimSuffix(output, end), end)
	if len(got) != len(want) || len(want) < 2 {
		t.Fatalf("got the output of %d blocks, want %d:\n%s", len(got), len(want), output)
	}
	for i := range want {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want[i]), "…", ".*") + "$"
		if !regexp.MustCompile(pattern).MatchString(got[i]) {
			t.Errorf("%sgot\n%swant\n%s", commands[i], got[i], want[i])
		}
	}
}
