package memory_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

var updateGuide = flag.Bool("update", false, "draw the picture of docs/bucket.md again")

const (
	bucketGuide   = "../docs/bucket.md"
	bucketPicture = "../docs/bucket.svg"
)

// TestBucketGuide plays the hour that docs/bucket.md describes, with the limits of the page, and
// compares the answers, the balances and the picture.
func TestBucketGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(bucketGuide)
	if err != nil {
		t.Fatal(err)
	}
	limits := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	rows := regexp.MustCompile(`(?m)^\| (\d\d:\d\d) \| (.*) \| (.*)\| (\S+) \|$`).FindAllStringSubmatch(string(page), -1)
	if limits == nil || len(rows) < 10 {
		t.Fatalf("%s: got limits %q and %d rows", bucketGuide, limits, len(rows))
	}
	m, err := manifest.Parse("limits.yaml", limits[1])
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	g := &guideBucket{t: t}
	g.limiter, err = limiter.New(store, &limiter.Options{Now: func() time.Time { return g.now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		g.advance(row[1])
		answer := g.call(row[2])
		if want := strings.TrimSpace(row[3]); answer != want {
			t.Errorf("%s %s: got answer %q, want %q", row[1], row[2], answer, want)
		}
		if got, want := g.look(), guideUnits(t, row[4]); got != want {
			t.Errorf("%s %s: got balance %d, want %d", row[1], row[2], got, want)
		}
	}
	picture := drawBucket(g.points)
	if *updateGuide {
		if err := os.WriteFile(bucketPicture, picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(bucketPicture); err != nil || !bytes.Equal(drawn, picture) {
		t.Errorf("%s is not the picture of the table (error %v); -update draws it", bucketPicture, err)
	}
}

// guideBucket is the bucket of the page, with its balance over time.
type guideBucket struct {
	t       *testing.T
	limiter *limiter.Limiter
	now     time.Time
	lease   *weir.Lease // the last one that was reserved
	points  []guidePoint
}

// guidePoint is the balance at a minute of the hour.
type guidePoint struct{ minute, balance int64 }

// advance goes to a time of the table, and looks at the balance before the call.
func (g *guideBucket) advance(at string) {
	g.t.Helper()
	clock, err := time.Parse("15:04", at)
	if err != nil {
		g.t.Fatal(err)
	}
	g.now = time.Date(2026, 1, 1, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
	if len(g.points) == 0 {
		g.points = []guidePoint{{g.minute(), g.balance()}}
		return
	}
	g.look()
}

// look adds the balance to the points and returns it.
func (g *guideBucket) look() int64 {
	g.t.Helper()
	balance := g.balance()
	g.points = append(g.points, guidePoint{g.minute(), balance})
	return balance
}

func (g *guideBucket) minute() int64 { return int64(g.now.Hour()-12)*60 + int64(g.now.Minute()) }

func (g *guideBucket) balance() int64 {
	g.t.Helper()
	status, err := g.limiter.Status(g.t.Context(), "acme", "gpt-4o")
	if err != nil || len(status) != 1 {
		g.t.Fatalf("got status %v, %v, want one limit", status, err)
	}
	return status[0].Available
}

// call makes the call of a row and returns its answer as the page has it.
func (g *guideBucket) call(text string) string {
	g.t.Helper()
	verb, units := text, int64(0)
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		verb, units = text[:i], guideUnits(g.t, text[i+1:])
	}
	costs := weir.Costs{"tpm": units}
	var err error
	switch verb {
	case "look":
	case "reserve":
		var lease *weir.Lease
		lease, err = g.limiter.Reserve(g.t.Context(), &weir.Request{
			Entity: "acme", Resource: "gpt-4o", Costs: costs,
		})
		if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
			return fmt.Sprintf("denied, retry after %v", denied.RetryAfter)
		}
		if err == nil {
			g.lease = lease
			return "admitted"
		}
	case "complete with":
		_, err = g.lease.Complete(g.t.Context(), costs)
	case "cancel":
		_, err = g.lease.Cancel(g.t.Context())
	default:
		g.t.Fatalf("the table has the call %q", text)
	}
	if err != nil {
		g.t.Fatalf("%s: %v", text, err)
	}
	return ""
}

// guideUnits parses a number with commas.
func guideUnits(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// drawBucket returns the picture of an hour: a line through the points, between which the balance
// rises evenly.
func drawBucket(points []guidePoint) []byte {
	x := func(minute int64) int64 { return 70 + minute*10 }
	y := func(balance int64) int64 { return 260 - balance/250 } // 60,000 is at 20, and 0 at 260
	var b bytes.Buffer
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 330" role="img" aria-label="The balance of the bucket">
<style>
text { font: 13px system-ui, sans-serif; fill: #57606a }
.grid { stroke: #8c959f; stroke-opacity: .35 }
.zero { stroke: #8c959f }
.line { fill: none; stroke: #2563c9; stroke-width: 2.5; stroke-linejoin: round }
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } .line { stroke: #5b9bf5 } }
</style>
`)
	for balance := int64(0); balance <= 60_000; balance += 10_000 {
		class := "grid"
		if balance == 0 {
			class = "zero"
		}
		fmt.Fprintf(&b, "<path class=%q d=\"M%d %dH%d\"/><text x=\"60\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
			class, x(0), y(balance), x(60), y(balance)+4, strings.Replace(strconv.FormatInt(balance, 10), "0000", "0,000", 1))
	}
	for minute := int64(0); minute <= 60; minute += 10 {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"310\" text-anchor=\"middle\">%02d:%02d</text>\n",
			x(minute), 12+minute/60, minute%60)
	}
	b.WriteString(`<path class="line" d="`)
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%d %d", command, x(p.minute), y(p.balance))
	}
	b.WriteString("\"/>\n</svg>\n")
	return b.Bytes()
}
