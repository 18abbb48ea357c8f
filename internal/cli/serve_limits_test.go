package cli

import (
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// TestLimitsOnTableServer applies a limits file through a server to its table. The changes are in the
// table for good, and in its audit under the server's principal.
func TestLimitsOnTableServer(t *testing.T) {
	t.Parallel()
	s := startTableServer(t, nil)
	c, err := httpapi.NewClient(s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f := &httpapi.LimitsFile{Text: `version: 1
namespace: default
resources: {r: {limits: {rpm: {capacity: 5}}}}
entities: {acme: {}, bot: {parent: acme, cascade: true}}
`}
	p, err := c.ApplyLimits(t.Context(), f)
	if err != nil || p.Failed > 0 || p.Applied != 5 || p.Namespace != "default" || p.Note != "" {
		t.Fatalf("apply: %+v, %v", p, err)
	}
	e, err := c.Entity(t.Context(), "bot")
	if err != nil || e.Parent != "acme" || !e.Cascade {
		t.Errorf("bot: %+v, %v", e, err)
	}
	page, err := c.Audit(t.Context(), &weir.AuditQuery{At: weir.Subject{Resource: "r"}})
	if err != nil || len(page.Events) != 1 || page.Events[0].Principal != "tester" {
		t.Errorf("the audit of r: %+v, %v", page, err)
	}
	p, err = c.PlanLimits(t.Context(), f)
	if err != nil || !p.Nothing() || len(p.Unmanaged) != 1 { // the limit that the table begins with
		t.Errorf("then: %+v, %v", p, err)
	}
}
