package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-limiter/weir"
)

const (
	rawGood = `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`
	rawHead = "POST /v1/reserve HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer " + wireCaller + "\r\n"
	// rawStatus is a good request that ends its connection.
	rawStatus = "GET /v1/status?entity=acme HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n" +
		"Authorization: Bearer " + wireCaller + "\r\n\r\n"
)

// rawRow returns a row that net/http answers without the handler.
func rawRow(sent, raw string, status int) badRow {
	return badRow{sent: sent, request: wireSent{raw: raw}, status: status, plain: true}
}

// badTransfers are bodies whose length differs from the one in their headers.
func badTransfers() []badRow {
	row := func(sent, head, body string) badRow {
		return refusedAs(sent, wireSent{half: true, raw: rawHead + head + "\r\n\r\n" + body},
			http.StatusBadRequest, weir.Invalid)
	}
	const chunked = "Transfer-Encoding: chunked"
	end := "\r\n" + rawGood + "\r\n0\r\n\r\n"
	return []badRow{
		row("a body shorter than its Content-Length", fmt.Sprint("Content-Length: ", len(rawGood)+1),
			rawGood),
		row("no length at all", "Connection: close", rawGood),
		row("chunks whose length is not a number", chunked, "zz"+end),
		row("a chunk of negative length", chunked, "-1"+end),
		row("a chunk length of 17 digits", chunked, "10000000000000001"+end),
		row("a chunk shorter than its length", chunked, fmt.Sprintf("%x", len(rawGood)+9)+end),
		row("a chunk longer than its length", chunked, fmt.Sprintf("%x", len(rawGood)-9)+end),
		row("chunks without an end", chunked, fmt.Sprintf("%x\r\n%s\r\n", len(rawGood), rawGood)),
	}
}

// badHTTP are texts that are not HTTP, or not of the version that they name.
func badHTTP() []badRow {
	length := fmt.Sprintf("Content-Length: %d\r\n", len(rawGood))
	old := refusedAs("HTTP/1.0, with a bad body", wireSent{raw: "POST /v1/reserve HTTP/1.0\r\n" +
		"Authorization: Bearer " + wireCaller +
		"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"},
		http.StatusBadRequest, weir.Invalid)
	hello := rawRow("a TLS hello",
		"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"+strings.Repeat("\x7f", 160)+"\r\n\r\n",
		http.StatusBadRequest)
	garbage := badRow{sent: "garbage behind a good request", request: wireSent{
		raw: strings.Replace(rawStatus, "Connection: close\r\n", "", 1) + "\x00\x01\x02 garbage\r\n\r\n"},
		status: http.StatusOK, more: []int{http.StatusBadRequest}}
	return []badRow{
		old, hello, garbage,
		rawRow("garbage", "\x00\x01\x02\x03\r\n\r\n", http.StatusBadRequest),
		rawRow("a line without a version", "GET /v1/status\r\n\r\n", http.StatusBadRequest),
		rawRow("a version that does not exist", "GET /v1/status HTTP/9.9\r\nHost: HOST\r\n\r\n",
			http.StatusHTTPVersionNotSupported),
		refusedAs("an HTTP/2 preface on a plain port", wireSent{raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
			http.StatusNotFound, weir.Invalid),
		rawRow("no Host", "GET /v1/status?entity=acme HTTP/1.1\r\n\r\n", http.StatusBadRequest),
		rawRow("two Hosts", "GET /v1/status?entity=acme HTTP/1.1\r\nHost: HOST\r\nHost: other\r\n\r\n",
			http.StatusBadRequest),
		rawRow("a header line without a colon",
			"GET /v1/status HTTP/1.1\r\nHost: HOST\r\nnonsense\r\n\r\n",
			http.StatusBadRequest),
		rawRow("a space in a header's name", "GET /v1/status HTTP/1.1\r\nHost: HOST\r\nX Y: 1\r\n\r\n",
			http.StatusBadRequest),
		rawRow("a space before a header's colon", rawHead+"Content-Length : 5\r\n\r\n12345",
			http.StatusBadRequest),
		rawRow("NUL in a header", "GET /v1/status HTTP/1.1\r\nHost: HOST\r\nX-Y: a\x00b\r\n\r\n",
			http.StatusBadRequest),
		rawRow("a header of 4 MiB", "GET /v1/status?entity=acme HTTP/1.1\r\nHost: HOST\r\nX-Y: "+
			strings.Repeat("x", 4<<20)+"\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge),
		rawRow("200,000 headers", "GET /v1/status?entity=acme HTTP/1.1\r\nHost: HOST\r\n"+
			strings.Repeat("X-Y: 1234567890\r\n", 200_000)+"\r\n", http.StatusRequestHeaderFieldsTooLarge),
		rawRow("a path of 4 MiB", "GET /v1/"+strings.Repeat("x", 4<<20)+" HTTP/1.1\r\nHost: HOST\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge),
		rawRow("a negative Content-Length", rawHead+"Content-Length: -5\r\n\r\n"+rawGood,
			http.StatusBadRequest),
		rawRow("a Content-Length with a plus", rawHead+"Content-Length: +5\r\n\r\n"+rawGood,
			http.StatusBadRequest),
		rawRow("a Content-Length of 2^64", rawHead+"Content-Length: 18446744073709551616\r\n\r\n"+rawGood,
			http.StatusBadRequest),
		rawRow("an expectation that nobody can meet",
			rawHead+length+"Expect: miracles\r\nConnection: close\r\n\r\n"+rawGood,
			http.StatusExpectationFailed),
		refusedAs("CONNECT", wireSent{
			raw: "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nConnection: close\r\n\r\n"},
			http.StatusNotFound, weir.Invalid),
	}
}

// badSmuggling are requests that a proxy and the server behind it could read differently. The
// request inside has no bearer token, because a proxy would add one.
func badSmuggling() []badRow {
	inside := "POST /v1/reserve HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n" +
		"Connection: close\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(rawGood), rawGood)
	both := refusedAs("both lengths: the chunks end before the request inside", wireSent{
		raw: rawHead + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
			len(inside)+5, inside)}, http.StatusBadRequest, weir.Invalid)
	both.more = []int{http.StatusUnauthorized}
	folded := refusedAs("an encoding on a folded line", wireSent{
		raw: rawHead + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + inside}, http.StatusBadRequest,
		weir.Invalid)
	folded.more = []int{http.StatusUnauthorized}
	one := refusedAs("chunks in HTTP/1.0", wireSent{raw: strings.Replace(rawHead, "HTTP/1.1",
		"HTTP/1.0", 1) +
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + inside},
		http.StatusBadRequest, weir.Invalid)
	return []badRow{
		both, folded, one,
		rawRow("two lengths that differ",
			rawHead+"Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456"+inside,
			http.StatusBadRequest),
		rawRow("a list of lengths", rawHead+"Content-Length: 5, 5\r\n\r\n12345"+inside,
			http.StatusBadRequest),
		rawRow("an encoding that is almost chunked",
			rawHead+"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"+inside,
			http.StatusNotImplemented),
		rawRow("chunked twice",
			rawHead+"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+inside,
			http.StatusNotImplemented),
		rawRow("chunked and identity",
			rawHead+"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"+inside,
			http.StatusNotImplemented),
		rawRow("a vertical tab in an encoding",
			rawHead+"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"+inside,
			http.StatusBadRequest),
	}
}

// badSlowness are requests that never end. The servers that get them wait for a second.
func badSlowness() []badRow {
	part := refusedAs("a body that stops halfway", wireSent{slow: true,
		raw: rawHead + "Content-Length: 500\r\n\r\n" + rawGood}, http.StatusRequestTimeout, weir.Invalid)
	chunk := refusedAs("chunks that stop halfway", wireSent{slow: true,
		raw: rawHead + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(rawGood),
			rawGood)},
		http.StatusRequestTimeout, weir.Invalid)
	stranger := refusedAs("a body that stops halfway, and no bearer token", wireSent{slow: true,
		raw: "POST /v1/reserve HTTP/1.1\r\nHost: HOST\r\nContent-Length: 500\r\n\r\n{"},
		http.StatusUnauthorized, weir.PermissionDenied)
	waiting := refusedAs("a body that waits to be asked for, and no bearer token", wireSent{slow: true,
		raw: "POST /v1/reserve HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n" +
			"Expect: 100-continue\r\n\r\n"},
		http.StatusUnauthorized, weir.PermissionDenied)
	return []badRow{
		part, chunk, stranger, waiting,
		{sent: "headers without an end", request: wireSent{slow: true, raw: rawHead + "X-Y: 1\r\n"}},
		{sent: "nothing at all", request: wireSent{slow: true}},
		// net/http treats the part that has arrived as the request line.
		rawRow("a request line without an end", "POST /v1/res", http.StatusBadRequest),
	}
}
