package httpapi_test

import (
	"net/http/httptest"
	"testing"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/testkit/versionrace"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestVersionRace lets two administrators race through a server.
func TestVersionRace(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httphandler.New(l, &httphandler.Options{
		Admin: l, Authenticate: func(token string) (httphandler.Identity, bool) {
			return httphandler.Identity{Name: token, Role: httphandler.RoleAdmin}, true
		},
	}))
	t.Cleanup(server.Close)
	admins := map[string]versionrace.Admin{}
	for _, name := range []string{"alice", "bob"} {
		c, err := httpapi.NewClient(server.URL, &httpapi.ClientOptions{BearerToken: name})
		if err != nil {
			t.Fatal(err)
		}
		admins[name] = c
	}
	versionrace.Run(t, admins)
}
