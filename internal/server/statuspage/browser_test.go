package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/limiter"
)

// hostile is a name that runs as a script in a page that does not escape it.
const hostile = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`

// anyNameLimiter is a limiter that accepts any name, as another service might.
type anyNameLimiter struct{ *limiter.Limiter }

func (c anyNameLimiter) Status(
	ctx context.Context, entity, resource string,
) ([]weir.LimitStatus, error) {
	if entity == hostile {
		return []weir.LimitStatus{{Entity: hostile, Resource: hostile, Limit: hostile, Kind: hostile,
			Level: hostile, Capacity: 10, Available: 5}}, nil
	}
	return c.Limiter.Status(ctx, entity, resource)
}

func (c anyNameLimiter) Explain(
	ctx context.Context, entity, resource string,
) (*weir.Explanation, error) {
	if entity == hostile {
		limits := []weir.Limit{{
			Name: hostile, Kind: weir.Budget, Capacity: 10, Every: hostile, Zone: hostile,
		}}
		return &weir.Explanation{Entity: hostile, Resource: hostile, Level: hostile, Limits: limits,
			Hidden: []weir.LevelLimits{{Level: hostile, Limits: limits}}}, nil
	}
	return c.Limiter.Explain(ctx, entity, resource)
}

// shown serves the calls of [played] on loopback, with a denial of a hostile name.
func shown(t *testing.T, o httphandler.Options) *httptest.Server {
	t.Helper()
	l := played(t)
	long := strings.Repeat("x", 256)
	for _, name := range []string{long, hostile} {
		l.activity.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: l.now,
			Err: &weir.DeniedError{
				RetryAfter: 90 * time.Second, Charges: []weir.Subject{{Entity: name, Resource: name}},
			},
			Limits: []weir.LimitStatus{{Entity: name, Resource: name, Limit: name, Kind: weir.Bucket,
				Capacity: 1<<63 - 1, Available: -5, Requested: 1, Exceeded: true}}})
	}
	o.Activity, o.Admin, o.StatusPage = l.activity.Report, l, statuspage.Page()
	o.Now = func() time.Time { return l.now } // a denial ends in the future
	server := httptest.NewServer(httphandler.New(anyNameLimiter{l.Limiter}, &o))
	t.Cleanup(server.Close)
	return server
}

func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	for _, c := range []struct {
		name string
		play func(*testing.T, *browser)
	}{
		{"figures", pageFigures},
		{"look-up", pageLookUp},
		{"all rows", pageRows},
		{"equal denials", pageGroups},
		{"several charges", pageSeveral},
		{"hostile names", pageHostile},
		{"bearer token", pageToken},
		{"not reachable", pageUnreachable},
		{"without activity", pageWithoutActivity},
		{"sizes", pageSizes},
		{"long names", pageNarrow},
		{"first denials on a phone", pageFirstDenials},
		{"entities", pageEntities},
		{"bars", pageMeters},
		{"contrast", pageContrast},
		{"usage", usageFigures},
		{"usage by the form", usageQuestions},
		{"usage of other servers", usageUnable},
		{"usage of hostile names", usageHostile},
		{"usage in sizes", usageSizes},
		{"usage contrast", usageContrast},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			c.play(t, b)
		})
	}
}

// holds fails the test unless a text has all its parts, in this order.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := strings.Join(strings.Fields(text), " ")
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("no %q in its place in\n%s", part, text)
			return
		}
		rest = after
	}
}

func pageFigures(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	p := b.tab(1280, 900, "light", server.URL)
	p.until(`document.getElementById("connection").textContent === "Live"`)
	holds(t, p.text("#overview"), "Admitted", "3", "1 call repeated", "Denied", "5",
		"63% of reservations", "Errors", "3", "conflict 1", "invalid 1", "never satisfiable 1")
	holds(t, p.text("#denials"),
		"xxxx", "asked 1 · 9,223,372,036,854,775,812 of 9,223,372,036,854,775,807 in use, in debt", "in 1 min 30 s",
		"someone", "gpt-4o", "rpm", "asked 1 · 600 of 600 in use", "in 100 ms",
		"acme-bot", "rpm", "asked 9 · 2 of 10 in use", "in 3 s",
		"acme-bot", "parallel", "asked 1 · 2 of 2 slots in use",
		"tpm of acme", "asked 20 · 990 of 1,000 in use")
	holds(t, p.text("#limits"), "rpm bucket 3 2 0 602", "parallel concurrency 2 1 0 –",
		"tpm window 2 1 0 990", "tpm bucket 2 0 3 990") // those that denied most come first
	var suggested []string
	p.eval(`[...document.querySelectorAll("#entities option")].map((o) => o.value)`, &suggested)
	if len(suggested) != 5 || !slices.Contains(suggested, "acme-bot") {
		t.Errorf("suggested %q", suggested)
	}
	p.faultless(server.URL)
}

func pageLookUp(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	p := b.tab(1280, 900, "light", server.URL)
	p.until(`document.getElementById("connection").textContent === "Live"`)
	p.enter("#entity", "acme-bot")
	p.until(`document.getElementById("subjects").innerText.includes("gpt-4o")`)
	p.enter("#resource", "gpt-4o")
	p.until(`document.getElementById("explanations").innerText.includes("applies")`)
	var hash string
	p.eval("location.hash", &hash)
	if hash != "#entity=acme-bot&resource=gpt-4o" {
		t.Errorf("the address is %s", hash)
	}
	holds(t, p.text("#subjects"), "acme-bot", "limits: the entity’s, for every resource",
		"parallel", "concurrency", "1 of 2 slots in use", "rpm", "2 of 10 in use",
		"tpm", "bucket", "shadow, never denies", "960 of 100 in use, in debt",
		"acme", "the parent, charged too", "tpm", "window", "990 of 1,000 in use")
	holds(t, p.text("#explanations"), "acme-bot", "the entity’s, for every resource", "applies",
		"parallel: 2 at once, each up to 1 min", "rpm: 10 per minute",
		"tpm: 600 per minute, up to 100, shadow",
		"the system’s", "hidden", "rpm: 600 per minute",
		"acme, charged too as its parent", "tpm: 1,000 in any minute",
		"If the store does not answer: block, by the system’s configuration.")
	var bars []string
	p.eval(`[...document.querySelectorAll(".bar")].map((b) => {
		const [name, now, max] = ["label", "valuenow", "valuemax"].map((a) => b.getAttribute("aria-" + a));
		return name + " " + now + "/" + max + " " + b.firstChild.style.width;
	})`, &bars)
	want := []string{"parallel 1/2 50%", "rpm 2/10 20%", "tpm 100/100 100%", "tpm 990/1000 99%"}
	if !slices.Equal(bars, want) {
		t.Errorf("bars %q, want %q", bars, want)
	}
	// The entity of a denial is a link to its look-up, and the focus follows it.
	p.eval(`{
		const links = [...document.querySelectorAll("#denials a")];
		const a = links.find((a) => a.textContent === "someone");
		a.focus();
		a.click();
	}`, nil)
	p.until(`document.getElementById("subjects").innerText.includes("600 of 600 in use")`)
	var focus string
	p.eval("document.activeElement.id", &focus)
	if focus != "lookup-title" {
		t.Errorf("the focus is on %q", focus)
	}
	p.enter("#entity", "a#x")
	p.until(`document.getElementById("lookup-message").innerText.includes("“a#x” must not contain '#'")`)
	p.click("#clear")
	p.until(`document.getElementById("lookup-message").innerText === ""`)
	p.faultless(server.URL)
}

// pageRows shows all rows of a list, and the first few again. A row stays the same element, so that
// a reader keeps the place.
func pageRows(t *testing.T, b *browser) {
	l := played(t)
	deny := func(entity string) {
		l.activity.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: l.now,
			Err: &weir.DeniedError{
				RetryAfter: time.Second, Charges: []weir.Subject{{Entity: entity, Resource: "r"}},
			},
			Limits: []weir.LimitStatus{
				{Entity: entity, Resource: "r", Limit: "l", Kind: weir.Bucket, Capacity: 1, Exceeded: true},
			}})
	}
	for i := range 30 {
		deny(fmt.Sprintf("e%d", i))
	}
	o := &httphandler.Options{Activity: l.activity.Report, StatusPage: statuspage.Page()}
	server := httptest.NewServer(httphandler.New(l, o))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL)
	p.until(`document.querySelectorAll("#denials-rows tr").length === 8`)
	const more = `document.getElementById("denials-more")`
	p.until(more + `.innerText === "Show all 33" && ` + more + `.ariaExpanded === "false"`)
	p.click("#denials-more")
	p.until(`document.querySelectorAll("#denials-rows tr").length === 33`)
	p.until(more + `.innerText === "Show fewer" && ` + more + `.ariaExpanded === "true"`)
	p.eval(`{ window.row = document.querySelector("#denials-rows tr"); row.querySelector("a").focus(); }`, nil)
	deny("newest")
	p.until(`document.querySelector("#denials-rows a").innerText === "newest"`)
	p.until(`row === document.querySelectorAll("#denials-rows tr")[1] && row.contains(document.activeElement)`)
	p.click("#denials-more")
	p.until(`document.querySelectorAll("#denials-rows tr").length === 8`)
	p.faultless(server.URL)
}

func pageHostile(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	p := b.tab(1280, 900, "dark", server.URL)
	p.until(`document.getElementById("connection").textContent === "Live"`)
	p.enter("#entity", hostile)
	p.until(`document.getElementById("subjects").innerText.includes("5 of 10 in use")`)
	p.enter("#resource", hostile)
	p.until(`document.getElementById("explanations").innerText.includes("applies")`)
	var found struct{ Elements, Ran, Shown int }
	p.eval(`({
		elements: document.querySelectorAll("main img, main script, main [onerror]").length,
		ran: window.ran ?? 0,
		shown: document.querySelector("main").innerText.split("<img src=x").length - 1,
	})`, &found)
	if found.Elements != 0 || found.Ran != 0 || found.Shown < 8 {
		t.Errorf("%d elements were made, %d ran; the name is shown %d times",
			found.Elements, found.Ran, found.Shown)
	}
	p.faultless(server.URL)
}

func pageToken(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{Authenticate: func(bearer string) (httphandler.Identity, bool) {
		roles := map[string]httphandler.Role{
			"reads-reads-reads": httphandler.RoleRead, "weak-weak-weak": httphandler.RoleNone,
		}
		role, ok := roles[bearer]
		return httphandler.Identity{Role: role}, ok
	}})
	p := b.tab(1280, 900, "light", server.URL+"/#entity=someone")
	p.until(`!document.getElementById("unlock").hidden && document.activeElement.id === "token"`)
	if s := p.text("main"); strings.Contains(s, "Admitted") || strings.Contains(s, "does not know") {
		t.Errorf("before: %s", s)
	}
	for _, c := range []struct{ token, want string }{
		{"two words", "has no spaces"},
		{"wrong-wrong-wrong", "does not know"},
		{"weak-weak-weak", "too weak"},
	} {
		p.enter("#token", c.token)
		message, err := json.Marshal(c.want)
		if err != nil {
			t.Fatal(err)
		}
		p.until(`document.getElementById("unlock-message").innerText.includes(` + string(message) + `)`)
	}
	p.enter("#token", "reads-reads-reads")
	p.until(`document.getElementById("subjects").innerText.includes("600 of 600 in use")`)
	p.call(p.session, "Page.navigate", params{"url": server.URL + "/?again"}, nil)
	p.until(`location.search && document.getElementById("connection").textContent === "Live"`)
	var kept struct {
		Address, Text string
		Local         int
	}
	p.eval(`({
		address: location.href, text: document.body.innerText, local: localStorage.length,
	})`, &kept)
	if strings.Contains(kept.Address+kept.Text, "reads-reads") || kept.Local != 0 {
		t.Errorf("the bearer token shows: %+v", kept)
	}
	p.click("#forget")
	p.until(`!document.getElementById("unlock").hidden`)
	p.faultless(server.URL)
}

func pageUnreachable(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	address := server.Listener.Addr().String()
	p := b.tab(1280, 900, "light", server.URL)
	p.until(`document.getElementById("connection").textContent === "Live"`)
	server.CloseClientConnections()
	server.Close()
	p.until(`document.getElementById("connection").textContent.startsWith("Not reachable since")`)
	holds(t, p.text("#trouble"),
		"The server is not reachable since", "What is shown is from", "keeps trying")
	holds(t, p.text("#overview"), "Admitted", "3") // what was known stays

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("the address was taken: %v", err)
	}
	var once sync.Once
	busy := make(chan struct{})
	again := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(busy) })
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	_ = again.Listener.Close()
	again.Listener = listener
	again.Start()
	t.Cleanup(again.Close)
	<-busy
	p.until(`document.getElementById("connection").textContent.startsWith("Failing since")`)
	holds(t, p.text("#trouble"), "answers with an error (503)")
	again.Config.Handler = server.Config.Handler
	p.until(`document.getElementById("connection").textContent === "Live"`)
	p.until(`document.getElementById("trouble").hidden`)
	p.faultless(server.URL)
}

func pageWithoutActivity(t *testing.T, b *browser) {
	l := played(t)
	server := httptest.NewServer(httphandler.New(l, &httphandler.Options{StatusPage: statuspage.Page()}))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL+"/#entity=someone&resource=gpt-4o")
	p.until(`document.getElementById("subjects").innerText.includes("600 of 600 in use")`)
	p.until(`!document.getElementById("no-activity").hidden && document.getElementById("denials").hidden`)
	p.faultless(server.URL)
}

// pageSizes checks, with long names, that the page does not scroll sideways and that targets are
// large enough for a finger.
func pageSizes(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	for _, entity := range []string{"acme-bot", hostile, strings.Repeat("x", 256)} {
		names := url.Values{"entity": {entity}, "resource": {entity[:min(len(entity), 64)]}}
		p := b.tab(360, 740, "dark", server.URL+"/#"+names.Encode())
		p.until(`document.getElementById("connection").textContent === "Live"`)
		for _, width := range []int{320, 360, 700, 768, 1280, 1920} {
			p.resize(width, 900, "dark")
			checkWidth(p, entity, width)
		}
	}
}

// pageContrast checks that the contrast of every text with its background is at least 4.5 to 1.
func pageContrast(t *testing.T, b *browser) {
	server := shown(t, httphandler.Options{})
	for _, scheme := range []string{"light", "dark"} {
		p := b.tab(1280, 900, scheme, server.URL+"/#entity=acme-bot&resource=gpt-4o")
		p.until(`document.getElementById("explanations").innerText.includes("applies")`)
		for _, state := range []string{"", "stale"} {
			var low []string
			var texts int
			p.eval(`document.getElementById("content").className = "`+state+`"`, nil)
			p.eval(contrastScript, &struct {
				Texts *int
				Low   *[]string
			}{&texts, &low})
			if len(low) > 0 || texts < 60 {
				t.Errorf("%s %s: %d texts, too faint: %q", scheme, state, texts, low)
			}
			t.Logf("%s %s: %d texts have contrast", scheme, state, texts)
		}
	}
}

const contrastScript = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const over = (top, under, a) => top.map((v, i) => v * a + under[i] * (1 - a));
	const light = (c) => {
		const [r, g, b] = c.map((v) => v / 255)
			.map((v) => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4));
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const behind = (e) => {
		if (!e) return [255, 255, 255];
		const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
		return a === 1 ? [r, g, b] : over([r, g, b], behind(e.parentElement), a);
	};
	const low = [];
	let texts = 0;
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility()) continue;
		if (e.closest(".hidden, .skip, noscript")) continue;
		texts++;
		let seen = 1;
		for (let up = e; up; up = up.parentElement) seen *= Number(getComputedStyle(up).opacity);
		const back = behind(e);
		const front = over(parse(getComputedStyle(e).color).slice(0, 3), back, seen);
		const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
		const ratio = (a + .05) / (b + .05);
		if (ratio < 4.5) low.push([ratio.toFixed(2), e.className, walk.currentNode.data].join(" "));
	}
	return { texts, low };
})()`

// pageGroups shows equal denials once, with their number, and says when many are denied.
func pageGroups(t *testing.T, b *browser) {
	l := played(t)
	// The page leaves out the last second, which is not over.
	at := l.now
	l.now = l.now.Add(5 * time.Second)
	deny := func(entity, owner string, available int64) {
		asked := []weir.Subject{{Entity: entity, Resource: "r"}}
		l.activity.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: at,
			Err: &weir.DeniedError{RetryAfter: time.Second, Charges: asked},
			Limits: []weir.LimitStatus{{Entity: owner, Resource: "r", Limit: "tpm", Kind: weir.Bucket,
				Capacity: 9, Available: available, Requested: 5, Exceeded: true}}})
	}
	o := &httphandler.Options{
		Activity: l.activity.Report, StatusPage: statuspage.Page(), Now: func() time.Time { return l.now },
	}
	server := httptest.NewServer(httphandler.New(l, o))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL)
	const rows = `document.querySelectorAll("#denials-rows tr")`
	p.until(rows + `.length === 3`)
	const share = `document.getElementById("high-share")`
	p.until(share + `.hidden && !document.getElementById("denied").classList.contains("alarm")`)

	for i := range int64(3) {
		deny("team-a", "acme", i)
		deny("team-b", "acme", i)
	}
	deny("team-a", "team-a", 3) // its own limit: another group
	p.until(rows + `.length === 6`)
	holds(t, p.text("#parties-rows"), "acme 12:00:03 0 0 7", "team-a 12:00:03 4 4 1", "acme-bot 12:00:03 4 2 2",
		"team-b 12:00:03 3 3 0", "someone 12:00:03 2 1 1")
	p.eval(`{ window.row = `+rows+`[1]; row.querySelector("a").focus(); }`, nil)
	holds(t, p.text("#denials-rows"), "team-a", "r", "tpm asked 5 · 6 of 9 in use",
		"3 times since", "team-b", "tpm of acme asked 5 · 7 of 9 in use",
		"3 times since", "team-a", "tpm of acme asked 5 · 7 of 9 in use", "someone")
	deny("team-b", "acme", 1)
	p.until(`row === ` + rows + `[0] && row.contains(document.activeElement) && row.innerText.includes("4 times")`)
	holds(t, p.text("#denials-rows"), "4 times since", "team-b", "tpm of acme asked 5 · 8 of 9 in use", "team-a")
	p.until("!" + share + `.hidden && document.getElementById("denied").classList.contains("alarm")`)
	holds(t, p.text("#high-share"), "79% of the reservations of the last two minutes were denied: 11 of 14.",
		"Most often lately: team-b on r, by tpm of acme (4 of the last 11).")
	p.faultless(server.URL)
}

// pageSeveral shows each charge of a denial, and whose each limit is.
func pageSeveral(t *testing.T, b *browser) {
	l := played(t)
	l.activity.Observe(t.Context(), limiter.Event{Verb: weir.VerbReserve, At: l.now,
		Err: &weir.DeniedError{RetryAfter: time.Second, Charges: []weir.Subject{
			{Entity: "team-a", Resource: "gpt-4o"}, {Entity: "team-b", Resource: "search"},
		}},
		Limits: []weir.LimitStatus{{Entity: "team-b", Resource: "search", Limit: "calls",
			Kind: weir.Window, Capacity: 9, Requested: 1, Exceeded: true}}})
	o := &httphandler.Options{Activity: l.activity.Report, StatusPage: statuspage.Page()}
	server := httptest.NewServer(httphandler.New(l, o))
	t.Cleanup(server.Close)
	p := b.tab(1280, 900, "light", server.URL)
	p.until(`document.querySelectorAll("#denials-rows tr").length === 4`)
	holds(t, p.text("#denials-rows tr"), "team-a gpt-4o", "team-b search", "calls of team-b", "asked 1 · 9 of 9 in use")
	p.faultless(server.URL)
}
