package cli

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/weir-limiter/weir"
)

// reservingCosts is a reserve whose costs are the given text.
func reservingCosts(costs string) wireSent {
	return wirePost("/v1/reserve", `{"entity":"acme","resource":"llm","costs":`+costs+`}`)
}

func reservingRPM(amount string) wireSent { return reservingCosts(`{"rpm":` + amount + `}`) }

func (w wireSent) asAdmin() wireSent { return w.with("Authorization: Bearer " + wireAdmin) }

// badDocument returns the row of a body that is refused with 400 and the code invalid.
func badDocument(sent, body, field, value string) badRow {
	return badRow{sent: sent, request: wirePost("/v1/reserve", body), status: http.StatusBadRequest,
		code: weir.Invalid, field: field, value: value}
}

// badDocuments are bodies that are not JSON, or JSON that weir does not accept.
func badDocuments() []badRow {
	good := `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`
	long := `{"entity":"` + strings.Repeat("a", 1<<20) + `","resource":"llm","costs":{"rpm":1}}`
	rows := []badRow{
		badDocument("no body", "", "body", ""),
		badDocument("nothing but space", "  \n", "body", "~.*"),
		badDocument("null", "null", "body", "null"),
		badDocument("a number", "42", "body", "42"),
		badDocument("an array", "["+good+"]", "body", "~.*"),
		badDocument("a string", `"reserve"`, "body", `"reserve"`),
		badDocument("a truncated body", good[:len(good)-7], "body", "~.*"),
		badDocument("a body and more behind it", good+good, "body", "~.*"),
		badDocument("a body and a bracket behind it", good+"]", "body", "~.*"),
		badDocument("a trailing comma", `{"entity":"acme","resource":"llm","costs":{"rpm":1},}`, "body",
			"~.*"),
		badDocument("a comment", `{/* */"entity":"acme","resource":"llm","costs":{"rpm":1}}`, "body",
			"~.*"),
		badDocument("single quotes", `{'entity':'acme'}`, "body", "~.*"),
		badDocument("100,000 brackets", strings.Repeat("[", 100_000), "body", "~.*"),
		badDocument("costs nested 5,000 deep", `{"entity":"acme","resource":"llm","costs":{"rpm":`+
			strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)+"}}", "costs.rpm", "~.*"),
		badDocument("a byte order mark", "\ufeff"+good, "body", "~.*"),
		badDocument("UTF-16", "{\x00\"\x00e\x00", "body", "~.*"),
		badDocument("invalid UTF-8 in a value",
			`{"entity":"ac`+"\xff"+`me","resource":"llm","costs":{"rpm":1}}`,
			"~body|entity", "~.*"),
		badDocument("invalid UTF-8 in a name",
			`{"entity":"acme","resource":"llm","costs":{"r`+"\xc3\x28"+`":1}}`,
			"~body|costs.*", "~.*"),
		badDocument("half a surrogate pair", `{"entity":"ac\ud800me","resource":"llm","costs":{"rpm":1}}`,
			"entity", "~.*"),
		badDocument("a control character in a string",
			"{\"entity\":\"ac\tme\",\"resource\":\"llm\",\"costs\":{\"rpm\":1}}",
			"body", "~.*"),
		badDocument("NUL in an entity", `{"entity":"ac\u0000me","resource":"llm","costs":{"rpm":1}}`,
			"entity", "ac\x00me"),
		badDocument("an unknown field", `{"entity":"acme","resource":"llm","costs":{"rpm":1},"wait":5}`,
			"wait", "~.*"),
		badDocument("a field in another case", `{"Entity":"acme","resource":"llm","costs":{"rpm":1}}`,
			"Entity", "~.*"),
		badDocument("an unknown field in a charge",
			`{"charges":[{"entity":"acme","resource":"llm","costs":{"rpm":1},"cost":1}]}`, "charges[0].cost",
			"~.*"),
		badDocument("an unknown field in a requirement",
			`{"requirements":[{"key":"flat","amount":1,"unit":"x"}]}`, "requirements[0].unit", "~.*"),
		badDocument("a repeated field",
			`{"entity":"acme","entity":"beta","resource":"llm","costs":{"rpm":1}}`,
			"entity", "~.*"),
		badDocument("a repeated field, spelled differently",
			`{"entity":"acme","\u0065ntity":"beta","resource":"llm","costs":{"rpm":1}}`, "entity", "~.*"),
		badDocument("a repeated cost", `{"entity":"acme","resource":"llm","costs":{"rpm":1,"rpm":2}}`,
			"costs.rpm", "~.*"),
		badDocument("a repeated cost in a second charge",
			`{"charges":[{"entity":"acme","resource":"llm","costs":{"rpm":1}},`+
				`{"entity":"beta","resource":"llm","costs":{"rpm":1,"rpm":1}}]}`, "charges[1].costs.rpm",
			"~.*"),
	}
	return append(rows,
		badRow{sent: "a body over the bound", request: wirePost("/v1/reserve", long),
			status: http.StatusRequestEntityTooLarge, code: weir.Invalid, field: "body", value: "~.*"},
		badRow{sent: "a body over the bound, in chunks",
			request: wirePost("/v1/reserve", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long)).
				with("Content-Length:", "Transfer-Encoding: chunked"),
			status: http.StatusRequestEntityTooLarge, code: weir.Invalid, field: "body", value: "~.*"},
		badRow{sent: "a Content-Length of 4 EB, and nothing behind it",
			request: wirePost("/v1/reserve", "").with("Content-Length: 4611686018427387904"),
			status:  http.StatusRequestEntityTooLarge, code: weir.Invalid, field: "body", value: "~.*"},
	)
}

// badNumbers are amounts that are not valid numbers, or too large.
func badNumbers() []badRow {
	rpm := func(sent, amount string) badRow {
		return badRow{sent: sent, request: reservingRPM(amount), status: http.StatusBadRequest,
			code: weir.Invalid, field: "costs.rpm", value: amount}
	}
	never := func(sent, costs, field, value string) badRow {
		return badRow{sent: sent, request: reservingCosts(costs), status: http.StatusUnprocessableEntity,
			code: weir.NeverSatisfiable, field: field, value: value}
	}
	twice := fmt.Sprintf(`{"charges":[{"entity":"acme","resource":"llm","costs":{"huge":%d}},`+
		`{"entity":"acme","resource":"llm","costs":{"huge":%d}}]}`, math.MaxInt64, math.MaxInt64)
	return []badRow{
		rpm("a number as a string", `"3"`),
		rpm("a fraction", "1.5"),
		rpm("a whole number with a fraction", "1.0"),
		rpm("an exponent", "1e3"),
		rpm("a negative cost", "-1"),
		rpm("null as a cost", "null"),
		rpm("a boolean as a cost", "true"),
		rpm("an array as a cost", "[1]"),
		rpm("an object as a cost", "{}"),
		rpm("2^63", "9223372036854775808"),
		rpm("-2^63-1", "-9223372036854775809"),
		rpm("-2^63", "-9223372036854775808"),
		rpm("2^64+1, which is 1 modulo 2^64", "18446744073709551617"),
		rpm("a number of 60 digits", strings.Repeat("9", 60)),
		{sent: "a leading zero", request: reservingRPM("01"), status: http.StatusBadRequest,
			code: weir.Invalid, field: "body", value: "~.*"},
		{sent: "a plus sign", request: reservingRPM("+1"), status: http.StatusBadRequest,
			code: weir.Invalid, field: "body", value: "~.*"},
		{sent: "NaN", request: reservingRPM("NaN"), status: http.StatusBadRequest,
			code: weir.Invalid, field: "body", value: "~.*"},
		{sent: "a hexadecimal number", request: reservingRPM("0x10"), status: http.StatusBadRequest,
			code: weir.Invalid, field: "body", value: "~.*"},
		never("2^63-1 of a bucket of 10", `{"rpm":9223372036854775807}`, "costs.rpm",
			"9223372036854775807"),
		never("2^63-1 of a window of 10", `{"recent":9223372036854775807}`, "costs.recent",
			"9223372036854775807"),
		never("one more than a limit can ever hold", `{"rpm":1,"daily":11}`, "costs.daily", "11"),
		{sent: "2^63-1, of which 3 are used", request: reservingCosts(`{"huge":9223372036854775807}`),
			status: http.StatusTooManyRequests},
		{sent: "twice 2^63-1 together", request: wirePost("/v1/reserve", twice),
			status: http.StatusUnprocessableEntity, code: weir.NeverSatisfiable,
			field: "~(charges.*\\.)?costs.huge", value: "~.*"},
	}
}

// badShapes are requests that lack something, or contradict themselves.
func badShapes() []badRow {
	charge := `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`
	brought := func(sent, limits, field, value string) badRow {
		return badRow{sent: "brought limits with " + sent, request: wirePost("/v1/reserve",
			strings.TrimSuffix(charge, "}")+`,"limits":{`+limits+`}}`).asAdmin(),
			status: http.StatusBadRequest, code: weir.Invalid, field: "limits." + field, value: value}
	}
	many := `{"charges":[` + strings.Repeat(charge+",", 16) + charge + `]}`
	wide := make([]string, 33)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"l%d":1`, i)
	}
	return []badRow{
		badDocument("nothing asked", "{}", "~.+", "~.*"),
		badDocument("a lease ID alone", `{"lease_id":"`+weir.LeaseID{1}.String()+`"}`, "~.+", "~.*"),
		badDocument("no resource", `{"entity":"acme","costs":{"rpm":1}}`, "resource", ""),
		badDocument("no entity", `{"resource":"llm","costs":{"rpm":1}}`, "entity", ""),
		badDocument("null as entity", `{"entity":null,"resource":"llm","costs":{"rpm":1}}`, "entity",
			"null"),
		badDocument("null as costs", `{"entity":"acme","resource":"llm","costs":null}`, "costs", "null"),
		badDocument("null as charges", `{"charges":null}`, "charges", "null"),
		badDocument("null as lease ID",
			`{"lease_id":null,"entity":"acme","resource":"llm","costs":{"rpm":1}}`,
			"lease_id", "null"),
		badDocument("a number as entity", `{"entity":7,"resource":"llm","costs":{"rpm":1}}`, "entity",
			"7"),
		badDocument("an array of costs", `{"entity":"acme","resource":"llm","costs":[{"rpm":1}]}`,
			"costs", "~.*"),
		badDocument("no charges in the list", `{"charges":[]}`, "charges", "~.*"),
		badDocument("charges and an entity", `{"entity":"acme","charges":[`+charge+`]}`, "~.+", "~.*"),
		badDocument("charges and requirements",
			`{"charges":[`+charge+`],"requirements":[{"key":"flat","amount":1}]}`, "~.+", "~.*"),
		badDocument("null as a charge", `{"charges":[null]}`, "charges[0]", "null"),
		badDocument("a charge without an entity",
			`{"charges":[`+charge+`,{"resource":"llm","costs":{}}]}`,
			"charges[1].entity", ""),
		badDocument("17 charges", many, "charges", "17"),
		badDocument("33 costs",
			`{"entity":"acme","resource":"llm","costs":{`+strings.Join(wide, ",")+`}}`, "costs", "33"),
		badDocument("17 requirements", `{"requirements":[`+
			strings.Repeat(`{"key":"flat","amount":1},`, 16)+`{"key":"flat","amount":1}]}`,
			"~requirements.*", "~.*"),
		badDocument("no requirements in the list", `{"requirements":[]}`, "requirements", "~.*"),
		badDocument("a requirement without an amount", `{"requirements":[{"key":"flat"}]}`,
			"requirements[0].amount", ""),
		badDocument("a requirement without a key", `{"requirements":[{"amount":1}]}`,
			"requirements[0].key", ""),
		badDocument("a negative requirement", `{"requirements":[{"key":"flat","amount":-1}]}`,
			"~.*amount|.*units", "-1"),
		{sent: "a cost of an unknown limit", request: reservingCosts(`{"rpm":1,"nope":1}`),
			status: http.StatusNotFound, code: weir.UnknownLimit, field: "costs.nope", value: "~.*"},
		brought("an unknown kind", `"rpm":{"kind":"drum","capacity":1}`, "rpm.kind", "drum"),
		brought("an unknown field", `"rpm":{"capacity":1,"burts":1}`, "rpm.burts", "~.*"),
		brought("a repeated field", `"rpm":{"capacity":1,"capacity":2}`, "rpm.capacity", "~.*"),
		brought("the same name twice", `"rpm":{"capacity":1},"rpm":{"capacity":2}`, "rpm", "~.*"),
		brought("a capacity of 0", `"rpm":{"capacity":0}`, "rpm.capacity", "0"),
	}
}

// badNames are identifiers that no store accepts.
func badNames() []badRow {
	named := func(sent, entity, resource, field, value string) badRow {
		return badDocument(sent, fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"rpm":1}}`, entity,
			resource),
			field, value)
	}
	return []badRow{
		named("an empty entity", "", "llm", "entity", ""),
		named("an empty resource", "acme", "", "resource", ""),
		named("an entity with a #", "ac#me", "llm", "entity", "ac#me"),
		named("an entity with a newline", "acme\n", "llm", "entity", "acme\n"),
		named("an entity that is reserved", "..", "llm", "entity", ".."),
		named("an entity that turns text around", "\u202eacme", "llm", "entity", "\u202eacme"),
		named("an entity of 257 bytes", strings.Repeat("a", 257), "llm", "entity",
			"~a{64}… .257 bytes."),
		named("a resource of 129 bytes", "acme", strings.Repeat("a", 129), "resource",
			"~a{64}… .129 bytes."),
		named("a resource that is reserved", "acme", "$RESOURCE:4o", "resource", "$RESOURCE:4o"),
		named("a resource with a space", "acme", "gpt 4o", "resource", "gpt 4o"),
		badDocument("a limit's name with a #", `{"entity":"acme","resource":"llm","costs":{"r#m":1}}`,
			"costs.r#m", "r#m"),
		badDocument("a limit's name that is empty", `{"entity":"acme","resource":"llm","costs":{"":1}}`,
			"costs.", ""),
		badDocument("a limit's name that is reserved",
			`{"entity":"acme","resource":"llm","costs":{"wcu":1}}`,
			"costs.wcu", "wcu"),
		badDocument("markup in a limit's name",
			`{"entity":"acme","resource":"llm","costs":{"<script>alert(1)</script>":1}}`,
			"costs.<script>alert(1)</script>", "<script>alert(1)</script>"),
	}
}
