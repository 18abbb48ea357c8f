package httphandler_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestTooManyMembers(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	w.reserve(`{"entity":"acme","resource":"bucket","costs":{`+strings.TrimSuffix(manyCosts(1025),
		",")+`}}`).
		want(t, 400)
	w.reserve(`{"entity":"acme","resource":"bucket","costs":{`+
		strings.ReplaceAll(strings.TrimSuffix(manyCosts(1024), ","), `"1"`, `1`)+`}}`).
		want(t, 400, "field", "costs", "value", "1024", "reason", "a request has at most 32")
	a := w.reserve(`{"entity":"acme","resource":"bucket","unknown":0,"costs":{` +
		strings.ReplaceAll(strings.TrimSuffix(manyCosts(1025), ","), `"1"`, `1`) + `}}`)
	errs := fmt.Sprint(a.body["errors"])
	if a.status != 400 || !strings.Contains(errs, "has too many members") {
		t.Errorf("%d: %s", a.status, errs)
	}
}

// TestMistakesAreBounded checks that a problem lists the first sixteen mistakes and counts the
// others.
func TestMistakesAreBounded(t *testing.T) {
	t.Parallel()
	w := newHandlerWorld(t, nil)
	limits := make([]string, 1024)
	for i := range limits {
		limits[i] = fmt.Sprintf(`"l%d":{"capacity":-1}`, i)
	}
	before := w.state()
	a := w.ask(sent{method: "PUT", target: "/v1/admin/system/limits",
		body: `{"limits":{` + strings.Join(limits, ",") + `}}`})
	a.want(t, 400, "field", "limits.l0.capacity", "value", "-1")
	if got := len(listOf(a.body["errors"])); got != 16 {
		t.Errorf("%d errors told, want 16", got)
	}
	if detail, _ := a.body["detail"].(string); !strings.HasSuffix(detail, "(and 1023 more)") {
		t.Errorf("detail is %q", detail)
	}
	w.unchanged(before)
}
