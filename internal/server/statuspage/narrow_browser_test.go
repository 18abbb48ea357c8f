package statuspage_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
)

// statusLimiter answers with the same status for each entity.
type statusLimiter struct {
	*limiter.Limiter

	status []weir.LimitStatus
}

func (c statusLimiter) Status(context.Context, string, string) ([]weir.LimitStatus, error) {
	return c.status, nil
}

// longNames are names of 256 bytes that would run as a script, turn the text around them, or hardly
// fit, if a page let them.
func longNames() []string {
	long := func(part string) string { return strings.Repeat(part, 256/len(part)+1)[:256] }
	return []string{
		long("x"), long(hostile), long("{{7*7}}"), long("שלום"), long("日本")[:255] + "x", "a" + long("é")[:254] + "b",
	}
}

// serveNames serves denials with a name in each place, and such a status.
func serveNames(t *testing.T, names []string) *httptest.Server {
	t.Helper()
	l := played(t)
	var status []weir.LimitStatus
	for _, name := range names {
		s := weir.LimitStatus{Entity: name, Resource: name, Limit: name, Kind: weir.Kind(name),
			Capacity: 1<<63 - 1, Available: -5, Requested: 1<<63 - 1, Exceeded: true}
		l.activity.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: l.now,
			Err: &weir.DeniedError{RetryAfter: time.Second, Charges: []weir.Subject{
				{Entity: name, Resource: name}, {Entity: "someone", Resource: name},
			}},
			Limits: []weir.LimitStatus{s, s}})
		status = append(status, s)
	}
	o := &httphandler.Options{
		Activity: l.activity.Report, StatusPage: statuspage.Page(), Now: func() time.Time { return l.now },
	}
	server := httptest.NewServer(httphandler.New(statusLimiter{l.Limiter, status}, o))
	t.Cleanup(server.Close)
	return server
}

// pageNarrow checks the page on a phone, with names of 256 bytes in every table: nothing scrolls
// sideways, nothing runs, and each name is shown whole.
func pageNarrow(t *testing.T, b *browser) {
	names := longNames()
	server := serveNames(t, names)
	p := b.tab(360, 740, "light", server.URL+"/#entity=acme")
	p.until(`document.querySelectorAll(".limit").length === 6 &&
		document.querySelectorAll("#denials-rows tr").length > 6`)
	p.click("#parties-more")
	p.click("#limits-more")
	p.until(`document.querySelectorAll("#parties-rows tr").length > 8`)
	want, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{320, 360, 1280} {
		p.resize(width, 740, "light")
		var got struct {
			Wide, View, Ran int
			Out, Missing    []string
		}
		p.eval(`(() => {
			const shown = ["denials-rows", "parties-rows", "limits-rows", "subjects"]
				.map((id) => document.getElementById(id));
			const out = [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() &&
				!e.closest(".hidden, thead") && e.getBoundingClientRect().right > innerWidth);
			return {
				wide: document.scrollingElement.scrollWidth, view: document.scrollingElement.clientWidth,
				ran: (window.ran ?? 0) + document.querySelectorAll("main img, main script").length,
				out: out.map((e) => e.className + " " + e.textContent.slice(0, 40)),
				missing: shown.flatMap((e) => `+string(want)+`.filter((name) => !e.textContent.includes(name))),
			};
		})()`, &got)
		if got.Wide > got.View || got.View > width || got.Ran > 0 || len(got.Out) > 0 || len(got.Missing) > 0 {
			t.Errorf("at %d the page is %d wide in %d, %d ran, out of sight: %q, not shown: %q",
				width, got.Wide, got.View, got.Ran, got.Out, got.Missing)
		}
	}
	p.faultless(server.URL)
}

// pageFirstDenials checks that the first three denials are on the first screen of a phone.
func pageFirstDenials(t *testing.T, b *browser) {
	server := serveNames(t, nil)
	p := b.tab(360, 740, "dark", server.URL)
	p.until(`document.querySelectorAll("#denials-rows tr").length === 3`)
	var boxes []struct{ Left, Top, Right, Bottom float64 }
	p.eval(`[...document.querySelectorAll("#denials-rows tr")].slice(0, 3)
		.map((e) => e.getBoundingClientRect().toJSON())`, &boxes)
	for i, box := range boxes {
		t.Logf("denial %d: %+v", i+1, box)
		if box.Left < 0 || box.Right > 360 || box.Top < 0 || box.Bottom > 740 {
			t.Errorf("denial %d is at %+v, want it on the first screen", i+1, box)
		}
	}
	p.faultless(server.URL)
}

// pageEntities finds an entity by a part of its name, and shows more of a long list.
func pageEntities(t *testing.T, b *browser) {
	var names []string
	for i := range 120 {
		names = append(names, "customer-"+string(rune('a'+i/10))+string(rune('0'+i%10)))
	}
	server := serveNames(t, names)
	p := b.tab(1280, 900, "light", server.URL)
	const rows, more = `document.querySelectorAll("#parties-rows tr")`, `document.getElementById("parties-more")`
	p.until(rows + `.length === 8 && ` + more + `.innerText === "Show 108 of 123"`)
	p.click("#parties-more")
	p.until(rows + `.length === 108 && ` + more + `.innerText === "Show all 123"`)
	p.click("#parties-more")
	p.until(rows + `.length === 123 && ` + more + `.innerText === "Show fewer"`)
	p.click("#parties-more")
	p.until(rows + `.length === 8`)
	p.eval(`document.getElementById("entity").focus()`, nil)
	p.call(p.session, "Input.insertText", params{"text": "MER-c"}, nil)
	p.until(rows + `.length === 8 && ` + more + `.innerText === "Show all 10"`)
	holds(t, p.text("#parties-rows"), "customer-c9 12:00:03 1 1 1", "customer-c2 12:00:03 1 1 1")
	p.call(p.session, "Input.insertText", params{"text": "?"}, nil)
	p.until(rows + `.length === 0 && !document.getElementById("parties-empty").hidden`)
	p.faultless(server.URL)
}

// pageMeters checks the bars by the table that those of the report of a replay follow too: the share
// that is drawn, in percent, its colour and its words.
func pageMeters(t *testing.T, b *browser) {
	data, err := os.ReadFile("../../chart/testdata/meters.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Legend []string
		Meters []struct {
			Kind                weir.Kind
			Capacity, Used      int64
			Share, Colour, Text string
		}
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	var status []weir.LimitStatus
	var bars []string
	for i, m := range want.Meters {
		owner := []string{"acme-bot", "acme"}[i%2] // a status has the limits of a parent too
		text := m.Text + " " + m.Colour + " " + m.Share + "%"
		if owner == "acme" {
			text = "of acme " + text
		}
		status = append(status, weir.LimitStatus{Entity: owner, Resource: "gpt-4o", Limit: string(rune('a' + i)),
			Kind: m.Kind, Capacity: m.Capacity, Available: m.Capacity - m.Used})
		bars = append(bars, text)
	}
	l := played(t)
	o := &httphandler.Options{Activity: l.activity.Report, StatusPage: statuspage.Page()}
	server := httptest.NewServer(httphandler.New(statusLimiter{l.Limiter, status}, o))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL+"/#entity=acme-bot")
	p.until(`document.querySelectorAll(".limit").length === 10`)
	holds(t, p.text(".legend"), append([]string{"share of the capacity in use"}, want.Legend...)...)
	var got []string
	p.eval(`[...document.querySelectorAll(".limit")].map((li) => {
		const fill = li.querySelector(".bar i");
		const owner = li.querySelector("a");
		return (owner ? "of " + owner.textContent + " " : "") + li.querySelector(".amount").textContent +
			" " + fill.className + " " + fill.style.width;
	})`, &got)
	if !slices.Equal(got, bars) {
		t.Errorf("got %q, want %q", got, bars)
	}
	// With a resource, the limits of the parent are a part of their own, once.
	p.enter("#resource", "gpt-4o")
	p.until(`document.querySelectorAll(".subject").length === 2`)
	p.eval(`[...document.querySelectorAll(".subject")].map((s) => s.querySelector("h3").textContent + " " +
		s.querySelectorAll(".limit").length + " " + s.querySelectorAll(".limit a").length)`, &got)
	if want := []string{"acme-bot 5 0", "acme 5 0"}; !slices.Equal(got, want) {
		t.Errorf("got the parts %q, want %q", got, want)
	}
	p.faultless(server.URL)
}

// TestColoursOfMeters checks that bars have the same colours on the status page and in reports.
func TestColoursOfMeters(t *testing.T) {
	t.Parallel()
	colour := regexp.MustCompile(`--(?:good|low|bad): #\w{6};`)
	var found [2][]string
	for i, name := range []string{"page/style.css", "../../chart/page/style.css"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = colour.FindAllString(string(text), -1)
		slices.Sort(found[i])
	}
	if len(found[0]) != 6 || !slices.Equal(found[0], found[1]) {
		t.Errorf("the status page has %q, reports have %q", found[0], found[1])
	}
}
