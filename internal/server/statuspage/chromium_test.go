package statuspage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/testkit"
)

// browser is a Chromium that a test controls by the DevTools protocol over two pipes. Messages are
// JSON, each followed by a zero byte.
type browser struct {
	t     *testing.T
	to    io.Writer
	child *testkit.Process

	mu      sync.Mutex
	calls   int
	answers map[int]chan devtoolsMessage
	said    []devtoolsMessage // the events, in order
}

type devtoolsMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"` //nolint:tagliatelle // The protocol's name.
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startBrowser starts a Chromium. If there is none, [testkit.Require] ends the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if runtime.GOOS == "windows" {
		testkit.Require(t, "chromium", "its pipes are driven on Unix only")
	}
	var program string
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		testkit.Require(t, "chromium", "no browser of that family is in the path")
	}
	args := []string{
		"--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run",
		"--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "about:blank",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // it does not start otherwise
	}
	childIn, in := pipe(t)
	out, childOut := pipe(t)
	// The test asks the browser to end; the end of the context does not kill it.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.ExtraFiles = []*os.File{childIn, childOut} // its files 3 and 4
	b := &browser{t: t, to: in, answers: map[int]chan devtoolsMessage{}}
	b.child = testkit.Start(t, cmd)
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the child has its own
	}
	go b.listen(bufio.NewReader(out))
	t.Cleanup(func() {
		b.t = t
		b.call("", "Browser.close", params{}, nil)
	})
	return b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// listen passes answers to the calls that wait for them, until the pipe ends.
func (b *browser) listen(from *bufio.Reader) {
	for {
		line, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtoolsMessage
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			continue
		}
		b.mu.Lock()
		if waiting, ok := b.answers[m.ID]; ok {
			waiting <- m
			delete(b.answers, m.ID)
		} else if m.Method != "" {
			b.said = append(b.said, m)
		}
		b.mu.Unlock()
	}
}

// call sends a command to a session ("" is the browser itself) and decodes the answer.
func (b *browser) call(session, method string, with, result any) {
	b.t.Helper()
	if err := b.try(session, method, with, result); err != nil {
		b.t.Fatalf("%s: %v: %s", method, err, b.child.Output())
	}
}

// try is like call but returns the browser's error, for example while a page is being closed.
func (b *browser) try(session, method string, with, result any) error {
	text, err := json.Marshal(with)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.calls++
	m := devtoolsMessage{ID: b.calls, SessionID: session, Method: method, Params: text}
	answer := make(chan devtoolsMessage, 1)
	b.answers[m.ID] = answer
	b.mu.Unlock()
	if text, err = json.Marshal(m); err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	// Pages are closed when a test ends, and then its own context has ended already.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), time.Minute)
	defer cancel()
	select {
	case m = <-answer:
	case <-ctx.Done():
		b.t.Fatalf("%s: %v: %s", method, ctx.Err(), b.child.Output())
	}
	if m.Error != nil {
		return errors.New(m.Error.Message)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// tab is one page with its own storage.
type tab struct {
	*browser

	session string
}

// params has the arguments of a command.
type params = map[string]any

// tab opens a page with a size and a color scheme at an address. The page is closed when the test
// ends.
func (b *browser) tab(width, height int, scheme, address string) *tab {
	b.t.Helper()
	var world struct{ BrowserContextID string }
	b.call("", "Target.createBrowserContext", params{}, &world)
	b.t.Cleanup(func() {
		b.call("", "Target.disposeBrowserContext", params{"browserContextId": world.BrowserContextID}, nil)
	})
	var target struct{ TargetID string }
	b.call("", "Target.createTarget",
		params{"url": "about:blank", "browserContextId": world.BrowserContextID}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &tab{b, attached.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(p.session, domain+".enable", params{}, nil)
	}
	p.resize(width, height, scheme)
	b.call(p.session, "Page.navigate", params{"url": address}, nil)
	return p
}

func (p *tab) resize(width, height int, scheme string) {
	p.t.Helper()
	p.call(p.session, "Emulation.setDeviceMetricsOverride",
		params{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	p.call(p.session, "Emulation.setEmulatedMedia",
		params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// eval runs a script and decodes its result.
func (p *tab) eval(script string, result any) {
	p.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.call(p.session, "Runtime.evaluate",
		params{"expression": script, "awaitPromise": true, "returnByValue": true}, &out)
	if len(out.ExceptionDetails) > 0 {
		p.t.Fatalf("%s: %s", script, out.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(out.Result.Value, result); err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
}

// until waits for at most half a minute until a script returns true, and otherwise shows the page
// and fails. If the page is replaced, it continues in the next page.
func (p *tab) until(script string) {
	p.t.Helper()
	look := fmt.Sprintf(`new Promise((done) => {
		const give = performance.now() + 30000;
		(function look() {
			let is = false;
			try { is = Boolean(%s); } catch {}
			if (is || performance.now() > give) done(is);
			else setTimeout(look, 20);
		})();
	})`, script)
	with := params{"expression": look, "awaitPromise": true, "returnByValue": true}
	var out struct{ Result struct{ Value bool } }
	for give := time.Now().Add(30 * time.Second); ; {
		err := p.try(p.session, "Runtime.evaluate", with, &out)
		if err == nil {
			break
		}
		if time.Now().After(give) {
			p.t.Fatalf("%s: %v", script, err)
		}
	}
	if !out.Result.Value {
		p.t.Fatalf("never %s in\n%s", script, p.text("body"))
	}
}

// text returns the visible text of an element.
func (p *tab) text(selector string) string {
	p.t.Helper()
	var s string
	p.eval(fmt.Sprintf("document.querySelector(%q).innerText", selector), &s)
	return s
}

// click clicks an element.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.eval(fmt.Sprintf("document.querySelector(%q).click()", selector), nil)
}

// enter types a text into a field and presses return.
func (p *tab) enter(selector, text string) {
	p.t.Helper()
	p.eval(fmt.Sprintf("{ const f = document.querySelector(%q); f.focus(); f.value = ''; }", selector),
		nil)
	p.call(p.session, "Input.insertText", params{"text": text}, nil)
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.call(p.session, "Input.dispatchKeyEvent", params{
			"type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13,
		}, nil)
	}
}

// events returns the events of one kind from a page's session.
func (p *tab) events(method string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, m := range p.said {
		if m.SessionID == p.session && m.Method == method {
			out = append(out, string(m.Params))
		}
	}
	return out
}

// faultless fails the test if a script failed, the policy blocked something, or the page sent a
// request to another server. Error answers of the server are allowed.
func (p *tab) faultless(address string) {
	p.t.Helper()
	for _, e := range p.events("Runtime.exceptionThrown") {
		p.t.Errorf("exception: %s", e)
	}
	for _, e := range p.events("Log.entryAdded") {
		if !strings.Contains(e, `"source":"network"`) {
			p.t.Errorf("log: %s", e)
		}
	}
	asked := p.events("Network.requestWillBeSent")
	if len(asked) < 3 {
		p.t.Errorf("%d requests, want the page's files at least", len(asked))
	}
	for _, e := range asked {
		var sent struct{ Request struct{ URL string } }
		if err := json.Unmarshal([]byte(e), &sent); err != nil {
			p.t.Fatal(err)
		}
		if u := sent.Request.URL; !strings.HasPrefix(u, address) && !strings.HasPrefix(u, "data:") {
			p.t.Errorf("the page asked %s", u)
		}
	}
}
