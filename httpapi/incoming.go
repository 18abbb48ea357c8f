package httpapi

import (
	"net/http"

	"github.com/weir-limiter/weir"
)

// maxKept is how many bytes a request may leave behind for the next one to use.
const maxKept = 16 << 10

// incoming is one request of a route, and the memory that it works in. Once it was answered another
// request uses that again: nothing may keep a piece of it.
type incoming struct {
	w        http.ResponseWriter
	r        *http.Request
	identity Identity
	caller   string // its name for the limiter
	query    map[string]string
	in, out  []byte // the request's body, and the answer's
	arriving arriving
	verb     settleRequest
	said     answer
	made     weir.LeaseID // of the lease that was reserved, if the caller brought no ID
}

// say makes the answer.
func (c *incoming) say(body any, limits []weir.LimitStatus) *answer {
	c.said = answer{body, limits}
	return &c.said
}

// begin begins a request. It comes from an admin until a bearer token says otherwise.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) *incoming {
	c, ok := h.incoming.Get().(*incoming)
	if !ok {
		c = &incoming{in: make([]byte, 0, 512), out: make([]byte, 0, 1024)}
	}
	c.w, c.r, c.identity = w, r, Identity{Role: RoleAdmin}
	return c
}

// end ends a request that was answered. One that panicked does not get here: something may be at
// work on it still.
func (h *Handler) end(c *incoming) {
	if cap(c.in) <= maxKept && cap(c.out) <= maxKept {
		*c = incoming{in: c.in[:0], out: c.out[:0]}
		h.incoming.Put(c)
	}
}
