package chart_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/chart"
)

// written returns the HTML of a page.
func written(t *testing.T, p *chart.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// one returns a page with one figure.
func one(f chart.Figure) *chart.Page {
	return &chart.Page{Title: "t", Sections: []chart.Section{{Figures: []chart.Figure{f}}}}
}

func TestPageShowsItsContent(t *testing.T) {
	t.Parallel()
	got := written(t, sample(60, 13))
	for _, want := range []string{
		"<!doctype html>\n<html lang=\"en\">", "<title>Replay of an hour of traffic</title>",
		`<meta name="viewport" content="width=device-width, initial-scale=1">`,
		`<dt>Denied</dt><dd class="alarm">507</dd><dd class="note">5.7 %, 1,310,022 tokens</dd>`,
		`<dt>Admitted</dt><dd>8,312</dd>`, `<dt>entities</dt><dd>4 (tenant-1 to tenant-4)</dd>`,
		`<th scope="col" class="number">Denied</th>`,
		`<td class="number alarm" data-label="Denied">37</td>`,
		`<td class="number" data-label="Denied">0</td>`, // 0 is not an alarm
		`<h3>Calls each 1 min</h3>`, `<li class="key good">admitted</li>`, `<li class="key bad">denied</li>`,
		`<li class="key rule">capacity 600,000</li>`, `<p class="side upper">limits.yaml</p>`,
		`<footer>weir replay --html`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(got, "<figure"); n != 18 {
		t.Errorf("%d figures, want 18", n)
	}
	unnamed := one(&chart.Columns{Title: "t", Series: []chart.Series{{Values: []int64{1}}}})
	if got := written(t, unnamed); strings.Contains(got, `<li class="key`) {
		t.Errorf("a series without a name has a key")
	}
	if got := written(t, one(nil)); strings.Contains(got, "<figure") {
		t.Errorf("no figure is\n%s", got)
	}
	if got := text(t, nil, nil); got != "" {
		t.Errorf("no figure is %q", got)
	}
	if got := written(t, &chart.Page{Title: "t"}); strings.Contains(got, "<section") ||
		strings.Contains(got, "<footer") || !strings.Contains(got, "<h1>t</h1>") {
		t.Errorf("an empty page is\n%s", got)
	}
}

// TestPageLoadsNothing looks for everything that a browser would load or run, and checks that
// the page's policy forbids it.
func TestPageLoadsNothing(t *testing.T) {
	t.Parallel()
	loads := regexp.MustCompile(`(?i)<(script|img|iframe|object|embed|video|audio|base|form|use|image)\b` +
		`|<[^>]*\s(on\w+|src|srcset|action|style|xlink:href)=|@import|url\(`)
	values := regexp.MustCompile(`="[^"]*"`) // names in values are not attributes
	refers := regexp.MustCompile(`(?i)\shref="([^"]*)"`)
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`)
	for name, p := range map[string]*chart.Page{"sample": sample(60, 13), "hostile": hostilePage()} {
		page := written(t, p)
		if found := loads.FindAllString(values.ReplaceAllString(page, "="), -1); found != nil {
			t.Errorf("%s: the page has %q", name, found)
		}
		for _, ref := range refers.FindAllStringSubmatch(page, -1) {
			if ref[1] != "#main" && !strings.HasPrefix(ref[1], "data:image/svg+xml,") {
				t.Errorf("%s: the page refers to %s", name, ref[1])
			}
		}
		sum := sha256.Sum256([]byte(style.FindStringSubmatch(page)[1]))
		want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; img-src data:; base-uri 'none'; form-action 'none'"
		if got := html.UnescapeString(policy.FindStringSubmatch(page)[1]); got != want {
			t.Errorf("%s: the policy is %s, want %s", name, got, want)
		}
		if n := strings.Count(page, "<style"); n != 1 {
			t.Errorf("%s: %d styles", name, n)
		}
	}
	if !loads.MatchString(`<a onclick="x">`) || !loads.MatchString("<SCRIPT>") {
		t.Error("the test finds nothing")
	}
}

func TestPageKeepsNamesAsText(t *testing.T) {
	t.Parallel()
	page := written(t, hostilePage())
	for _, bad := range []string{"<script", "alert(\"", "\u202e", "\x1b", "<title></title>"} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page has %q: %s", bad, page[max(i-50, 0):min(i+50, len(page))])
		}
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 30 {
		t.Errorf("the name is shown %d times", n)
	}
	if n := strings.Count(page, `\u202e`); n < 30 {
		t.Errorf("what turns text around is shown %d times", n)
	}
	if a, b := strings.Count(page, "<svg"), strings.Count(page, "</svg>"); a != b || a == 0 {
		t.Errorf("%d and %d ends of drawings", a, b)
	}
}

func TestPageIsSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ intervals, limits, most int }{
		{100, 20, 500_000}, {60, 13, 250_000}, {100_000, 1, 1_000_000},
	} {
		if n := len(written(t, sample(c.intervals, c.limits))); n > c.most {
			t.Errorf("%d intervals, %d limits: %d bytes, at most %d", c.intervals, c.limits, n, c.most)
		} else {
			t.Logf("%d intervals, %d limits: %d bytes", c.intervals, c.limits, n)
		}
	}
}

// TestPageHasNumbersInTables reads the numbers of a figure from its table.
func TestPageHasNumbersInTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		figure chart.Figure
		want   []string
	}{
		{"columns", &chart.Columns{Title: "Calls", Times: minutes(), Series: calls()}, []string{
			"from admitted denied", "08:00 0 0", "08:01 10 0", "08:02 20 0", "08:03 30 0", "08:04 40 1",
			"08:05 40 40",
		}},
		{"negative and missing", &chart.Lines{
			Times: minutes(), Series: []chart.Series{
				{Name: "a", Values: []int64{-1000, 5}}, {Name: "b", Values: []int64{7}},
			},
		}, []string{"from a b", "08:00 -1,000 7", "08:01 5 0"}},
		{"bars", &chart.Bars{
			Unit: chart.Milliseconds, Labels: []string{"rpm"},
			Series: []chart.Series{{Name: "wait", Values: []int64{1500, 3}}},
		}, []string{"wait", "rpm 1.5 s", "3 ms"}},
		{"distribution", &chart.Distribution{
			Unit: "tokens", Bounds: []int64{5}, Series: []chart.Series{{Name: "used", Values: []int64{2, 3}}},
		}, []string{"value used", "up to 5 tokens 2", "above 5 tokens 3"}},
		{"comparison", &chart.Comparison{
			Times: minutes(), Above: chart.ComparisonSide{Name: "x", Series: calls()[:1]},
			Below: chart.ComparisonSide{Name: "y", Series: []chart.Series{{Name: "n", Values: []int64{4}}}},
		}, []string{
			"from x: admitted y: n", "08:00 0 4", "08:01 10 0", "08:02 20 0", "08:03 30 0", "08:04 40 0",
			"08:05 40 0",
		}},
		{"nothing", &chart.Columns{Title: "Calls"}, nil},
	} {
		page := written(t, one(c.figure))
		if got := tableRows(page); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if none := strings.Contains(page, "Nothing to show."); none != (c.want == nil) {
			t.Errorf("%s: nothing to show is %v", c.name, none)
		}
	}
}

// tableRows returns the rows of the tables of a page, with a space between cells.
func tableRows(page string) []string {
	row := regexp.MustCompile(`<tr>(.*)</tr>`)
	tag := regexp.MustCompile(`<[^>]*>`)
	var out []string
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(m[1], " "))), " "))
	}
	return out
}
