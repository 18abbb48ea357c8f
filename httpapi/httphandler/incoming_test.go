package httphandler

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
)

// echoService repeats the request in its answer or its error, and keeps every request.
type echoService struct {
	weir.Service

	mu   sync.Mutex
	kept map[string]*weir.Request
}

func (s *echoService) Reserve(_ context.Context, r *weir.Request) (*weir.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[r.Entity] = r
	if r.Resource == "refused" {
		return nil, &weir.Error{Code: weir.UnknownLimit, Field: "entity", Value: r.Entity, Reason: "is refused"}
	}
	l := &weir.Lease{ID: weir.LeaseID{1}}
	for name, n := range r.Costs {
		l.Limits = append(l.Limits, weir.LimitStatus{
			Entity: r.Entity, Resource: r.Resource, Limit: name, Kind: weir.Bucket, Requested: n,
		})
	}
	return l, nil
}

// TestBuffersAreReused checks that requests whose buffers were used before see nothing of earlier
// requests, and that a request kept by the service does not change.
func TestBuffersAreReused(t *testing.T) {
	t.Parallel()
	s := &echoService{kept: map[string]*weir.Request{}}
	h := New(s, nil)
	const callers, each = 8, 150
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				entity := fmt.Sprintf("e%d-%d-%s", caller, i, strings.Repeat("x", i%40))
				resource, status := "m", http.StatusOK
				if i%3 == 1 {
					resource, status = "refused", http.StatusNotFound
				}
				text := fmt.Sprintf(`{"entity":%q,"resource":%q,"costs":{"n":%d}}`, entity, resource, i)
				if i%2 == 1 { // with an escape
					text = strings.Replace(text, `"n"`, `"\u006e"`, 1)
				}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve", strings.NewReader(text))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != status || !strings.Contains(w.Body.String(), `"`+entity+`"`) {
					t.Errorf("%s got %d %s", text, w.Code, w.Body)
				}
			}
		})
	}
	all.Wait()
	if len(s.kept) != callers*each {
		t.Fatalf("%d requests came, want %d", len(s.kept), callers*each)
	}
	for entity, r := range s.kept {
		var caller, i int64
		if _, err := fmt.Sscanf(entity, "e%d-%d-", &caller, &i); err != nil {
			t.Fatal(err)
		}
		if r.Entity != entity || !reflect.DeepEqual(r.Costs, weir.Costs{"n": i}) {
			t.Errorf("%s became %+v", entity, r)
		}
	}
}

// TestOnlyBuffersAreKept checks that a request leaves only its buffers for the next one, and only
// up to a bound.
func TestOnlyBuffersAreKept(t *testing.T) {
	t.Parallel()
	h := New(nil, nil)
	for _, size := range [][2]int{{maxKept, maxKept / 2}, {maxKept + 1, 1}, {1, maxKept + 1}} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		c := h.begin(w, r)
		c.in = make([]byte, size[0])
		if err := c.writer.Write(w, http.StatusOK, "", strings.Repeat("x", size[1])); err != nil {
			t.Fatal(err)
		}
		c.query, c.identity = map[string]string{"a": "b"}, Identity{Name: "somebody", Role: RoleCall}
		c.update, c.limits = completeBody(), []weir.LimitStatus{{}}
		h.end(c)
		next := h.begin(w, r)
		if cap(next.in) > maxKept || next.writer.Kept() > maxKept {
			t.Errorf("%d and %d bytes were left behind", cap(next.in), next.writer.Kept())
		}
		empty := &incoming{
			w: w, r: r, identity: Identity{Role: RoleAdmin}, in: next.in[:0],
			reader: next.reader, writer: next.writer,
		}
		if !reflect.DeepEqual(next, empty) { //nolint:govet // Both have the same reader, so no errors are compared.
			t.Errorf("left behind: %+v", next)
		}
	}
}
