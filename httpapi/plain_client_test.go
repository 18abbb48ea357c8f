package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"sync"
	"testing"

	"github.com/weir-limiter/weir"
)

// bodiesOf is a network that keeps what is sent, and answers nothing. The client cancels a reserve
// without an answer in the background, so several goroutines may send at once.
type bodiesOf struct {
	mu   sync.Mutex
	sent map[string][]byte
}

func (b *bodiesOf) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[path.Base(r.URL.Path)] = bytes.Clone(text)
	return nil, errors.New("no network")
}

// What the client of this package sends is in plain form.
func TestClientBodiesAreReadPlainly(t *testing.T) {
	t.Parallel()
	network := &bodiesOf{sent: map[string][]byte{}}
	c, err := NewClient("http://weir.test", &ClientOptions{
		HTTPClient: &http.Client{Transport: network}, Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := t.Context(), weir.LeaseID{1}
	costs := weir.Costs{"rpm": 1, "tpm": 500}
	_, reserved := c.Reserve(ctx, &weir.Request{Entity: "acme", Resource: "openai/gpt-4o", Costs: costs})
	_, adjusted := c.Adjust(ctx, id, 1, []weir.Costs{costs})
	_, completed := c.Complete(ctx, id, []weir.Costs{{"tpm": 321}})
	_, cancelled := c.Cancel(ctx, id)
	for _, err := range []error{reserved, adjusted, completed, cancelled} {
		if !errors.Is(err, weir.Unavailable) {
			t.Fatal(err)
		}
	}
	network.mu.Lock()
	defer network.mu.Unlock()
	for _, verb := range []string{"reserve", "adjust", "complete", "cancel"} {
		if took := readsPlain(t, network.sent[verb]); !contains(took, verb) {
			t.Errorf("%s: not in plain form: %s", verb, network.sent[verb])
		}
	}
}
