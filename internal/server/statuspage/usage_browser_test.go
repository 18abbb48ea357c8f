package statuspage_test

import (
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
)

// serveUsage serves the pages and records on loopback.
func serveUsage(t *testing.T, records httpapi.Records) string {
	t.Helper()
	o := &httphandler.Options{StatusPage: statuspage.Page(), Records: records}
	server := httptest.NewServer(httphandler.New(nil, o))
	t.Cleanup(server.Close)
	return server.URL
}

// october is the question about acme in [recordstore.Month].
const october = "/usage#entity=acme&window=daily&from=2026-10-01&to=2026-11-01&limit=tpm"

const usageShown = `!document.getElementById("result").hidden`

func usageFigures(t *testing.T, b *browser) {
	address := serveUsage(t, recordstore.Month().Open(t, nil))
	p := b.tab(1280, 900, "light", address+october)
	p.until(usageShown)
	holds(t, p.text("#result"),
		"Usage may be missing from 2026-10-20 06:00 to 2026-10-20 18:00 UTC: the server was stopped.",
		"acme: tpm by day", "2026-10-01 up to 2026-11-01 UTC.",
		"gpt-4o 118,908,000", "gpt-4o-mini 59,454,000", "claude-sonnet 59,049,000", "usage may be missing",
		"12M", "6M", "Oct 1", "Oct 31",
		"Resource Days rpm tpm usd_micros", "gpt-4o 31 132,120 118,908,000 594,540,000",
		"claude-sonnet 20 65,610 59,049,000 295,245,000", "All 31 263,790 237,411,000 1,187,055,000",
		"By day, the newest first", "Show all 82", "2026-10-31 acme claude-sonnet 810 729,000 3,645,000")
	var label string
	p.eval(`document.getElementById("usage-chart").getAttribute("aria-label")`, &label)
	if want := "acme: tpm by day, 31 days: gpt-4o 118,908,000, gpt-4o-mini 59,454,000, " +
		"claude-sonnet 59,049,000"; label != want {
		t.Errorf("the chart says %q, want %q", label, want)
	}
	var paths []int
	p.eval(`[0, 1, 2].map((i) => document.querySelector(".bar-" + i).getAttribute("d").split("z").length - 1)`,
		&paths)
	if fmt.Sprint(paths) != "[31 31 20]" {
		t.Errorf("the columns are %v, want 31, 31 and 20", paths)
	}
	p.click("#windows-more")
	p.until(`document.querySelectorAll("#windows-rows tr").length === 82`)
	p.eval(`{ const s = document.getElementById("limit"); s.value = "rpm"; s.dispatchEvent(new Event("change")); }`,
		nil)
	p.until(`document.getElementById("chart-title").textContent === "acme: rpm by day"`)
	var hash string
	p.eval("location.hash", &hash)
	if !strings.HasSuffix(hash, "limit=rpm") {
		t.Errorf("the address is %s", hash)
	}
	p.eval(`{
		const r = document.getElementById("over"), box = r.getBoundingClientRect();
		r.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 1, clientY: box.top + 1 }));
	}`, nil)
	holds(t, p.text("#spot"), "2026-10-01: gpt-4o 5,760 · gpt-4o-mini 2,880")
	p.faultless(address)
}

// usageQuestions asks with the form: for a resource, for nothing, for what is wrong, and for what
// was not used.
func usageQuestions(t *testing.T, b *browser) {
	address := serveUsage(t, recordstore.Month().Open(t, nil))
	p := b.tab(1280, 900, "light", address+"/usage")
	p.until(`document.getElementById("connection").textContent === "Ready"`)
	p.click("#ask-form button")
	p.until(`document.getElementById("mistake").textContent === "Name an entity or a resource."`)
	p.eval(`for (const [id, v] of [["window", "monthly"], ["from", "2026-10-01"], ["to", "2026-11-01"]]) {
		document.getElementById(id).value = v;
	}`, nil)
	p.enter("#resource", "gpt-4o")
	p.until(usageShown)
	holds(t, p.text("#sums"), "Entity Months rpm tpm usd_micros", "acme 1 132,120", "team-b 1 33,030", "All 1 165,150")
	p.enter("#entity", "nobody")
	p.until(`!document.getElementById("nothing").hidden && document.getElementById("sums").hidden`)
	holds(t, p.text("#result"), "nobody on gpt-4o", "No usage is recorded.")
	p.enter("#entity", "a b")
	p.until(`document.getElementById("mistake").textContent.includes("entity “a b” must not contain ' '")`)
	p.enter("#entity", "acme")
	p.until(usageShown)
	p.eval(`document.getElementById("to").value = "2026-09-01"`, nil)
	p.click("#ask-form button")
	p.until(`document.getElementById("mistake").textContent.includes("must be after from")`)
	p.eval(`for (const id of ["from", "to"]) document.getElementById(id).value = ""`, nil)
	p.click("#ask-form button")
	p.until(`document.getElementById("range").textContent.includes("earlier usage is left out")`)
	p.faultless(address)
}

// usageUnable asks servers that do not record usage, and one that needs a bearer token.
func usageUnable(t *testing.T, b *browser) {
	l := played(t)
	for _, c := range []struct {
		o    httphandler.Options
		want string
	}{
		{httphandler.Options{}, "This server does not serve usage."},
		{httphandler.Options{Records: noRecords{}}, "The store of this server does not record usage."},
	} {
		c.o.StatusPage = statuspage.Page()
		server := httptest.NewServer(httphandler.New(l, &c.o))
		t.Cleanup(server.Close)
		p := b.tab(1280, 900, "light", server.URL+october)
		p.until(`document.getElementById("mistake").textContent === "` + c.want + `"`)
		p.faultless(server.URL)
	}
	server := httptest.NewServer(httphandler.New(l, &httphandler.Options{
		StatusPage: statuspage.Page(), Records: recordstore.Month().Open(t, nil),
		Authenticate: func(bearer string) (httphandler.Identity, bool) {
			return httphandler.Identity{Role: httphandler.RoleRead}, bearer == "reads-reads-reads"
		},
	}))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL+october)
	p.until(`!document.getElementById("unlock").hidden && document.activeElement.id === "token"`)
	p.enter("#token", "reads-reads-reads")
	p.until(usageShown)
	p.click("#forget")
	p.until(`!document.getElementById("unlock").hidden`)
	p.faultless(server.URL)
}

// noRecords is a store that keeps no records.
type noRecords struct{}

func (noRecords) Usage(context.Context, *weir.UsageQuery) (*weir.UsagePage, error) {
	return nil, weir.NewError(weir.Unsupported, "store", "", "does not record usage")
}

func (noRecords) Audit(context.Context, *weir.AuditQuery) (*weir.AuditPage, error) {
	return nil, weir.NewError(weir.Unsupported, "store", "", "does not keep an audit")
}

// anyRecords are records with names that a limiter would refuse, in pages of one record.
type anyRecords struct {
	noRecords

	names []string
}

func (r anyRecords) Usage(_ context.Context, q *weir.UsageQuery) (*weir.UsagePage, error) {
	at := 0
	if q.After != "" {
		if _, err := fmt.Sscan(q.After, &at); err != nil {
			return nil, err
		}
	}
	start := time.Date(2026, time.October, 1+at%31, 0, 0, 0, 0, time.UTC)
	page := &weir.UsagePage{
		Usage: []weir.Usage{{
			Entity: q.Entity, Resource: r.names[at], Window: weir.Daily, Start: start,
			End: start.AddDate(0, 0, 1), Events: 1,
			Units: map[string]int64{"constructor": math.MaxInt64, "__proto__": 1, r.names[at]: -5},
		}},
		Gaps: []weir.UsageGap{{To: start, Reason: hostile}},
	}
	if at+1 < len(r.names) {
		page.Next = fmt.Sprint(at + 1)
	}
	return page, nil
}

// usageHostile shows hostile names, numbers of 64 bits, limits that are named like members of every
// object, and more resources than there are colours.
func usageHostile(t *testing.T, b *browser) {
	names := []string{hostile, strings.Repeat("x", 128)}
	for i := range 10 {
		names = append(names, fmt.Sprint("m", i))
	}
	address := serveUsage(t, anyRecords{names: names})
	query := url.Values{"entity": {hostile}, "from": {"2026-10-01"}, "to": {"2026-11-01"}, "limit": {"constructor"}}
	p := b.tab(1280, 900, "dark", address+"/usage#"+query.Encode())
	p.until(usageShown)
	holds(t, p.text("#keys"), "9,223,372,036,854,775,807", "5 others 46,116,860,184,273,879,035")
	holds(t, p.text("#sums"), "All 12 -5 12 110,680,464,442,257,309,684")
	var found struct{ Elements, Ran, Shown int }
	p.eval(`({
		elements: document.querySelectorAll("main img, main script, main [onerror]").length,
		ran: window.ran ?? 0,
		shown: document.querySelector("main").innerText.split("<img src=x").length - 1,
	})`, &found)
	if found.Elements != 0 || found.Ran != 0 || found.Shown < 5 {
		t.Errorf("%d elements were made, %d ran; the name is shown %d times",
			found.Elements, found.Ran, found.Shown)
	}
	for _, width := range []int{320, 360, 700, 768, 1280, 1920} {
		p.resize(width, 900, "dark")
		checkWidth(p, hostile, width)
	}
	p.faultless(address)
}

func usageSizes(t *testing.T, b *browser) {
	address := serveUsage(t, recordstore.Month().Open(t, nil))
	p := b.tab(360, 740, "light", address+october)
	p.until(usageShown)
	for _, width := range []int{320, 360, 700, 768, 1280, 1920} {
		p.resize(width, 900, "light")
		checkWidth(p, "acme", width)
		var chart struct{ Wide, Room int }
		p.until(`document.getElementById("usage-chart").viewBox.baseVal.width ===
			Math.max(document.getElementById("usage-chart").getBoundingClientRect().width, 200)`)
		p.eval(`(() => {
			const svg = document.getElementById("usage-chart").getBoundingClientRect();
			const right = [...document.querySelectorAll("#usage-chart text")]
				.reduce((most, e) => Math.max(most, e.getBoundingClientRect().right), 0);
			return { wide: Math.ceil(right), room: Math.ceil(svg.right) + 1 };
		})()`, &chart)
		if chart.Wide > chart.Room {
			t.Errorf("at %d a label ends at %d, the chart at %d", width, chart.Wide, chart.Room)
		}
	}
}

// checkWidth checks that the page does not scroll sideways, and that targets are large enough for a
// finger.
func checkWidth(p *tab, name string, width int) {
	p.t.Helper()
	var got struct {
		Wide, View int
		Small      []string
	}
	p.eval(`({
		wide: document.documentElement.scrollWidth, view: innerWidth,
		small: [...document.querySelectorAll("button, input, select")].filter((e) => {
			const r = e.getBoundingClientRect();
			return r.height > 0 && (r.height < 36 || r.width < 44 || r.right > innerWidth);
		}).map((e) => e.id || e.textContent),
	})`, &got)
	if got.Wide > got.View || got.View != width || len(got.Small) > 0 {
		p.t.Errorf("%.8s at %d: the page is %d wide in %d; too small: %q",
			name, width, got.Wide, got.View, got.Small)
	}
}

func usageContrast(t *testing.T, b *browser) {
	address := serveUsage(t, recordstore.Month().Open(t, nil))
	for _, scheme := range []string{"light", "dark"} {
		p := b.tab(1280, 900, scheme, address+october)
		p.until(usageShown)
		var found struct {
			Texts int
			Low   []string
		}
		p.eval(contrastScript, &found)
		if len(found.Low) > 0 || found.Texts < 60 {
			t.Errorf("%s: %d texts, too faint: %q", scheme, found.Texts, found.Low)
		}
	}
}
