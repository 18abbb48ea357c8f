package report

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/chart"
	"github.com/weir-limiter/weir/internal/lab/replay"
)

// TestMeters checks the bars of use by the table that the bars of the server's status page follow
// too: the share that is drawn, in percent, its colour and its words.
func TestMeters(t *testing.T) {
	t.Parallel()
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
	r := &replay.Report{Resource: "llm", Timeline: &replay.Timeline{}}
	for _, m := range want.Meters {
		r.Timeline.Limits = append(r.Timeline.Limits, &replay.LimitTimeline{
			Entity: "acme", Limit: "l", Kind: m.Kind, Capacity: m.Capacity, PeakUse: []int64{-1, 0, m.Used},
		})
	}
	page := &chart.Page{Sections: []chart.Section{
		{Figures: []chart.Figure{(&side{Report: r}).mostInUse()}},
	}}
	var b bytes.Buffer
	if err := page.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, key := range want.Legend {
		if !strings.Contains(b.String(), ">"+key+"</li>") {
			t.Errorf("the legend lacks %q", key)
		}
	}
	bars := regexp.MustCompile(`(?s)<svg class="bar".*?<span>.*?</span>`).FindAllString(b.String(), -1)
	if len(bars) != len(want.Meters) {
		t.Fatalf("got %d bars, want %d", len(bars), len(want.Meters))
	}
	for i, m := range want.Meters {
		share, err := strconv.ParseFloat(m.Share, 64)
		if err != nil {
			t.Fatal(err)
		}
		drawn := `<path class="` + m.Colour + `" d="M0 0h` + strconv.Itoa(int(share*10)) + "v"
		if share > 0 != strings.Contains(bars[i], drawn) || !strings.Contains(bars[i], "<span>"+m.Text+"</span>") {
			t.Errorf("got %s, want %s and %s", bars[i], drawn, m.Text)
		}
	}
}
