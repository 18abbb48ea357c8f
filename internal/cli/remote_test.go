package cli

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/internal/server/statuspage"
	"github.com/weir-limiter/weir/internal/testkit/recordstore"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

// remoteStart is the initial time of the scripts' servers. Only "advance" moves their time.
var remoteStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestRemoteScripts runs the commands that make one call, on servers in virtual time and on
// snapshots.
func TestRemoteScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script/remote",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "server": scriptServer, "advance": scriptAdvance, "newlease": scriptNewLease,
			"json": scriptJSON, "setjson": scriptSetJSON, "ask": scriptAsk, "same": scriptSame,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[remoteClock{}] = &serverTime{at: remoteStart}
			hurry(e)
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// remoteClock is the key of a script's serverTime.
type remoteClock struct{}

// serverTime is the clock of a script's servers.
type serverTime struct {
	mu sync.Mutex
	at time.Time
}

func (s *serverTime) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *serverTime) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
}

func clockOf(ts *testscript.TestScript) *serverTime { return ts.Value(remoteClock{}).(*serverTime) }

// scriptServer is a command of the scripts: "server [-tokens] [-tls] FILE" serves the limits in
// FILE and sets WEIR_SERVER. With -tokens it requires the bearer token of a role:
// "the-token-of-read", or call, or admin. With -tls it writes its certificate to ca.pem. The usage
// and the audit are those of [recordstore.Month].
func scriptServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: server [-tokens] [-tls] FILE")
	}
	file := args[len(args)-1]
	m, err := manifest.Parse(file, []byte(ts.ReadFile(file)))
	ts.Check(err)
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	ts.Check(err)
	clock := clockOf(ts)
	activity := statuspage.NewActivity(clock.now())
	lim, err := limiter.New(store, &limiter.Options{
		Now: clock.now, CascadeDepth: 8, Observer: activity,
	})
	ts.Check(err)
	records, err := recordstore.Month().New(clock.now)
	ts.Check(err)
	ts.Defer(func() { _ = records.Close() })
	o := &httphandler.Options{
		Admin: lim, AdminNote: "holds until the next reload or restart", Records: records, Now: clock.now,
		Limits: declared.New(lim), Store: "memory:", Activity: activity.Report,
	}
	if slices.Contains(args, "-tokens") {
		o.Authenticate = authenticateRole
	}
	handler := httphandler.New(lim, o)
	dated := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", clock.now().Format(http.TimeFormat)) // a client takes the time from it
		handler.ServeHTTP(w, r)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(dated))
	// Scripts also use clients that do not trust the server.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if slices.Contains(args, "-tls") {
		server.StartTLS()
		block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
		ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pem.EncodeToMemory(block), 0o600))
	} else {
		server.Start()
	}
	ts.Defer(server.Close)
	ts.Setenv(connect.ServerEnv, server.URL)
}

func authenticateRole(token string) (httphandler.Identity, bool) {
	for _, role := range []httphandler.Role{httphandler.RoleRead, httphandler.RoleCall, httphandler.RoleAdmin} {
		if subtle.ConstantTimeCompare([]byte(token), []byte("the-token-of-"+role.String())) == 1 {
			return httphandler.Identity{Name: role.String(), Role: role}, true
		}
	}
	return httphandler.Identity{}, false
}

// scriptAdvance is a command of the scripts: "advance DURATION" moves the servers' time.
func scriptAdvance(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: advance DURATION")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	clockOf(ts).advance(d)
}

// scriptNewLease is a command of the scripts: "newlease VAR..." sets each to a lease ID of the
// servers' time.
func scriptNewLease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: newlease VAR...")
	}
	for _, name := range args {
		ts.Setenv(name, weir.NewLeaseID(clockOf(ts).now()).String())
	}
}

// scriptAsk is a command of the scripts: "ask METHOD PATH BODY FILE" writes the server's answer to
// the file.
func scriptAsk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: ask METHOD PATH BODY FILE")
	}
	url := ts.Getenv(connect.ServerEnv) + args[1]
	req, err := http.NewRequestWithContext(
		context.Background(), args[0], url, strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), body, 0o600))
}

// scriptSame is a command of the scripts: "same A B" expects two JSON texts to be equal, "same
// -part A B" expects every member of A in B.
func scriptSame(ts *testscript.TestScript, neg bool, args []string) {
	part := len(args) == 3 && args[0] == "-part"
	if part {
		args = args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same [-part] A B")
	}
	var sides [2]map[string]any
	for i, name := range args {
		d := json.NewDecoder(strings.NewReader(ts.ReadFile(name)))
		d.UseNumber()
		ts.Check(d.Decode(&sides[i]))
	}
	if part {
		maps.DeleteFunc(sides[1], func(name string, _ any) bool { _, ok := sides[0][name]; return !ok })
	}
	if len(sides[0]) == 0 || !reflect.DeepEqual(sides[0], sides[1]) {
		ts.Fatalf("got %v, want %v", sides[0], sides[1])
	}
}
