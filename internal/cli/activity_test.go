package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
)

// reported is an activity whose denials have the given IDs, the newest first. Those with an even ID
// are by the limit "even".
func reported(since, denied int64, ids ...int64) *httpapi.ActivityReport {
	r := &httpapi.ActivityReport{SinceMS: since, NowMS: 1, Denied: denied}
	for _, id := range ids {
		limit := []string{"even", "odd"}[id%2]
		r.Denials = append(r.Denials, httpapi.ActivityDenial{
			ID: id, AtMS: id * 1000, RetryAfterMS: 500,
			Charges:  []httpapi.ActivitySubject{{Entity: "team-a", Resource: "m"}},
			Exceeded: []httpapi.ActivityExceeded{{Entity: "acme", Resource: "m", Limit: limit}},
		})
	}
	return r
}

// TestFollow plays the answers of a server, one a second, and then interrupts. The texts have the
// lines about denials by their IDs, and the notes.
func TestFollow(t *testing.T) {
	t.Parallel()
	gone := &weir.Error{Code: weir.Unavailable}
	for _, c := range []struct {
		name    string
		answers []any // reports and errors
		limit   string
		want    string
		fails   bool
	}{
		{"nothing new", []any{reported(1, 2, 4, 3), reported(1, 2, 4, 3)}, "", "", false},
		{"some new, the oldest first", []any{
			reported(1, 2, 4, 3), reported(1, 4, 8, 6, 4, 3), reported(1, 5, 9, 8, 6, 4, 3),
		}, "", "6 8 9", false},
		{"the first of all", []any{reported(1, 0), reported(1, 1, 7)}, "", "7", false},
		{"by limit", []any{reported(1, 0), reported(1, 4, 9, 8, 7, 6)}, "even", "6 8", false},
		{"more than are listed", []any{reported(1, 2, 4, 3), reported(1, 1002, 2002, 2001)}, "",
			"note: 998 more denials came than the server lists; 2001 2002", false},
		{"started again", []any{reported(1, 2, 4, 3), reported(9000, 1, 2)}, "",
			"note: the server was started again, at 1970-01-01T00:00:09.000Z; 2", false},
		{"away for a while", []any{reported(1, 1, 3), gone, gone, reported(1, 2, 5, 3)}, "",
			"note: the server does not answer: trying again until it does; note: the server answers again; 5", false},
		{"never there", []any{gone}, "", "", true},
		{"no longer permitted", []any{
			reported(1, 1, 3), &weir.Error{Code: weir.PermissionDenied},
		}, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var both bytes.Buffer
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				began, asked := time.Now(), 0
				w := &denialWatch{
					app:   &console.App{Streams: console.Streams{Out: &both, Err: &both}},
					flags: &activityFlags{limit: c.limit}, json: true,
					ask: func(ctx context.Context) (*httpapi.ActivityReport, error) {
						if asked == len(c.answers) {
							interrupt()
							return nil, ctx.Err()
						}
						if got := time.Since(began); got != time.Duration(asked)*time.Second {
							t.Errorf("question %d comes after %v", asked, got)
						}
						asked++
						if err, ok := c.answers[asked-1].(error); ok {
							return nil, err
						}
						return c.answers[asked-1].(*httpapi.ActivityReport), nil
					},
				}
				if err := w.run(ctx); (err != nil) != c.fails {
					t.Errorf("got %v", err)
				}
				if got := summary(t, both.String()); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// summary writes the IDs of JSON lines, and the notes between them.
func summary(t *testing.T, said string) string {
	t.Helper()
	var parts []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if note, ok := strings.CutPrefix(line, "weir: "); ok {
			parts = append(parts, note+";")
			continue
		}
		var d httpapi.ActivityDenial
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.Charges[0].Entity != "team-a" {
			t.Fatalf("%s: %v", line, err)
		}
		id, _ := json.Marshal(d.ID) //nolint:errchkjson // A number can be written.
		parts = append(parts, string(id))
	}
	return strings.Join(parts, " ")
}

// TestFollowIsInterrupted runs the command until it has printed a denial, and interrupts it: its
// exit code is 0.
func TestFollowIsInterrupted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r := reported(1, 0)
		if asked.Add(1) > 1 {
			r = reported(1, 1, 6)
			r.Denials[0].Charges[0].Entity = "\x1b[2Jteam" // no server of weir has such a name
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r)
	}))
	defer server.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	var errs bytes.Buffer
	env := func(name string) string { return map[string]string{connect.ServerEnv: server.URL}[name] }
	code := make(chan int, 1)
	go func() {
		s := console.Streams{In: strings.NewReader(""), Out: in, Err: &errs}
		code <- Run(ctx, []string{"activity", "--follow"}, s, env)
		_ = in.Close()
	}()
	line := make([]byte, 1000)
	n, err := out.Read(line)
	interrupt()
	const want = `1970-01-01T00:00:06.000Z  \x1b[2Jteam/m  denied by acme/m even (asked 0, available 0)  ` +
		"retry after 500ms\n"
	if got := string(line[:n]); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if got := <-code; got != console.ExitDone || errs.Len() > 0 {
		t.Errorf("exit code %d, and said %q; want 0", got, errs.String())
	}
}

// TestShareOf checks shares at the limits of the counts.
func TestShareOf(t *testing.T) {
	t.Parallel()
	const most = 1<<63 - 1
	for _, c := range []struct {
		denied, admitted int64
		want             string
	}{
		{0, 0, ""},
		{0, 5, ""},
		{5, 0, ", 100.0 % of reservations"},
		{1, 2, ", 33.3 % of reservations"},
		{1, 10_000, ", 0.0 % of reservations"},
		{999_999, 1, ", 99.9 % of reservations"},
		{most, most, ", 50.0 % of reservations"},
	} {
		if got := shareOf(c.denied, c.admitted); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.denied, c.admitted, got, c.want)
		}
	}
}
