package apijson

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// plainSettles are the verbs on a lease, to be read.
func plainSettles() map[string]func() Update {
	return map[string]func() Update{
		"adjust": NewAdjust, "complete": NewComplete, "cancel": func() Update { return Update{} },
	}
}

// readsPlain holds the reader of the plain form against the general one: what it takes, the other
// takes too, and understands in the same way. It returns which verbs it took the text for.
func readsPlain(t *testing.T, text []byte) []string {
	t.Helper()
	v, bad := parseDocument(text)
	var took []string
	if fast := scanReserve(text); fast != nil {
		took = append(took, "reserve")
		if bad != nil {
			t.Fatalf("%q is read as %+v, but %v", text, fast, bad)
		}
		slow, err := parseReserve(v)
		if err != nil || !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%q is read as %+v, want %+v, %v", text, fast, slow, err)
		}
	}
	for verb, empty := range plainSettles() {
		fast, slow := new(empty()), new(empty())
		if !scanUpdate(text, fast) {
			if !reflect.DeepEqual(*fast, empty()) {
				t.Fatalf("%s: %q is not read, but left %+v", verb, text, fast)
			}
			continue
		}
		took = append(took, verb)
		if bad != nil {
			t.Fatalf("%s: %q is read as %+v, but %v", verb, text, fast, bad)
		}
		if err := parseUpdate(v, slow); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%s: %q is read as %+v, want %+v, %v", verb, text, fast, slow, err)
		}
	}
	return took
}

const plainID = `"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`

// ordinaryBodies are what callers send, by verb: the plain form takes them all.
func ordinaryBodies() map[string][]string {
	return map[string][]string{
		"reserve": {
			`{"entity":"acme","resource":"openai/gpt-4o","costs":{"rpm":1,"tpm":500}}`,
			`{` + plainID + `,"entity":"acme","resource":"gpt-4o","costs":{"rpm":1}}`,
			`{"costs":{"tpm":0,"rpm":1},"resource":"gpt-4o","entity":"team-a",` + strings.ToLower(plainID) + `}`,
			"{\n  \"entity\": \"acme\",\n  \"resource\": \"gpt-4o\",\n  \"costs\": {\n    \"rpm\": 1\n  }\n}\n",
			"\t{ \"entity\" : \"acme\" ,\r\n\"resource\" : \"gpt-4o\" , \"costs\" : { \"rpm\" : 1 , \"tpm\" : 2 } } ",
			`{"entity":"a b/c","resource":"<m>&'","costs":{}}`, `{"entity":"a","resource":"m"}`, `{}`, ` { } `,
			`{"entity":"a","resource":"m","costs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}}`,
			`{"costs":{"a":999999999999999999,"b":-999999999999999999,"c":-0}}`,
		},
		"complete": {
			`{` + plainID + `,"actuals":{"tpm":812}}`, `{"actuals":{"tpm":812,"usd":0}, ` + plainID + `}`,
			`{` + plainID + `,"actuals":{}}`, `{` + plainID + `}`, `{ "lease_id" : "01arz3ndektsv4rrffq69g5fav" }`,
		},
		"adjust": {`{` + plainID + `,"seq":3,"totals":{"tpm":812}}`, `{"totals":{},"seq":1,` + plainID + `}`},
		"cancel": {`{` + plainID + `}`},
	}
}

func TestOrdinaryBodiesAreReadPlainly(t *testing.T) {
	t.Parallel()
	for verb, bodies := range ordinaryBodies() {
		for _, body := range bodies {
			if took := readsPlain(t, []byte(body)); !contains(took, verb) {
				t.Errorf("%s: not in plain form: %s", verb, body)
			}
		}
	}
}

func contains(list []string, s string) bool {
	return strings.Contains(" "+strings.Join(list, " ")+" ", " "+s+" ")
}

// What the documentation tells people to send is in plain form too.
func TestDocumentedBodiesAreReadPlainly(t *testing.T) {
	t.Parallel()
	sent := regexp.MustCompile(`/v1/(reserve|complete)[^{]*-d '([^']*)'`)
	found := 0
	for _, file := range []string{"../../README.md", "../../docs/server.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sent.FindAllSubmatch(text, -1) {
			found++
			if took := readsPlain(t, m[2]); !contains(took, string(m[1])) {
				t.Errorf("%s: %s is not in plain form: %s", file, m[1], m[2])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d bodies were found", found)
	}
}

// Whatever has another form, or a mistake, is left to the general reader.
func TestOtherBodiesAreNotReadPlainly(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, ` `, `null`, `[]`, `{`, `{}}`, `{} {}`, `{,}`, `{"entity":"a",}`, `{"entity":"a"`, `{"entity"}`,
		`{"entity":""}`, `{"entity":"é"}`, `{"entity":"a\u0062"}`, "{\"entity\":\"a\tb\"}", "{\"entity\":\"\x7f\"}",
		"{\"entity\":\"\xff\"}", "\xef\xbb\xbf{}", "{}\x00", "{}\v", `{"entity":1}`, `{"entity":null}`,
		`{"Entity":"a"}`, `{"entity ":"a"}`, `{"other":1}`, `{"entity":"a","entity":"a"}`,
		`{"costs":{"a":1,"a":1}}`, `{"costs":{"a":1},"costs":{"a":1}}`, `{"costs":{"":1}}`, `{"costs":[]}`,
		`{"costs":{"a":1.0}}`, `{"costs":{"a":1e2}}`, `{"costs":{"a":01}}`, `{"costs":{"a":+1}}`,
		`{"costs":{"a":-}}`, `{"costs":{"a":- 1}}`, `{"costs":{"a":"1"}}`, `{"costs":{"a":1 2}}`,
		`{"costs":{"a":--1}}`, `{"costs":{"a":1000000000000000000}}`, `{"costs":{"a":9223372036854775808}}`,
		`{"costs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}}`,
		`{"charges":[]}`, `{"requirements":[]}`, `{"limits":{}}`, `{"entity":"a","limits":{}}`,
		`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FA"}`, `{"lease_id":"00000000000000000000000000"}`,
		`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAU"}`, `{` + plainID + `,` + plainID + `}`,
		`{` + plainID + `,"seq":1}`, `{` + plainID + `,"seq":1,"seq":1,"totals":{}}`,
		`{` + plainID + `,"totals":{}}`, `{` + plainID + `,"seq":1.5,"totals":{}}`, `{"seq":1,"totals":{}}`,
		`{` + plainID + `,"actuals":[]}`, `{` + plainID + `,"actuals":{},"actuals":{}}`, `{"actuals":{}}`,
		`{"entity":"a"}` + strings.Repeat(" ", maxPlain),
	} {
		if took := readsPlain(t, []byte(body)); len(took) > 0 {
			t.Errorf("%.80q is read plainly, as %v", body, took)
		}
	}
}

// FuzzPlainBody holds the two readers against each other.
func FuzzPlainBody(f *testing.F) {
	for _, s := range fuzzSeeds() {
		f.Add([]byte(s))
	}
	for _, bodies := range ordinaryBodies() {
		for _, s := range bodies {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) { readsPlain(t, text) })
}

// plainBody draws a body near the plain form: most are in it, and many others not by a hair.
func (d dice) plainBody() []byte {
	return []byte(d.space() + d.object(func() string {
		name := d.of("lease_id", "lease_id", "entity", "resource", "costs", "actuals", "totals", "seq", "limits")
		return `"` + name + `"` + d.space() + ":" + d.space() + d.plainValue(name)
	}) + d.space())
}

// plainValue draws what a member may be, or now and then something else.
func (d dice) plainValue(name string) string {
	if d.IntN(20) == 0 {
		name = d.of("lease_id", "entity", "costs", "seq")
	}
	switch name {
	case "lease_id":
		return `"01ARZ3NDEKTSV4RRFFQ69G5FAV"`
	case "costs", "actuals", "totals", "limits":
		return d.object(func() string { return d.plainString() + ":" + d.plainNumber() })
	case "seq":
		return d.plainNumber()
	}
	return d.plainString()
}

func (d dice) space() string {
	if d.IntN(30) == 0 {
		return d.of("\v", "\u00a0", "\x00", ",")
	}
	return d.of("", "", "", " ", "\n\t", "\r")
}

func (d dice) plainString() string {
	if d.IntN(30) == 0 {
		return d.of(`""`, `"\u0041"`, `"é"`, `"a`, "\"\x7f\"", `"\"`)
	}
	return d.of(`"a"`, `"b"`, `"rpm"`, `"tpm"`, `"acme"`, `"openai/gpt-4o"`, `"}"`, `"<:,>"`)
}

func (d dice) plainNumber() string {
	if d.IntN(20) == 0 {
		return d.of("-0", "00", "1.5", "1e3", "-", "", "+1", d.digits(16, 20))
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

func TestPlainReaderAgrees(t *testing.T) {
	t.Parallel()
	taken, left := 0, 0
	property(t, func(t *testing.T, d dice) {
		if len(readsPlain(t, d.plainBody())) > 0 {
			taken++
		} else {
			left++
		}
	})
	t.Logf("%d bodies were in plain form, %d were not", taken, left)
	if taken < 500 || left < 500 {
		t.Errorf("%d bodies were in plain form, %d were not", taken, left)
	}
}

// What the plain form is read into keeps nothing of the text, which the next request overwrites.
func TestPlainReaderCopies(t *testing.T) {
	t.Parallel()
	text := []byte(`{"entity":"acme","resource":"gpt-4o","costs":{"rpm":1}}`)
	r := scanReserve(text)
	want, err := parseReserve(&value{text: append([]byte(nil), text...), index: -1})
	if r == nil || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for i := range text {
		text[i] = 'x'
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("it became %+v, was %+v", r, want)
	}
}
