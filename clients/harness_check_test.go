package clients_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestHarness checks that each server admits a call, and that the proxy loses the first answer
// about it, after which the server replays the reservation.
func TestHarness(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, env []string) {
		variable := func(name string) string {
			for _, pair := range env {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			t.Fatalf("got %v, want %s", env, name)
			return ""
		}
		body := `{"lease_id": "` + weir.NewLeaseID(time.Now()).String() +
			`", "entity": "harness", "resource": "counted", "costs": {"tokens": 7}}`
		for i, want := range []string{"", `"replay":true`} {
			got, err := post(t, variable("WEIR_LOSING_SERVER")+"/v1/reserve", body)
			if (err == nil) != (want != "") || !strings.Contains(got, want) {
				t.Errorf("attempt %d: got %s and error %v, want %q", i, got, err, want)
			}
		}
		slots := variable("WEIR_STORE") != "dynamodb"
		got, err := post(t, variable("WEIR_SERVER")+"/v1/reserve", body)
		if err != nil || !strings.Contains(got, `"available":99999993`) ||
			strings.Contains(got, `"limit":"parallel"`) != slots {
			t.Errorf("got %s and error %v, want seven tokens charged, and a slot: %v", got, err, slots)
		}
	})
}

// post sends a body and returns that of the answer.
func post(t *testing.T, at, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}
