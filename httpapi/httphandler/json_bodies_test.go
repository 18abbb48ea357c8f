package httphandler

import (
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// reads returns the verbs for which a body is valid. It compares the reader with encoding/json.
func reads(t *testing.T, text []byte) []string {
	t.Helper()
	var good []string
	if readsReserve(t, text) {
		good = append(good, "reserve")
	}
	if readsComplete(t, text) {
		good = append(good, "complete")
	}
	for verb, u := range map[string]updateBody{"adjust": adjustBody(), "cancel": {}} {
		if new(bodyReader).update(text, &u) == nil {
			good = append(good, verb)
		}
	}
	return good
}

const leaseMember = `"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`

// ordinaryBodies returns typical bodies by verb.
func ordinaryBodies() map[string][]string {
	return map[string][]string{
		"reserve": {
			`{"entity":"acme","resource":"openai/gpt-4o","costs":{"rpm":1,"tpm":500}}`,
			`{` + leaseMember + `,"entity":"acme","resource":"gpt-4o","costs":{"rpm":1}}`,
			`{"costs":{"tpm":0,"rpm":1},"resource":"gpt-4o","entity":"team-a",` + strings.ToLower(leaseMember) + `}`,
			"{\n  \"entity\": \"acme\",\n  \"resource\": \"gpt-4o\",\n  \"costs\": {\n    \"rpm\": 1\n  }\n}\n",
			"\t{ \"entity\" : \"acme\" ,\r\n\"resource\" : \"gpt-4o\" , \"costs\" : { \"rpm\" : 1 , \"tpm\" : 2 } } ",
			`{"entity":"a b/c","resource":"<m>&'","costs":{}}`, `{"entity":"a","resource":"m"}`, `{}`, ` { } `,
			`{"entity":"a","resource":"m","costs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}}`,
			`{"costs":{"a":999999999999999999,"b":-999999999999999999,"c":-0}}`,
			`{"entity":"é"}`, `{"entity":"a\u0062"}`, "{\"entity\":\"\x7f\"}", `{"costs":{"":1}}`,
			`{"costs":{"a":1000000000000000000}}`, `{"limits":{}}`, `{"entity":"a","limits":{}}`,
			`{"costs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}}`,
			`{"entity":"a"}` + strings.Repeat(" ", 4096),
		},
		"complete": {
			`{` + leaseMember + `,"actuals":{"tpm":812}}`, `{"actuals":{"tpm":812,"usd":0}, ` + leaseMember + `}`,
			`{` + leaseMember + `,"actuals":{}}`, `{` + leaseMember + `}`, `{` + leaseMember + `,"actuals":[]}`,
			`{ "lease_id" : "01arz3ndektsv4rrffq69g5fav" }`,
		},
		"adjust": {`{` + leaseMember + `,"seq":3,"totals":{"tpm":812}}`, `{"totals":{},"seq":1,` + leaseMember + `}`},
		"cancel": {`{` + leaseMember + `}`},
	}
}

func TestOrdinaryBodies(t *testing.T) {
	t.Parallel()
	for verb, bodies := range ordinaryBodies() {
		for _, body := range bodies {
			if !slices.Contains(reads(t, []byte(body)), verb) {
				t.Errorf("%s: refused: %s", verb, body)
			}
		}
	}
}

func TestDocumentedBodies(t *testing.T) {
	t.Parallel()
	sent := regexp.MustCompile(`/v1/(reserve|complete)[^{]*-d '([^']*)'`)
	found := 0
	for _, file := range []string{"../../README.md", "../../docs/server.md", "../../docs/running.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sent.FindAllSubmatch(text, -1) {
			found++
			if !slices.Contains(reads(t, m[2]), string(m[1])) {
				t.Errorf("%s: %s is refused: %s", file, m[1], m[2])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d bodies were found", found)
	}
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, ` `, `null`, `[]`, `{`, `{}}`, `{} {}`, `{,}`, `{"entity":"a",}`, `{"entity":"a"`, `{"entity"}`,
		`{"entity":""}`, "{\"entity\":\"a\tb\"}",
		"{\"entity\":\"\xff\"}", "\xef\xbb\xbf{}", "{}\x00", "{}\v", `{"entity":1}`, `{"entity":null}`,
		`{"Entity":"a"}`, `{"entity ":"a"}`, `{"other":1}`, `{"entity":"a","entity":"a"}`,
		`{"costs":{"a":1,"a":1}}`, `{"costs":{"a":1},"costs":{"a":1}}`, `{"costs":[]}`,
		`{"costs":{"a":1.0}}`, `{"costs":{"a":1e2}}`, `{"costs":{"a":01}}`, `{"costs":{"a":+1}}`,
		`{"costs":{"a":-}}`, `{"costs":{"a":- 1}}`, `{"costs":{"a":"1"}}`, `{"costs":{"a":1 2}}`,
		`{"costs":{"a":--1}}`, `{"costs":{"a":9223372036854775808}}`,
		`{"charges":[]}`, `{"requirements":[]}`,
		`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FA"}`, `{"lease_id":"00000000000000000000000000"}`,
		`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAU"}`, `{` + leaseMember + `,` + leaseMember + `}`,
		`{` + leaseMember + `,"seq":1}`, `{` + leaseMember + `,"seq":1,"seq":1,"totals":{}}`,
		`{` + leaseMember + `,"totals":{}}`, `{` + leaseMember + `,"seq":1.5,"totals":{}}`, `{"seq":1,"totals":{}}`,
		`{` + leaseMember + `,"actuals":{},"actuals":{}}`, `{"actuals":{}}`,
	} {
		if good := reads(t, []byte(body)); len(good) > 0 {
			t.Errorf("%q is good for %v", body, good)
		}
	}
}

// dice draws the inputs of a property. The same seed draws the same inputs.
type dice struct{ *rand.Rand }

// of draws one of several strings.
func (d dice) of(list ...string) string { return list[d.IntN(len(list))] }

// body draws a body. Most are valid for a verb, and many others are almost valid.
func (d dice) body() []byte {
	return []byte(d.space() + d.object(func() string {
		name := d.of("lease_id", "lease_id", "entity", "resource", "costs", "actuals", "totals", "seq", "limits")
		return `"` + name + `"` + d.space() + ":" + d.space() + d.value(name)
	}) + d.space())
}

// value draws a valid value of a member, or sometimes another one.
func (d dice) value(name string) string {
	if d.IntN(20) == 0 {
		name = d.of("lease_id", "entity", "costs", "seq")
	}
	switch name {
	case "lease_id":
		return `"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	case "costs", "actuals", "totals", "limits":
		return d.object(func() string { return d.text() + ":" + d.number() })
	case "seq":
		return d.number()
	}
	return d.text()
}

func (d dice) space() string {
	if d.IntN(30) == 0 {
		return d.of("\v", "\u00a0", "\x00", ",")
	}
	return d.of("", "", "", " ", "\n\t", "\r")
}

func (d dice) text() string {
	if d.IntN(30) == 0 {
		return d.of(`""`, `"\u0041"`, `"é"`, `"a`, "\"\x7f\"", `"\"`)
	}
	return d.of(`"a"`, `"b"`, `"rpm"`, `"tpm"`, `"acme"`, `"openai/gpt-4o"`, `"}"`, `"<:,>"`)
}

func (d dice) number() string {
	if d.IntN(20) == 0 {
		return d.of("-0", "00", "1.5", "1e3", "-", "", "+1", "9223372036854775808", "10000000000000000000")
	}
	return d.of("0", "1", "-7", "500", "999999999999999999")
}

func (d dice) object(member func() string) string {
	members := make([]string, d.IntN(4))
	for i := range members {
		members[i] = d.space() + member() + d.space()
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestReaderAgreesWithEncodingJSON checks that the reader accepts the same bodies as encoding/json.
func TestReaderAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	taken, refused := 0, 0
	for seed := range uint64(5000) {
		d := dice{rand.New(rand.NewPCG(seed, 0))}
		if body := d.body(); len(reads(t, body)) > 0 {
			taken++
		} else {
			refused++
		}
	}
	t.Logf("%d bodies were taken, %d were refused", taken, refused)
	if taken < 500 || refused < 500 {
		t.Errorf("%d bodies were taken, %d were refused", taken, refused)
	}
}

// TestReaderCopies checks that the values that were read share no memory with the body, which the
// next request overwrites.
func TestReaderCopies(t *testing.T) {
	t.Parallel()
	const text = `{"entity":"acme","resource":"gpt-4o","costs":{"rpm":1}}`
	body := []byte(text)
	var d bodyReader
	r, err := d.reserve(body)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("acme", "evil", "gpt", "xxx", "rpm", "yyy").Replace(text)
	copy(body, other)
	if _, err := d.reserve(body); err != nil {
		t.Fatal(err)
	}
	want := weir.Request{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1}}
	if !reflect.DeepEqual(r.Request, want) {
		t.Errorf("it became %+v, was %+v", r.Request, want)
	}
}

// TestWrittenBodies checks that the reader accepts the bodies that the client writes.
func TestWrittenBodies(t *testing.T) {
	t.Parallel()
	id, costs := weir.LeaseID{1}, weir.Costs{"rpm": 1, "tpm": 500}
	reserve, err := apijson.ReserveRequestOf(&weir.Request{Entity: "acme", Resource: "openai/gpt-4o", Costs: costs})
	if err != nil {
		t.Fatal(err)
	}
	reserve.LeaseID = id.String()
	totals, err := apijson.TotalsOf("totals", []weir.Costs{costs})
	if err != nil {
		t.Fatal(err)
	}
	for verb, body := range map[string]any{
		"reserve":  reserve,
		"adjust":   &apijson.AdjustRequest{LeaseID: id, Seq: 1, Totals: totals},
		"complete": &apijson.CompleteRequest{LeaseID: id, Actuals: totals},
		"cancel":   &apijson.LeaseRequest{LeaseID: id},
	} {
		text, err := apijson.Write(body)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(reads(t, text), verb) {
			t.Errorf("%s: refused: %s", verb, text)
		}
	}
}
