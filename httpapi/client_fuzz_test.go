package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// FuzzReplies passes arbitrary replies to the client. If the client takes a reply for an admission
// or a denial, the test parses it without the client's code and checks that it is one.
func FuzzReplies(f *testing.F) {
	const id = "01JY1X0000TESTTESTTESTTEST"
	lease := `{"allowed":true,"lease_id":"` + id + `","reserved_at_unix_ms":1750248000000,"limits":[]}`
	denial := `{"status":429,"allowed":false,"lease_id":"` + id + `","retry_after_ms":9,"limits":[{}]}`
	f.Add(200, "application/json", lease)
	f.Add(429, "application/problem+json", denial)
	f.Add(409, "application/problem+json", `{"status":409,"code":"ended","errors":[{},{}]}`)
	f.Add(503, "application/problem+json", `{"status":503,"code":"unavailable"}`)
	f.Add(502, "text/html", "<html>")
	f.Add(200, "application/json", `{"entity":"a","resource":"m","limits":{"n":{"refill_period":1e9}}}`)
	f.Add(200, "application/json", `{"usage":[{"entity":"a","resource":"m","window":"monthly",`+
		`"start":"2026-10-01T00:00:00Z","end":"2026-11-01T00:00:00Z","events":1,"units":{"tpm":-5}}],`+
		`"gaps":[{"to":"2026-10-01T00:00:00.5Z","reason":"r"}],"next":"n"}`)
	f.Add(200, "application/json", `{"events":[{"event_id":"`+id+`",`+
		`"timestamp":"2026-10-01T00:00:00Z","action":"limits_set","entity":"acme","details":{"n":[1,2.5,{"m":null}]}}]}`)
	want, err := weir.ParseLeaseID(id)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, media, body string) {
		k := &apiCall{denies: true, lease: want, accept: func(body []byte) error {
			_, err := apijson.ReadLease(body, want)
			return err
		}}
		r := &reply{status, http.Header{"Content-Type": {media}}, []byte(body)}
		why, got := k.judge(r)
		var plain struct {
			Allowed *bool  `json:"allowed"`
			LeaseID string `json:"lease_id"`
		}
		failed := json.Unmarshal([]byte(body), &plain)
		says := func(allowed bool, of int) bool {
			named := strings.EqualFold(plain.LeaseID, id) || !allowed && plain.LeaseID == "" // a denial need not
			return failed == nil && plain.Allowed != nil && *plain.Allowed == allowed && status == of && named
		}
		denied, isDenied := errors.AsType[*weir.DeniedError](got)
		switch fault, isFault := errors.AsType[*weir.Error](got); {
		case why != nil:
			if got != nil || why.cause == nil {
				t.Errorf("no answer with %v, because of %v", got, why.cause)
			}
		case got == nil && !says(true, 200):
			t.Errorf("taken for an admission: %d %q", status, body)
		case isDenied && (!says(false, 429) || denied.LeaseID != want):
			t.Errorf("taken for a denial: %d %q", status, body)
		case isFault && (status < 400 || status >= 500 || fault.Code == "" || fault.Code == weir.Unavailable):
			t.Errorf("taken for a mistake: %v from %d %q", fault, status, body)
		}
		_, _ = apijson.ReadReceipt(r.body, want)
		_, _ = apijson.ReadStatuses(r.body)
		_, _ = apijson.ReadExplanation(r.body)
		_, _ = apijson.ReadEntities(r.body)
		_, _ = apijson.ReadNamespaces(r.body)
		readRecords(t, r.body)
	})
}

// readRecords reads a body as a page of usage and of the audit. It checks that what is read can be
// written and read again.
func readRecords(t *testing.T, body []byte) {
	t.Helper()
	again := func(page any) []byte {
		text, err := apijson.Write(page)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", body, err)
		}
		return text
	}
	if page, err := apijson.ReadUsageList(body, &weir.UsageQuery{}); err == nil {
		text := again(apijson.UsageListOf(page))
		same, err := apijson.ReadUsageList(text, &weir.UsageQuery{})
		if err != nil || !reflect.DeepEqual(same, page) {
			t.Errorf("%q is %+v, then %+v (%v)", body, page, same, err)
		}
	}
	if page, err := apijson.ReadAuditList(body, &weir.AuditQuery{}); err == nil {
		text := again(apijson.AuditListOf(page))
		same, err := apijson.ReadAuditList(text, &weir.AuditQuery{})
		if err != nil || len(same.Events) != len(page.Events) {
			t.Errorf("%q is %+v, then %+v (%v)", body, page, same, err)
		}
	}
}
