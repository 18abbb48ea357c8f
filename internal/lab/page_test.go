package lab

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/lab/report"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
	"github.com/weir-limiter/weir/internal/text"
)

// replayPageOf replays with a page, and returns the printed JSON and the page.
func replayPageOf(t *testing.T, trace string, args ...string) (*report.Result, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page.html")
	r := runWeir(t, append([]string{"replay", trace, "--output", "json", "--html", name}, args...)...)
	if r.code != console.ExitDone || r.err != "" {
		t.Fatalf("got exit code %d, want 0: %s", r.code, r.err)
	}
	o := &report.Result{}
	if err := json.Unmarshal([]byte(r.out), o); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return o, string(page)
}

// wellFormed checks that a page is well formed and that nothing in it is loaded or run.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	var open []string
	tags := regexp.MustCompile(`<(/?)([a-zA-Z0-9]+)((?:"[^"]*"|[^">])*?)(/?)>`)
	for _, m := range tags.FindAllStringSubmatch(page, -1) {
		tag := strings.ToLower(m[2])
		switch {
		case slices.Contains([]string{"meta", "link", "br", "hr"}, tag) || m[4] == "/":
		case m[1] == "":
			open = append(open, tag)
		case len(open) == 0 || open[len(open)-1] != tag:
			t.Fatalf("</%s> ends nothing of %q", tag, open)
		default:
			open = open[:len(open)-1]
		}
		names := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(m[3], "")
		for _, bad := range []string{" src=", " srcset=", " action=", " on"} {
			if strings.Contains(names, bad) {
				t.Errorf("<%s%s> has %s", tag, m[3], bad)
			}
		}
		if href := regexp.MustCompile(`href="([^"]*)"`).FindStringSubmatch(m[3]); href != nil &&
			!strings.HasPrefix(href[1], "data:") && !strings.HasPrefix(href[1], "#") {
			t.Errorf("<%s> refers to %s", tag, href[1])
		}
		if slices.Contains([]string{"script", "img", "iframe", "object", "form", "base"}, tag) {
			t.Errorf("the page has <%s>", tag)
		}
	}
	if len(open) > 0 {
		t.Errorf("the page lacks the ends of %q", open)
	}
}

// pageTexts returns the texts that a page has outside of its tags.
type pageTexts map[string]bool

func textsOf(page string) pageTexts {
	texts := pageTexts{}
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, "\n"))
	for line := range strings.Lines(text) {
		texts[strings.TrimSpace(line)] = true
	}
	return texts
}

// show checks that a page has texts.
func (p pageTexts) show(t *testing.T, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !p[want] {
			t.Errorf("the page does not show %q", want)
		}
	}
}

// showReport checks that a page has the figures of a report.
func (p pageTexts) showReport(t *testing.T, r *replay.Report) {
	t.Helper()
	for _, l := range r.Limits {
		p.show(t, replay.RowEntity(l), text.FormatInt(l.Admitted), text.FormatInt(l.Denied), string(l.UsedPercent))
	}
	for i := range r.Timeline.Intervals {
		n := &r.Timeline.Intervals[i]
		p.show(t, text.FormatInt(n.Arrived-n.Denied), text.FormatInt(n.Denied))
	}
	for _, l := range r.Timeline.Limits {
		unit := " units"
		if l.Kind == weir.Concurrency {
			unit = " slots"
		}
		p.show(t, "capacity "+text.FormatInt(l.Capacity)+unit)
	}
	p.show(t, r.Trace, text.FormatInt(r.Totals.Admitted), text.FormatInt(r.Totals.Denied))
}

func TestPageOfReplay(t *testing.T) {
	t.Parallel()
	how := []string{
		"--limits", "../../examples/limits.yaml", "--entities", "4", "--seed", "4", "--latency", "400ms+15ms",
	}
	trace := shortTrace(t, 1500)
	o, page := replayPageOf(t, trace, how...)
	wellFormed(t, page)
	textsOf(page).showReport(t, o.Report)
	textsOf(page).show(t, text.FormatInt(o.Totals.Admitted), text.FormatInt(o.Totals.Denied), "Retry after", "How to read this page")
	for _, absent := range []string{"Wait until admitted", "Estimates", "Attempts", "Only A admits"} {
		if strings.Contains(page, absent) {
			t.Errorf("the page has %s, which it knows nothing about", absent)
		}
	}
	_, again := replayPageOf(t, trace, how...)
	file := regexp.MustCompile(`--html=\S+`)
	if file.ReplaceAllString(page, "") != file.ReplaceAllString(again, "") {
		t.Error("the same command made two different pages")
	}

	o, page = replayPageOf(t, trace, append(how, "--estimate", "quantile:0.9", "--retry", "--patience", "20s")...)
	wellFormed(t, page)
	textsOf(page).showReport(t, o.Report)
	e := o.Estimates
	if !strings.Contains(page, "Attempts each ") {
		t.Error("the page does not draw attempts")
	}
	textsOf(page).show(t, "Wait until admitted", "Retry after", "Estimates",
		text.FormatInt(e.Covered), text.FormatBig(e.TokensOver), string(e.CoveredPercent)+" %")
}

// TestPageOfComparison checks that the page has the figures of both files, and draws them on one
// axis.
func TestPageOfComparison(t *testing.T) {
	t.Parallel()
	o, page := replayPageOf(t, shortTrace(t, 1500), "--limits", "../../examples/limits.yaml",
		"--compare", "../../examples/demo.yaml", "--entities", "4", "--seed", "4", "--latency", "400ms+15ms",
		"--estimate", "fixed:100", "--retry")
	wellFormed(t, page)
	texts, c := textsOf(page), &o.Compare.Calls
	for _, l := range o.Compare.Limits {
		texts.show(t, text.FormatInt(l.First.Admitted), text.FormatInt(l.Second.Admitted),
			text.FormatDifference(l.Second.Denied-l.First.Denied), string(l.First.UsedPercent), string(l.Second.UsedPercent))
	}
	for _, n := range []replay.CallCount{c.Both, c.OnlyFirst, c.OnlySecond, c.Neither} {
		texts.show(t, text.FormatInt(n.Calls), string(n.Percent), text.FormatBig(n.Tokens))
	}
	texts.show(t, "Only A admits", "Only B admits", "limits A", "limits B", "../../examples/demo.yaml",
		"acme tpm: A", "acme tpm: B", "Estimates: A", "Estimates: B",
		text.FormatInt(o.Compare.Second.Retry.Attempts), text.FormatInt(o.Retry.Attempts))
	for name, r := range map[string]*replay.Report{"A": o.Report, "B": o.Compare.Second} {
		if want := name + ": " + text.FormatInt(r.Retry.Attempts) + " attempts; "; !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestPageKeepsFileNamesAsText checks names that would run a script if a page did not escape them.
func TestPageKeepsFileNamesAsText(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("file names cannot be like that there")
	}
	dir := t.TempDir()
	names := []string{`<img src=x onerror=alert(1)>.csv`, `"'><script>.yaml`, "\u202e`<style><b>'.yaml"}
	for i, text := range []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens\n0,1,1\n", "version: 1\nsystem: {limits: {rpm: {capacity: 1}}}\n",
		"version: 1\nsystem: {limits: {rpm: {capacity: 2}}}\n",
	} {
		names[i] = filepath.Join(dir, names[i])
		if err := os.WriteFile(names[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, page := replayPageOf(t, names[0], "--limits", names[1], "--compare", names[2])
	wellFormed(t, page)
	textsOf(page).show(t, names[0], names[1], strings.ReplaceAll(names[2], "\u202e", `\u202e`))
	for _, bad := range []string{"<img", "<script", "\u202e", "<b>", "<style><"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// TestPageOfServer checks the page of a replay against a running server, even if the replay gave
// up.
func TestPageOfServer(t *testing.T) {
	t.Parallel()
	server, _ := liveserver.Start(t, nil, nil)
	o, page := replayPageOf(t, liveTrace(t, 100),
		"--server", server, "--speed", "1000", "--entities", "2", "--seed", "1")
	wellFormed(t, page)
	textsOf(page).show(t, text.FormatInt(o.Totals.Admitted), text.FormatInt(o.Totals.Denied), "acme parallel", "tenant-2 rpm",
		server+", 1,000 times as fast as recorded")
	if o.Totals.Denied == 0 || o.Totals.Admitted == 0 {
		t.Errorf("got %+v, want some of each", o.Totals)
	}

	broken, _ := liveserver.Start(t, nil, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/reserve" {
				http.Error(w, "no", http.StatusInternalServerError)
				return
			}
			inner.ServeHTTP(w, r)
		})
	})
	name := filepath.Join(t.TempDir(), "page.html")
	r := runWeir(t, "replay", liveTrace(t, maxInARow+50),
		"--server", broken, "--speed", "100000", "--html", name)
	data, err := os.ReadFile(name)
	if r.code != console.ExitFailed || err != nil {
		t.Fatalf("got exit code %d and %v, want 1 and a page: %s", r.code, err, r.err)
	}
	wellFormed(t, string(data))
	if !strings.Contains(string(data), "gave up after 100 errors in a row") {
		t.Error("the page does not say that the replay ended early")
	}
}

func TestShellWords(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{"a.yaml", "a.yaml"}, {"", "''"}, {"a b", "'a b'"}, {"it's", `'it'\''s'`}, {"$HOME", "'$HOME'"},
		{"hourly=3*input", "'hourly=3*input'"}, {"-", "-"}, {"a;b", "'a;b'"},
	} {
		if got := shellWord(tt[0]); got != tt[1] {
			t.Errorf("%s: got %s, want %s", tt[0], got, tt[1])
		}
	}
}
