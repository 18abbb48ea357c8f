package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
)

// recordsClient returns a client of a server with the records of a store.
func recordsClient(t *testing.T, records httpapi.Records) *httpapi.Client {
	t.Helper()
	server := httptest.NewServer(httphandler.New(nil, &httphandler.Options{Records: records}))
	t.Cleanup(server.Close)
	return clientOf(t, server.URL)
}

func clientOf(t *testing.T, address string) *httpapi.Client {
	t.Helper()
	c, err := httpapi.NewClient(address, &httpapi.ClientOptions{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// everyCharacter returns names that have every character that a name can have.
func everyCharacter() (entity, resource, limit string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters + "0123456789_.-:@/", "gpt-4o_5.6/7", "T_p.m-8"
}

// oddNames returns a store with usage and an event under such names, and a gap without a beginning.
func oddNames() *recordstore.Store {
	entity, resource, limit := everyCharacter()
	at := time.Date(2026, time.October, 1, 12, 0, 0, 0, time.UTC)
	s := &recordstore.Store{
		Usage: []weir.Usage{
			recordstore.Hour(entity, resource, at, map[string]int64{limit: 1<<63 - 1, "neg": -5}),
			recordstore.Hour(entity, resource, at.Add(time.Hour), nil),
		},
		Gaps: []weir.UsageGap{
			{To: at.Add(1500 * time.Millisecond), Reason: "older hours were dropped"},
			{From: at.Add(time.Hour), To: at.Add(2 * time.Hour), Reason: "it says <b>\"why\"</b> \u202e"},
		},
		Events: []weir.AuditEvent{{
			ID: "01K6EVENT00000000000000009", At: at, Action: "limits_set", Entity: entity,
			Principal: "arn:aws:iam::123456789012:user/é", Resource: resource,
			Details: map[string]any{
				"text": "<b>", "whole": int64(-1) << 63, "none": nil, "is": true,
				"list": []any{int64(1), "two", map[string]any{"deep": int64(3)}},
			},
		}},
	}
	s.Usage[0].Overdrawn = map[string]int64{limit: 2}
	s.Usage[1].Units = map[string]int64{}
	return s
}

// TestRecordsAreEqual compares the answers over the wire with those of the limiter in the process,
// page by page, with their errors.
func TestRecordsAreEqual(t *testing.T) {
	t.Parallel()
	entity, resource, limit := everyCharacter()
	day := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	for name, store := range map[string]*recordstore.Store{
		"month": recordstore.Month(), "odd names": oddNames(),
	} {
		lim := store.Open(t, nil)
		c := recordsClient(t, lim)
		for _, q := range []*weir.UsageQuery{
			nil, {}, {Entity: "acme"}, {Entity: "acme", Window: weir.Daily, Size: 50},
			{Resource: "gpt-4o", Window: weir.Monthly},
			{Entity: "acme", Limit: "tpm", From: day, To: day.AddDate(0, 0, 7), Size: 30},
			{Entity: entity, Size: 1}, {Resource: resource, Limit: limit},
			{Entity: entity, Window: weir.Monthly},
			{Entity: "a\xffb"}, {Entity: "a b"}, {Entity: "acme", Window: "weekly"},
			{Entity: "acme", Size: 1001}, {Entity: "acme", Size: -1},
			{Entity: "acme", From: day, To: day}, {Entity: "acme", After: "x"},
			{Entity: "acme", From: day.Add(time.Nanosecond), To: day.Add(time.Hour)},
			{Entity: "acme", From: day.AddDate(-100, 0, 0), To: day.AddDate(100, 0, 0)},
		} {
			compareUsage(t, fmt.Sprintf("%s: %+v", name, q), c, lim, q)
		}
		for _, q := range []*weir.AuditQuery{
			nil, {}, {At: weir.Subject{Entity: "acme"}, Size: 1},
			{At: weir.Subject{Entity: "acme", Resource: "gpt-4o"}},
			{At: weir.Subject{Entity: entity, Resource: resource}},
			{At: weir.Subject{Resource: "gpt-4o"}},
			{At: weir.Subject{Entity: "acme"}, From: day, To: day.AddDate(0, 0, 2)},
			{At: weir.Subject{Entity: "a b"}}, {After: "x"}, {From: day, To: day}, {Size: 1001},
		} {
			compareAudit(t, fmt.Sprintf("%s: %+v", name, q), c, lim, q)
		}
	}
}

func compareUsage(t *testing.T, what string, c, lim httpapi.Records, of *weir.UsageQuery) {
	t.Helper()
	q := of
	for pages := 1; ; pages++ {
		got, gotErr := c.Usage(t.Context(), q)
		want, wantErr := lim.Usage(t.Context(), q)
		if !sameFault(gotErr, wantErr) {
			t.Errorf("%s: got error %v, in process it is %v", what, gotErr, wantErr)
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s, page %d: got\n%+v, in process it is\n%+v", what, pages, got, want)
			return
		}
		if want == nil || want.Next == "" {
			return
		}
		next := *q
		next.After = want.Next
		q = &next
	}
}

func compareAudit(t *testing.T, what string, c, lim httpapi.Records, of *weir.AuditQuery) {
	t.Helper()
	q := of
	for {
		got, gotErr := c.Audit(t.Context(), q)
		want, wantErr := lim.Audit(t.Context(), q)
		if !sameFault(gotErr, wantErr) {
			t.Errorf("%s: got error %v, in process it is %v", what, gotErr, wantErr)
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, in process it is\n%+v", what, got, want)
			return
		}
		if want == nil || want.Next == "" {
			return
		}
		next := *q
		next.After = want.Next
		q = &next
	}
}

// sameFault reports whether two errors have the same code and field. The handler checks a size and
// the text of a time itself, with reasons of its own.
func sameFault(got, want error) bool {
	g, gotOK := errors.AsType[*weir.Error](got)
	w, wantOK := errors.AsType[*weir.Error](want)
	if !gotOK || !wantOK {
		return got == nil && want == nil
	}
	return g.Code == w.Code && g.Field == w.Field
}

// fixedRecords is a server that always answers the same.
func fixedRecords(t *testing.T, body string) *httpapi.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return clientOf(t, server.URL)
}

// TestBrokenRecords checks that the client takes no answer that weir never gives for a page.
func TestBrokenRecords(t *testing.T) {
	t.Parallel()
	const record = `{"entity":"acme","resource":"m","window":"daily","start":"2026-10-01T00:00:00Z",` +
		`"end":"2026-10-02T00:00:00Z","events":1,"units":{"tpm":5}}`
	const usage = `{"usage":[` + record + `],"gaps":[{"to":"2026-10-01T00:00:00Z","reason":"r"}],` +
		`"next":"n"}`
	const event = `{"event_id":"01K6EVENT00000000000000001","timestamp":"2026-10-01T00:00:00Z",` +
		`"action":"limits_set","entity":"acme"}`
	const audit = `{"events":[` + event + `],"next":"n"}`
	q := &weir.UsageQuery{Entity: "acme", Window: weir.Daily, After: "before"}
	aq := &weir.AuditQuery{At: weir.Subject{Entity: "acme"}, After: "before"}
	ask := map[bool]func(body string) error{
		false: func(body string) error {
			_, err := fixedRecords(t, body).Usage(t.Context(), q)
			return err
		},
		true: func(body string) error {
			_, err := fixedRecords(t, body).Audit(t.Context(), aq)
			return err
		},
	}
	for _, c := range []struct {
		name      string
		audit     bool
		part, by  string
		wantError bool
	}{
		{"right", false, "", "", false},
		{"a new member", false, `"events":1`, `"events":1,"new":2`, false},
		{"no usage", false, `"usage"`, `"use"`, true},
		{"no gaps", false, `"gaps"`, `"gap"`, true},
		{"another entity", false, `"acme"`, `"other"`, true},
		{"another window", false, `"daily"`, `"hourly"`, true},
		{"an unknown window", false, `"daily"`, `"weekly"`, true},
		{"a start within the window", false, `01T00:00:00Z","end`, `01T00:00:01Z","end`, true},
		{"another end", false, `"2026-10-02T00:00:00Z"`, `"2026-10-03T00:00:00Z"`, true},
		{"no end", false, `"end"`, `"ends"`, true},
		{"a start in words", false, `"2026-10-01T00:00:00Z","end`, `"yesterday","end`, true},
		{"a fraction", false, `"tpm":5`, `"tpm":5.5`, true},
		{"too large a number", false, `"tpm":5`, `"tpm":9223372036854775808`, true},
		{"no units", false, `"units"`, `"unit"`, true},
		{"negative events", false, `"events":1`, `"events":-1`, true},
		{"a gap without an end", false, `"to"`, `"too"`, true},
		{"the same page again", false, `"next":"n"`, `"next":"before"`, true},
		{"a next page behind nothing", false, record, ``, true},
		{"half of it", false, `}],"gaps"`, ``, true},
		{"null", false, usage, `null`, true},

		{"right", true, "", "", false},
		{"a new member", true, `"action"`, `"new":2,"action"`, false},
		{"no events", true, `"events"`, `"event"`, true},
		{"no ID", true, `"event_id"`, `"id"`, true},
		{"no time", true, `"timestamp"`, `"time"`, true},
		{"no action", true, `"action"`, `"act"`, true},
		{"the same page again", true, `"next":"n"`, `"next":"before"`, true},
		{"a next page behind nothing", true, event, ``, true},
		{"something behind it", true, audit, audit + `{}`, true},
		{"a bracket behind it", true, audit, audit + `}`, true},
	} {
		body := map[bool]string{false: usage, true: audit}[c.audit]
		body = strings.Replace(body, c.part, c.by, 1)
		err := ask[c.audit](body)
		if failed := errors.Is(err, weir.Unavailable); failed != c.wantError || err != nil && !failed {
			t.Errorf("%s (audit %v): got %v for %s", c.name, c.audit, err, body)
		}
	}
}
