package httpapi

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// statusBody is a [weir.LimitStatus].
type statusBody struct {
	Entity       string     `json:"entity"`
	Resource     string     `json:"resource"`
	Limit        string     `json:"limit"`
	Kind         weir.Kind  `json:"kind"`
	Level        weir.Level `json:"level"`
	Capacity     int64      `json:"capacity"`
	Available    int64      `json:"available"`
	Requested    int64      `json:"requested"`
	Exceeded     bool       `json:"exceeded"`
	Shadow       bool       `json:"shadow,omitempty"`
	Superseded   bool       `json:"superseded,omitempty"`
	RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
	AtLeast      bool       `json:"retry_after_at_least,omitempty"`
}

// statusBodies are statuses as the wire says them; never nil.
func statusBodies(limits []weir.LimitStatus) []statusBody {
	bodies := make([]statusBody, len(limits))
	for i := range limits {
		bodies[i] = statusBodyOf(&limits[i])
	}
	return bodies
}

func statusBodyOf(s *weir.LimitStatus) statusBody {
	return statusBody{
		Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Level: s.Level,
		Capacity: s.Capacity, Available: s.Available, Requested: s.Requested,
		Exceeded: s.Exceeded, Shadow: s.Shadow, Superseded: s.Superseded,
		RetryAfterMS: ceilUnits(s.RetryAfter, time.Millisecond), AtLeast: s.AtLeast,
	}
}

// appendJSON appends the status as [encoding/json] writes it.
func (b *statusBody) appendJSON(text []byte) []byte {
	text = appendText(text, `{"entity":`, b.Entity)
	text = appendText(text, `,"resource":`, b.Resource)
	text = appendText(text, `,"limit":`, b.Limit)
	text = appendText(text, `,"kind":`, string(b.Kind))
	text = appendText(text, `,"level":`, string(b.Level))
	text = appendNumber(text, `,"capacity":`, b.Capacity)
	text = appendNumber(text, `,"available":`, b.Available)
	text = appendNumber(text, `,"requested":`, b.Requested)
	text = appendBool(text, `,"exceeded":`, b.Exceeded)
	text = appendTrue(text, `,"shadow":`, b.Shadow)
	text = appendTrue(text, `,"superseded":`, b.Superseded)
	text = appendNonzero(text, `,"retry_after_ms":`, b.RetryAfterMS)
	text = appendTrue(text, `,"retry_after_at_least":`, b.AtLeast)
	return append(text, '}')
}

func statusesOf(bodies []statusBody) []weir.LimitStatus {
	if len(bodies) == 0 {
		return nil
	}
	out := make([]weir.LimitStatus, len(bodies))
	for i := range bodies {
		b := &bodies[i]
		out[i] = weir.LimitStatus{
			Entity: b.Entity, Resource: b.Resource, Limit: b.Limit, Kind: b.Kind, Level: b.Level,
			Capacity: b.Capacity, Available: b.Available, Requested: b.Requested,
			Exceeded: b.Exceeded, Shadow: b.Shadow, Superseded: b.Superseded,
			RetryAfter: milliseconds(b.RetryAfterMS), AtLeast: b.AtLeast,
		}
	}
	return out
}

// anyNegativeWait reports whether a limit is said to fit before now, which weir never says.
func anyNegativeWait(bodies []statusBody) bool {
	return slices.ContainsFunc(bodies, func(b statusBody) bool { return b.RetryAfterMS < 0 })
}

// limitsStatusBody answers GET /v1/status and GET /v1/resources/{resource}/capacity.
type limitsStatusBody struct {
	Limits []statusBody `json:"limits"`
}

func readStatuses(body []byte) ([]weir.LimitStatus, error) {
	b, err := read[limitsStatusBody](body)
	if err == nil && b.Limits == nil {
		err = errors.New("has no limits")
	}
	if err == nil && anyNegativeWait(b.Limits) {
		err = errors.New("has a wait below zero")
	}
	if err != nil {
		return nil, err
	}
	return statusesOf(b.Limits), nil
}

// explanationBody is a [weir.Explanation].
type explanationBody struct {
	Entity   string               `json:"entity"`
	Resource string               `json:"resource"`
	Level    weir.Level           `json:"level,omitempty"`
	Limits   map[string]limitBody `json:"limits"`
	Hidden   []levelBody          `json:"hidden,omitempty"`
	Parent   *explanationBody     `json:"parent,omitempty"`
}

type levelBody struct {
	Level  weir.Level           `json:"level"`
	Limits map[string]limitBody `json:"limits"`
}

// explanationBodyOf is an explanation as the wire says it, parents included.
func explanationBodyOf(e *weir.Explanation) *explanationBody {
	if e == nil {
		return nil
	}
	b := &explanationBody{
		Entity: e.Entity, Resource: e.Resource, Level: e.Level,
		Limits: limitBodies(e.Limits), Parent: explanationBodyOf(e.Parent),
	}
	for _, h := range e.Hidden {
		b.Hidden = append(b.Hidden, levelBody{h.Level, limitBodies(h.Limits)})
	}
	return b
}

func readExplanation(body []byte) (*weir.Explanation, error) {
	b, err := read[explanationBody](body)
	if err != nil {
		return nil, err
	}
	return b.explanation()
}

func (b *explanationBody) explanation() (*weir.Explanation, error) {
	if b.Entity == "" || b.Resource == "" {
		return nil, errors.New("is not whole")
	}
	e := &weir.Explanation{Entity: b.Entity, Resource: b.Resource, Level: b.Level}
	var err error
	if e.Limits, err = limitsOf(b.Limits); err != nil {
		return nil, err
	}
	for _, h := range b.Hidden {
		limits, err := limitsOf(h.Limits)
		if err != nil {
			return nil, err
		}
		e.Hidden = append(e.Hidden, weir.LevelLimits{Level: h.Level, Limits: limits})
	}
	if b.Parent != nil {
		e.Parent, err = b.Parent.explanation()
	}
	return e, err
}

// ceilUnits is how many whole units a wait takes, rounded up: who comes back then does not come too
// early.
func ceilUnits(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	n := int64(d / unit)
	if d%unit != 0 && n < math.MaxInt64 {
		n++
	}
	return n
}

// milliseconds stays at the longest duration there is, as the limiter's waits do.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
