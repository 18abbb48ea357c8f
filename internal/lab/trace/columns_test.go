package trace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestColumns checks columns with other names, and columns for the entity, the model and the
// duration.
func TestColumns(t *testing.T) {
	t.Parallel()
	const burst = "Timestamp,Session,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,1,9.9,ChatGPT,472,18,490,Conversation log\n" +
		"45.5,1,1,ChatGPT,1087,230,1317,Conversation log\n" +
		"45.5009,2,0.0001,GPT-4,417,276,693,API log\n"
	o := &Options{
		Time: "Timestamp", Input: "Request tokens", Output: "Response tokens", Model: "Model",
		Duration: "Elapsed time", DurationUnit: Seconds,
	}
	got, err := Read(t.Context(), "t.csv", strings.NewReader(burst), o)
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{
		Name: "t.csv", ModelColumn: "Model", DurationColumn: "Elapsed time",
		Calls: []Call{
			{5000, 472, 18, 2, 0, 9900}, {45500, 1087, 230, 3, 0, 1000}, {45500, 417, 276, 4, 1, 1},
		},
		Callers: []EntityModel{{Resource: "ChatGPT"}, {Resource: "GPT-4"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if *o != (Options{
		Time: "Timestamp", Input: "Request tokens", Output: "Response tokens", Model: "Model",
		Duration: "Elapsed time", DurationUnit: Seconds,
	}) {
		t.Errorf("got options %+v, want them as they were", o)
	}
}

func TestColumnMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line    string
		options Options
		want    string
	}{
		{"1,1,1,a", Options{Entity: "nobody"}, `t.csv:1: header "t,i,o,x y": has no column nobody; ` +
			`--entity-column names one of t, i, o, "x y"`},
		{"1,1,1,a", Options{Entity: "X Y"}, `t.csv:1: header "t,i,o,x y": has no column "X Y"; ` +
			`--entity-column names one of t, i, o, "x y"`},
		{"1,1,1,a#b", Options{Entity: "x y"}, `t.csv:2: x y "a#b": `},
		{"1,1,1,", Options{Entity: "x y"}, `t.csv:2: x y "": must not be empty`},
		{"1,1,1," + strings.Repeat("é", 200), Options{Entity: "x y"}, `t.csv:2: x y "` +
			strings.Repeat("é", 32) + `… (400 bytes)": `},
		{"1,1,1,gpt 4", Options{Model: "x y"}, `t.csv:2: x y "gpt 4": `},
		{"1,1,1,1h", Options{Duration: "x y"}, `t.csv:2: x y "1h": must be less than an hour: ` +
			`a lease lives no longer`},
		{"1,1,1,", Options{Duration: "x y"}, `t.csv:2: x y "": must be a number of ms, or a duration like 1.5s`},
		{"1,1,1,-5ms", Options{Duration: "x y"}, `t.csv:2: x y "-5ms": must not be negative`},
	} {
		o := c.options
		o.Time, o.Input, o.Output = "t", "i", "o"
		text := "t,i,o,x y\n" + c.line + "\n"
		_, err := Read(t.Context(), "t.csv", strings.NewReader(text), &o)
		if first, _, _ := strings.Cut(fmt.Sprint(err), "\n"); !strings.HasPrefix(first, c.want) {
			t.Errorf("%s: got %q, want %q", c.line, first, c.want)
		}
	}
}

// TestTooManyNames checks that the number of names in a trace is bounded.
func TestTooManyNames(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens,m\n")
	for i := range maxResources + 1 {
		fmt.Fprintf(&text, "1,1,1,m%d\n", i)
	}
	_, err := Read(t.Context(), "t.csv", strings.NewReader(text.String()), &Options{Model: "m"})
	want := `t.csv:1002: m "m1000": is one too many: a trace has at most 1,000 of them`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	many := strings.Repeat("c,", 50) + "d"
	_, err = Read(t.Context(), "t.csv", strings.NewReader(many), nil)
	if err == nil || !strings.Contains(err.Error(), "names one of c, c,") ||
		!strings.Contains(err.Error(), "c and 31 more") {
		t.Errorf("got %v, want some of the columns", err)
	}
}

// TestSort checks that calls are sorted by time if asked, and that calls of one instant keep their
// order.
func TestSort(t *testing.T) {
	t.Parallel()
	text := traceHeader + "9,1,0\n5.001,2,0\n5.0009,3,0\n5.0001,4,0\n1970-01-01 00:00:05.001,5,0\n0,6,0\n"
	got, err := Read(t.Context(), "t.csv", strings.NewReader(text), &Options{Sort: true})
	if err != nil {
		t.Fatal(err)
	}
	var order []int64
	for _, c := range got.Calls {
		order = append(order, c.Input)
	}
	if want := []int64{6, 3, 4, 2, 5, 1}; !reflect.DeepEqual(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}
