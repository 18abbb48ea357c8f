package replay

import "github.com/weir-limiter/weir"

// The lines of a decision log, in the order in which their fields are written.
type (
	runLine struct {
		Kind   string `json:"kind"`
		Format int    `json:"format"`
		Seed   uint64 `json:"seed"`
		Trace  string `json:"trace"`
		Limits string `json:"limits"`
	}
	subjectLine struct {
		Kind     string      `json:"kind"`
		Entity   string      `json:"entity"`
		Resource string      `json:"resource"`
		Parent   string      `json:"parent,omitempty"`
		Limits   []limitLine `json:"limits"`
	}
	limitLine struct {
		Name           string `json:"name"`
		Kind           string `json:"kind"`
		Capacity       int64  `json:"capacity"`
		RefillAmount   int64  `json:"refill_amount,omitempty"`
		RefillPeriodMS int64  `json:"refill_period_ms,omitempty"`
		WindowMS       int64  `json:"window_ms,omitempty"`
		TimeoutMS      int64  `json:"timeout_ms,omitempty"`
		Every          string `json:"every,omitempty"`
		Zone           string `json:"zone,omitempty"`
		Shadow         bool   `json:"shadow,omitempty"`
	}
	reserveLine struct {
		Kind         string       `json:"kind"`
		AtMS         int64        `json:"at_ms"`
		Lease        weir.LeaseID `json:"lease"`
		Charges      []chargeLine `json:"charges"`
		Allowed      *bool        `json:"allowed,omitempty"`
		RetryAfterMS *int64       `json:"retry_after_ms,omitempty"`
		Error        string       `json:"error,omitempty"`
		Limits       []statusLine `json:"limits,omitempty"`
	}
	chargeLine struct {
		Entity   string     `json:"entity"`
		Resource string     `json:"resource"`
		Costs    weir.Costs `json:"costs"`
	}
	statusLine struct {
		Entity       string `json:"entity"`
		Resource     string `json:"resource"`
		Limit        string `json:"limit"`
		Kind         string `json:"kind"`
		Capacity     int64  `json:"capacity"`
		Available    int64  `json:"available"`
		Requested    int64  `json:"requested"`
		Exceeded     bool   `json:"exceeded"`
		Shadow       bool   `json:"shadow"`
		RetryAfterMS int64  `json:"retry_after_ms"`
	}
	completeLine struct {
		Kind    string       `json:"kind"`
		AtMS    int64        `json:"at_ms"`
		Lease   weir.LeaseID `json:"lease"`
		Actuals []weir.Costs `json:"actuals"`
	}
	endLine struct {
		Kind string `json:"kind"`
		AtMS int64  `json:"at_ms"`
	}
)

func newLimitLine(l *weir.Limit) limitLine {
	return limitLine{
		Name: l.Name, Kind: string(l.Kind), Capacity: l.Capacity,
		RefillAmount: l.RefillAmount, RefillPeriodMS: l.RefillPeriod.Milliseconds(),
		WindowMS: l.Window.Milliseconds(), TimeoutMS: l.Timeout.Milliseconds(),
		Every: l.Every, Zone: l.Zone, Shadow: l.Shadow,
	}
}
