package httphandler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// mistake is an invalid request and the expected problem.
type mistake struct {
	name   string
	sent   sent
	status int
	field  string
	value  string
	reason string // a substring of the reason
}

// post returns m as a mistake in the body of a verb.
func (m mistake) post(verb, body string) mistake {
	m.sent = sent{method: "POST", target: "/v1/" + verb, body: body}
	return m
}

// checkMistakes sends every mistake to a world with units in use, and checks that the use does not
// change.
func checkMistakes(t *testing.T, mistakes []mistake) {
	t.Helper()
	w := newHandlerWorld(t, &httphandler.Options{MaxBody: 4096})
	w.reserve(`{"entity":"acme-bot","resource":"bucket","costs":{"tpm":400}}`).want(t, 200)
	w.reserve(`{"entity":"acme","resource":"slots"}`).want(t, 200)
	before := w.state()
	for _, m := range mistakes {
		a := w.ask(m.sent)
		if a.status != m.status {
			t.Errorf("%s: status %d, want %d: %s", m.name, a.status, m.status, a.text)
			continue
		}
		field, _ := a.body["field"].(string)
		value, _ := a.body["value"].(string)
		reason, _ := a.body["reason"].(string)
		if field != m.field || value != m.value || m.reason == "" || !strings.Contains(reason, m.reason) {
			t.Errorf("%s: %s %q: %s, want %s %q: %s", m.name, field, value, reason,
				m.field, m.value, m.reason)
		}
	}
	w.unchanged(before)
}

func TestBodyMistakes(t *testing.T) {
	t.Parallel()
	const ok = `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`
	long := strings.Repeat("é", 40)
	bad := func(name, body, field, value, reason string) mistake {
		return mistake{name: name, status: 400, field: field, value: value, reason: reason}.
			post("reserve", body)
	}
	checkMistakes(t, []mistake{
		bad("empty", "", "body", "", "is empty"),
		bad("white space", " \n", "body", "", "is empty"),
		bad("truncated", ok[:len(ok)-1], "body", ok[:len(ok)-1], "unexpected end of JSON input"),
		bad("not JSON", "entity=acme", "body", "entity=acme", "invalid character 'e'"),
		bad("two documents", ok+ok, "body", (ok + ok)[:64]+"… (110 bytes)",
			"after top-level value at byte 56"),
		bad("a comma too many", `{"entity":"acme",}`, "body", `{"entity":"acme",}`,
			"invalid character '}'"),
		bad("a comment", `{} // none`, "body", `{} // none`, "invalid character '/'"),
		bad("not UTF-8", "{\"entity\":\"ac\xffme\"}", "body", "{\"entity\":\"ac\uFFFDme\"}",
			"valid UTF-8"),
		bad("a byte order mark", "\uFEFF{}", "body", "\uFEFF{}", "not valid JSON"),
		bad("an array", `[]`, "body", "[]", "must be an object, not an array"),
		bad("null", `null`, "body", "null", "must be an object, not null"),
		bad("a number", `12`, "body", "12", "must be an object, not a number"),
		bad("a string", `"a"`, "body", `"a"`, "must be an object, not a string"),
		bad("nothing asked", `{}`, "entity", "", "must not be empty"),
		bad("unknown field", ok[:len(ok)-1]+`,"cost":{}}`, "cost", "cost", "is not a known field"),
		bad("another case", `{"Entity":"acme","resource":"bucket"}`, "Entity", "Entity",
			"is not a known field"),
		bad("long unknown field", `{"`+long+`":1}`, strings.Repeat("é", 32)+"… (80 bytes)",
			strings.Repeat("é", 32)+"… (80 bytes)", "is not a known field"),
		bad("deep unknown field", `{"a":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`,
			"a", "a", "is not a known field"),
		bad("field twice", `{"entity":"acme","resource":"bucket","entity":"acme"}`, "entity", "entity",
			"is given twice"),
		bad("field twice in disguise", `{"entity":"acme","resource":"bucket","\u0065ntity":"x"}`,
			"entity", "entity", "is given twice"),
		bad("cost twice", `{"entity":"acme","resource":"bucket","costs":{"tpm":1,"rpm":1,"tpm":1}}`,
			"costs.tpm", "tpm", "is given twice"),
		bad("cost twice in a charge",
			`{"charges":[{"entity":"acme","resource":"bucket","costs":{"tpm":1,"tpm":1}}]}`,
			"charges[0].costs.tpm", "tpm", "is given twice"),
	})
}

func TestFieldMistakes(t *testing.T) {
	t.Parallel()
	bad := func(name, body, field, value, reason string) mistake {
		return mistake{name: name, status: 400, field: field, value: value, reason: reason}.
			post("reserve", body)
	}
	checkMistakes(t, []mistake{
		bad("null entity", `{"entity":null,"resource":"bucket"}`, "entity", "null",
			"must be a string, not null"),
		bad("number as entity", `{"entity":1,"resource":"bucket"}`, "entity", "1",
			"must be a string, not a number"),
		bad("boolean as entity", `{"entity":true,"resource":"bucket"}`, "entity", "true",
			"must be a string, not a boolean"),
		bad("array as entity", `{"entity":["acme"],"resource":"bucket"}`, "entity", `["acme"]`,
			"must be a string, not an array"),
		bad("empty entity", `{"entity":"","resource":"bucket"}`, "entity", "", "must not be empty"),
		bad("empty resource", `{"entity":"acme","resource":""}`, "resource", "", "must not be empty"),
		bad("malformed entity", `{"entity":"$SYSTEM","resource":"bucket"}`, "entity", "$SYSTEM",
			"must not begin with \"$SYSTEM\", which is reserved"),
		bad("malformed resource", `{"entity":"a","resource":"b c"}`, "resource", "b c",
			"must not contain ' '"),
		bad("lone surrogate", `{"entity":"a\ud800","resource":"bucket"}`, "entity", "a\uFFFD",
			"must be valid UTF-8, not half of a surrogate pair"),
		bad("null costs", `{"entity":"acme","resource":"bucket","costs":null}`, "costs", "null",
			"must be an object, not null"),
		bad("array as costs", `{"entity":"acme","resource":"bucket","costs":[1]}`, "costs", "[1]",
			"must be an object, not an array"),
		bad("no lease ID", `{"lease_id":"","entity":"acme","resource":"bucket"}`, "lease_id", "",
			"26 characters"),
		bad("lease ID of zeros",
			`{"lease_id":"`+strings.Repeat("0", 26)+`","entity":"acme","resource":"bucket"}`,
			"lease_id", strings.Repeat("0", 26), "must not be zero"),
		bad("lease ID with a U",
			`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAU","entity":"acme","resource":"bucket"}`,
			"lease_id", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "is not a ULID"),
		bad("number as lease ID", `{"lease_id":1,"entity":"acme","resource":"bucket"}`, "lease_id", "1",
			"must be a string"),
		bad("old lease ID",
			`{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","entity":"acme","resource":"bucket","costs":{"tpm":1}}`,
			"lease_id", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "too old"),
		bad("escapes that are none", `{"entity":"\x41"}`, "body", `{"entity":"\x41"}`,
			"in string escape code"),
	})
}

func TestNumberMistakes(t *testing.T) {
	t.Parallel()
	var mistakes []mistake
	for _, n := range []struct{ text, reason string }{
		{`"1"`, "must be a number, not a string"},
		{`1.5`, "without fraction or exponent"},
		{`1.0`, "without fraction or exponent"},
		{`1e3`, "without fraction or exponent"},
		{`1E3`, "without fraction or exponent"},
		{`-1e-3`, "without fraction or exponent"},
		{`null`, "must be a number, not null"},
		{`true`, "must be a number, not a boolean"},
		{`{}`, "must be a number, not an object"},
		{`[1]`, "must be a number, not an array"},
		{`9223372036854775808`, "must fit in a signed 64-bit integer"},
		{`-9223372036854775809`, "must fit in a signed 64-bit integer"},
		{`18446744073709551615`, "must fit in a signed 64-bit integer"},
		{`-1`, "must not be negative"},
		{`-9223372036854775808`, "must not be negative"},
	} {
		m := mistake{name: n.text, status: 400, field: "costs.tpm", value: n.text, reason: n.reason}
		mistakes = append(mistakes,
			m.post("reserve", `{"entity":"acme","resource":"bucket","costs":{"rpm":1,"tpm":`+n.text+`}}`))
		m.field = "charges[1].costs.tpm"
		mistakes = append(mistakes, m.post("reserve", `{"charges":[{"entity":"acme","resource":"bucket",`+
			`"costs":{"tpm":1}},{"entity":"acme-bot","resource":"bucket","costs":{"tpm":`+n.text+`}}]}`))
		m.field = "requirements[0].amount"
		mistakes = append(mistakes,
			m.post("reserve", `{"requirements":[{"key":"k2","amount":`+n.text+`},`+
				`{"key":"k1","amount":1}]}`))
	}
	usd := mistake{
		name: "money with decimals", status: 400, field: "costs.usd_micros", value: "0.03", reason: "without fraction " +
			"or exponent; money is counted in whole millionths: write 30000 for 0.03 USD",
	}
	mistakes = append(mistakes,
		usd.post("reserve", `{"entity":"acme","resource":"bucket","costs":{"usd_micros":0.03}}`))
	usd.field = "actuals.usd_micros"
	mistakes = append(mistakes,
		usd.post("complete", `{"lease_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","actuals":{"usd_micros":0.03}}`))
	for _, text := range []string{"01", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "1_000"} {
		body := `{"entity":"a","resource":"b","costs":{"tpm":` + text + `}}`
		mistakes = append(mistakes,
			mistake{name: text, status: 400, field: "body", value: body,
				reason: "is not valid JSON"}.post("reserve", body))
	}
	checkMistakes(t, mistakes)
}

func TestFormMistakes(t *testing.T) {
	t.Parallel()
	bad := func(name, body, field, value, reason string) mistake {
		return mistake{name: name, status: 400, field: field, value: value, reason: reason}.
			post("reserve", body)
	}
	charge := `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`
	key := `{"key":"k1","amount":1}`
	charges := strings.Repeat(charge+",", 16) + charge
	costs := make([]string, 33)
	for i := range costs {
		costs[i] = fmt.Sprintf(`"c%d":1`, i)
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`"c%d":1`, i)
	}
	checkMistakes(t, []mistake{
		bad("charges beside entity", `{"entity":"acme","charges":[`+charge+`]}`,
			"charges", "1", "cannot be combined with entity, resource or costs"),
		bad("charges beside costs", `{"costs":{},"charges":[`+charge+`]}`,
			"charges", "1", "cannot be combined with entity, resource or costs"),
		bad("requirements beside resource", `{"resource":"bucket","requirements":[`+key+`]}`,
			"requirements", "1", "cannot be combined with entity, resource or costs"),
		bad("requirements beside charges", `{"charges":[`+charge+`],"requirements":[`+key+`]}`,
			"requirements", "1", "cannot be combined with charges"),
		bad("no charges", `{"charges":[]}`, "charges", "[]", "must not be empty"),
		bad("charges as object", `{"charges":`+charge+`}`, "charges", charge,
			"must be an array, not an object"),
		bad("null charge", `{"charges":[null]}`, "charges[0]", "null", "must be an object, not null"),
		bad("charge without entity", `{"charges":[`+charge+`,{"resource":"bucket"}]}`,
			"charges[1].entity", "", "must not be empty"),
		bad("unknown field in a charge", `{"charges":[{"entity":"acme","resource":"bucket","amount":1}]}`,
			"charges[0].amount", "amount", "is not a known field"),
		bad("too many charges", `{"charges":[`+charges+`]}`, "charges", "17", "at most 16"),
		bad("too many costs",
			`{"entity":"acme","resource":"bucket","costs":{`+strings.Join(costs, ",")+`}}`,
			"costs", "33", "at most 32"),
		bad("no requirements", `{"requirements":[]}`, "requirements", "[]", "must not be empty"),
		bad("requirement without key", `{"requirements":[{"amount":1}]}`, "requirements[0].key", "",
			"must be given"),
		bad("requirement without amount", `{"requirements":[`+key+`,{"key":"k2"}]}`,
			"requirements[1].amount", "", "must be given"),
		bad("key twice", `{"requirements":[`+key+`,{"key":"k2","amount":1},`+key+`]}`,
			"requirements[2].key", "k1", "is given twice"),
		bad("malformed key", `{"requirements":[`+key+`,{"key":"a b","amount":1}]}`,
			"requirements[1].key", "a b", "must not contain ' '"),
		bad("unknown field in a requirement", `{"requirements":[{"key":"k1","amount":1,"unit":"x"}]}`,
			"requirements[0].unit", "unit", "is not a known field"),
	})
}

// TestRefused sends requests that are well-formed but invalid.
func TestRefused(t *testing.T) {
	t.Parallel()
	checkMistakes(t, []mistake{
		{
			name: "unknown limit", status: 404, field: "costs.nope", value: "1", reason: `neither "acme" nor`,
			sent: sent{
				method: "POST", target: "/v1/reserve",
				body: `{"entity":"acme","resource":"bucket","costs":{"nope":1}}`,
			},
		},
		{
			name: "never satisfiable", status: 422, field: "costs.tpm", value: "1001",
			reason: "can hold at most 1000",
			sent: sent{
				method: "POST", target: "/v1/reserve",
				body: `{"entity":"acme","resource":"bucket","costs":{"tpm":1001}}`,
			},
		},
		{
			name: "a key that can never hold it", status: 422, field: "requirements[0].amount", value: "11",
			reason: "can hold at most 10", sent: sent{
				method: "POST", target: "/v1/reserve",
				body: `{"requirements":[{"key":"k2","amount":11}]}`,
			},
		},
	})
}

func TestBroughtMistakes(t *testing.T) {
	t.Parallel()
	bad := func(name, limits, field, value, reason string) mistake {
		return mistake{name: name, status: 400, field: field, value: value,
			reason: reason}.post("reserve",
			`{"entity":"acme","resource":"bucket","costs":{"tpm":1},"limits":`+limits+`}`)
	}
	one := func(name, members, field, value, reason string) mistake {
		return bad(name, `{"tpm":{`+members+`}}`, "limits.tpm."+field, value, reason)
	}
	checkMistakes(t, []mistake{
		bad("array", `[]`, "limits", "[]", "must be an object, not an array"),
		bad("null", `null`, "limits", "null", "must be an object, not null"),
		bad("null limit", `{"tpm":null}`, "limits.tpm", "null", "must be an object, not null"),
		bad("number as limit", `{"tpm":10}`, "limits.tpm", "10", "must be an object, not a number"),
		bad("twice", `{"tpm":{"capacity":1},"tpm":{"capacity":1}}`, "limits.tpm", "tpm",
			"is given twice"),
		bad("malformed name", `{"t m":{"capacity":1}}`, "limits.t m.name", "t m", "must not contain ' '"),
		one("no capacity", `"kind":"bucket"`, "capacity", "", "must be given"),
		one("zero capacity", `"capacity":0`, "capacity", "0", "must be above zero"),
		one("capacity twice", `"capacity":1,"capacity":1`, "capacity", "capacity", "is given twice"),
		one("unknown kind", `"capacity":1,"kind":"log"`, "kind", "log", "must be bucket, window,"),
		one("empty kind", `"capacity":1,"kind":""`, "kind", "", "must not be empty"),
		one("unknown field", `"capacity":1,"burst":2`, "burst", "burst", "is not a known field"),
		one("zero refill", `"capacity":1,"refill_amount":0`, "refill_amount", "0", "must be above zero"),
		one("zero period", `"capacity":1,"refill_period":0`, "refill_period", "0", "must be above zero"),
		one("period of a fourth digit", `"capacity":1,"refill_period":1.2345`, "refill_period", "1.2345",
			"at most three digits"),
		one("period with exponent", `"capacity":1,"refill_period":1e1`, "refill_period", "1e1",
			"without exponent"),
		one("period as text", `"capacity":1,"refill_period":"60"`, "refill_period", `"60"`,
			"must be a number"),
		one("negative period", `"capacity":1,"refill_period":-0.5`, "refill_period", "-500ms",
			"must be above zero"),
		one("endless period", `"capacity":1,"refill_period":99999999999999999999`, "refill_period",
			"99999999999999999999", "hundred years"),
		one("long period", `"capacity":1,"refill_period":9223372036855`, "refill_period",
			"9223372036855", "hundred years"),
		one("window of a fraction", `"capacity":1,"kind":"window","window":1.5`, "window", "1.5",
			"without fraction"),
		one("long window", `"capacity":1,"kind":"window","window":9223372037`, "window", "9223372037",
			"hundred years"),
		one("very negative window", `"capacity":1,"kind":"window","window":-9223372037`, "window",
			"-9223372037", "hundred years"),
		one("window too long", `"capacity":1,"kind":"window","window":4000000000`, "window",
			"1111111h6m40s", "hundred years"),
		one("no timeout", `"capacity":1,"kind":"concurrency"`, "timeout", "0s", "must be above zero"),
		one("foreign field", `"capacity":1,"window":1`, "window", "1s", "belongs to a window"),
		one("enforce as text", `"capacity":1,"enforce":"false"`, "enforce", `"false"`,
			"must be a boolean, not a string"),
		one("enforce as number", `"capacity":1,"enforce":0`, "enforce", "0",
			"must be a boolean, not a number"),
		one("unknown zone", `"capacity":1,"kind":"budget","every":"day","zone":"Mars/Base"`, "zone",
			"Mars/Base", "is not a known IANA time zone"),
		one("number as every", `"capacity":1,"kind":"budget","every":1`, "every", "1",
			"must be a string"),
		one("another kind", `"capacity":1,"kind":"window","window":1`, "kind", "window", "is a bucket"),
	})
}

func TestSettleMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	a := w.reserve(`{"charges":[{"entity":"acme","resource":"bucket","costs":{"tpm":100}},
		{"entity":"acme","resource":"slots","costs":{"parallel":2}}]}`)
	id := `"lease_id":"` + a.body["lease_id"].(string) + `"`
	other := weir.NewLeaseID(w.clock().Add(time.Second)).String()
	before := w.state()
	for _, m := range []struct {
		verb, body, field, value, reason string
		status                           int
	}{
		{"cancel", `{}`, "lease_id", "", "must be given", 400},
		{"extend", `{"lease_id":null}`, "lease_id", "null", "must be a string, not null", 400},
		{"cancel", `{` + id + `,"actuals":{}}`, "actuals", "actuals", "is not a known field", 400},
		{"cancel", `{` + id + `,` + id + `}`, "lease_id", "lease_id", "is given twice", 400},
		{"cancel", `{` + id + `,"":1}`, "", "", "is not a known field", 400},
		{"cancel", `{"lease_id":"` + other + `"}`, "lease_id", other, "is neither live nor remembered", 404},
		{"extend", `{"lease_id":"` + other + `"}`, "lease_id", other, "is neither live nor remembered", 404},
		{"complete", `{"lease_id":"` + other + `"}`, "lease_id", other, "is neither live nor remembered", 404},
		{"adjust", `{"lease_id":"` + other + `","seq":1,"totals":{}}`, "lease_id", other,
			"is neither live nor remembered", 404},
		{"adjust", `{` + id + `,"totals":{}}`, "seq", "", "must be given", 400},
		{"adjust", `{` + id + `,"seq":1}`, "totals", "", "must be given", 400},
		{"adjust", `{` + id + `,"seq":0,"totals":{}}`, "seq", "0", "must be above zero", 400},
		{"adjust", `{` + id + `,"seq":1.0,"totals":{}}`, "seq", "1.0", "without fraction", 400},
		{"adjust", `{` + id + `,"seq":"1","totals":{}}`, "seq", `"1"`, "must be a number", 400},
		{"adjust", `{` + id + `,"seq":1,"actuals":{}}`, "actuals", "actuals", "is not a known field", 400},
		{"complete", `{` + id + `,"seq":1}`, "seq", "seq", "is not a known field", 400},
		{"complete", `{` + id + `,"totals":{}}`, "totals", "totals", "is not a known field", 400},
		{"complete", `{` + id + `,"actuals":null}`, "actuals", "null",
			"must be an object or an array, not null", 400},
		{"complete", `{` + id + `,"actuals":7}`, "actuals", "7",
			"must be an object or an array, not a number", 400},
		{"complete", `{` + id + `,"actuals":[null,{}]}`, "actuals[0]", "null",
			"must be an object, not null", 400},
		{"complete", `{` + id + `,"actuals":{"tpm":1,"tpm":2}}`, "actuals.tpm", "tpm", "is given twice",
			400},
		{"complete", `{` + id + `,"actuals":{"tpm":-1}}`, "actuals.tpm", "-1", "must not be negative",
			400},
		{"complete", `{` + id + `,"actuals":{"tpm":1e3}}`, "actuals.tpm", "1e3", "without fraction", 400},
		{"complete", `{` + id + `,"actuals":[{},{},{}]}`, "actuals", "3", "one for each of the 2", 400},
		{"complete", `{` + id + `,"actuals":[{"rpm":1},{}]}`, "actuals[0].rpm", "1", "was not reserved",
			400},
		{"complete", `{` + id + `,"actuals":{"rpm":1}}`, "actuals.rpm", "1", "was not reserved", 400},
		{"adjust", `{` + id + `,"seq":1,"totals":{"parallel":3}}`, "totals.parallel", "3", "more slots",
			400},
		{"complete", `{` + id + `,"actuals":[{"key":"k1","actual_amount":1}]}`, "lease_id",
			a.body["lease_id"].(string),
			"as a lease with flat keys", 404},
	} {
		w.post(m.verb, m.body).want(t, m.status, "value", orNil(m.value), "field", orNil(m.field))
		reason, _ := w.post(m.verb, m.body).body["reason"].(string)
		if !strings.Contains(reason, m.reason) {
			t.Errorf("%s %s: %q, want %q", m.verb, m.body, reason, m.reason)
		}
	}
	w.unchanged(before)
	w.post("complete", `{`+id+`,"actuals":[{"tpm":1},{"parallel":1}]}`).want(t, 200)
}

// orNil returns the value of a string on the wire: nil if it is empty.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// TestSeveralMistakes checks that all mistakes are reported at once, and that the problem's own
// members have the first.
func TestSeveralMistakes(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	a := w.reserve(`{"entity":1,"resource":"bucket","costs":{"tpm":"5","rpm":1.5},"user":"x"}`)
	a.want(t, 400, "code", "invalid", "field", "entity", "value", "1",
		"reason", "must be a string, not a number",
		"detail", `invalid: entity "1": must be a string, not a number (and 3 more)`)
	var fields []string
	for _, e := range a.body["errors"].([]any) {
		m := e.(map[string]any)
		fields = append(fields, fmt.Sprint(m["code"], " ", m["field"], " ", m["value"]))
	}
	want := `invalid entity 1; invalid costs.tpm "5"; invalid costs.rpm 1.5; invalid user user`
	if got := strings.Join(fields, "; "); got != want {
		t.Errorf("errors are %s, want %s", got, want)
	}
	w.reserve(`{"entity":1}`).want(t, 400, "field", "entity", "errors", nil)
	many := w.reserve(`{"costs":{` + strings.Repeat(`"a":"1","b":"1",`, 1) +
		strings.TrimSuffix(manyCosts(100), ",") + `}}`)
	if got := len(many.body["errors"].([]any)); got != 16 {
		t.Errorf("%d errors told, want 16 of a hundred", got)
	}
}

func manyCosts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"c%d":"1",`, i)
	}
	return b.String()
}

func TestQueryMistakes(t *testing.T) {
	t.Parallel()
	bad := func(target, field, value, reason string) mistake {
		return mistake{
			name: target, status: 400, field: field, value: value, reason: reason,
			sent: sent{method: "GET", target: target},
		}
	}
	reserve := mistake{name: "query of a POST", status: 400, field: "entity", value: "acme",
		reason: "is not a known parameter"}.
		post("reserve?entity=acme", `{"entity":"acme","resource":"bucket","costs":{"tpm":1}}`)
	put := mistake{
		name: "query of a PUT", status: 400, field: "resource", value: "bucket",
		reason: "is not a known parameter",
		sent:   sent{method: "PUT", target: "/v1/admin/entities/acme?resource=bucket", body: `{}`},
	}
	checkMistakes(t, []mistake{
		reserve, put,
		bad("/v1/status", "entity", "", "must be given"),
		bad("/v1/status?resource=bucket", "entity", "", "must be given"),
		bad("/v1/status?entity=", "entity", "", "must not be empty"),
		bad("/v1/status?entity=acme&resource=", "resource", "", "must not be empty"),
		bad("/v1/status?entity=acme&entity=acme", "entity", "acme", "is given twice"),
		bad("/v1/status?entity=acme&Resource=bucket", "Resource", "bucket", "is not a known parameter"),
		bad("/v1/status?entity=acme&x=1", "x", "1", "is not a known parameter"),
		bad("/v1/status?entity=acme;x=1", "query", "entity=acme;x=1", "cannot be read"),
		bad("/v1/status?entity=%zz", "query", "entity=%zz", "cannot be read"),
		bad("/v1/status?entity=a%20b", "entity", "a b", "must not contain ' '"),
		bad("/v1/status?entity=%FF", "entity", "\uFFFD", "must be valid UTF-8"),
		bad("/v1/explain?entity=acme", "resource", "", "must be given"),
		bad("/v1/explain?resource=bucket", "entity", "", "must be given"),
		bad("/v1/entities/a%20b/children", "entity", "a b", "must not contain ' '"),
		bad("/v1/entities/acme/children?size=0", "size", "0", "must be between 1 and 1000"),
		bad("/v1/entities/acme/children?size=1001", "size", "1001", "must be between 1 and 1000"),
		bad("/v1/entities/acme/children?size=-1", "size", "-1", "must be between 1 and 1000"),
		bad("/v1/entities/acme/children?size=1e2", "size", "1e2", "must be between 1 and 1000"),
		bad("/v1/entities/acme/children?size=99999999999", "size", "99999999999",
			"must be between 1 and 1000"),
		bad("/v1/entities/acme/children?after=", "after", "", "must not be empty"),
		bad("/v1/resources/b%20c/capacity", "resource", "b c", "must not contain ' '"),
		bad("/v1/resources/bucket/capacity?size=1", "size", "1", "is not a known parameter"),
		bad("/v1/admin/system?x=", "x", "", "is not a known parameter"),
		bad("/v1/admin/entities?parent=..", "parent", "..", "is reserved"),
		bad("/v1/admin/entities?resource=%23", "resource", "#", "must not contain '#', which separates names"),
		bad("/v1/admin/entities/acme/limits?resource=", "resource", "", "must not be empty"),
		bad("/v1/admin/resources/_default_/limits", "resource", "_default_", "is reserved"),
	})
}
