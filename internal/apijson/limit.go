package apijson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/metadata"
)

// Limit is a definition with the fields of a limits file. Durations are whole seconds.
type Limit struct {
	Kind         weir.Kind `json:"kind,omitempty"`
	Capacity     int64     `json:"capacity"`
	RefillAmount int64     `json:"refill_amount,omitempty"`
	// RefillPeriod has up to three decimals, because limits that the API sets may have a period that
	// a limits file cannot express.
	RefillPeriod json.Number `json:"refill_period,omitempty"`
	Window       int64       `json:"window,omitempty"`
	Timeout      int64       `json:"timeout,omitempty"`
	Every        string      `json:"every,omitempty"`
	Zone         string      `json:"zone,omitempty"`
	Enforce      *bool       `json:"enforce,omitempty"`
}

func limitOf(l *weir.Limit) Limit {
	b := Limit{
		Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
		Window: int64(l.Window / time.Second), Timeout: int64(l.Timeout / time.Second),
		Every: l.Every, Zone: l.Zone,
	}
	if l.RefillPeriod != 0 {
		b.RefillPeriod = secondsNumber(l.RefillPeriod)
	}
	if l.Shadow {
		b.Enforce = new(false)
	}
	return b
}

// LimitsOf returns limits by name. The map is never nil, so that an empty one is {}.
func LimitsOf(limits []weir.Limit) map[string]Limit {
	bodies := make(map[string]Limit, len(limits))
	for i := range limits {
		bodies[limits[i].Name] = limitOf(&limits[i])
	}
	return bodies
}

// secondsNumber returns a duration in seconds, with up to three decimals.
func secondsNumber(d time.Duration) json.Number {
	ms := d.Milliseconds()
	text := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		text += strings.TrimRight("."+strconv.FormatInt(1000+rest, 10)[1:], "0")
	}
	return json.Number(text)
}

// ReadLimits returns limits in the order of their names.
func ReadLimits(bodies map[string]Limit) ([]weir.Limit, error) {
	if len(bodies) == 0 {
		return nil, nil
	}
	out := make([]weir.Limit, 0, len(bodies))
	for name, b := range bodies {
		l, err := b.limit(name)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(x, y weir.Limit) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// limit returns the limit with defaults filled in. A limit that is not valid, perhaps because the
// server is newer, is returned unchanged.
func (b *Limit) limit(name string) (weir.Limit, error) {
	period, err := parseSeconds(string(b.RefillPeriod))
	if err != nil {
		return weir.Limit{}, fmt.Errorf("has a refill_period of %q: %w", Shorten(b.RefillPeriod), err)
	}
	l := weir.Limit{
		Name: name, Kind: b.Kind, Capacity: b.Capacity, RefillAmount: b.RefillAmount,
		RefillPeriod: period, Window: seconds(b.Window), Timeout: seconds(b.Timeout),
		Every: b.Every, Zone: b.Zone, Shadow: b.Enforce != nil && !*b.Enforce,
	}
	if normal, err := l.Normalize(); err == nil {
		return normal, nil
	}
	return l, nil
}

func seconds(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Second
}

// parseSeconds reads seconds with up to nine decimals; an empty text is zero.
func parseSeconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text + "s")
}

// CheckLimits returns an error for limits that JSON cannot express: a repeated name, a string that
// is not UTF-8, or a duration that is not a whole number of units. The error then has every
// mistake, as the engine's would.
func CheckLimits(limits []weir.Limit) error {
	seen := make(map[string]bool, len(limits))
	expressible := true
	for i := range limits {
		l := &limits[i]
		expressible = expressible && !seen[l.Name] && canExpress(l)
		seen[l.Name] = true
	}
	if expressible {
		return nil
	}
	var errs []error
	clear(seen)
	for i := range limits {
		l := &limits[i]
		field := "limits." + Shorten(l.Name)
		if err := l.Validate(); err != nil {
			for _, f := range FaultsOf(err) {
				f.Field = field + "." + f.Field
				errs = append(errs, f)
			}
			continue
		}
		if seen[l.Name] {
			errs = append(errs, Invalid(field, l.Name, "is given twice"))
		}
		seen[l.Name] = true
	}
	return errors.Join(errs...)
}

func canExpress(l *weir.Limit) bool {
	for _, s := range []string{l.Name, string(l.Kind), l.Every, l.Zone} {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return l.Window%time.Second == 0 && l.Timeout%time.Second == 0 &&
		l.RefillPeriod%time.Millisecond == 0 && l.RefillPeriod >= 0
}

// System is the answer to GET /v1/admin/system.
type System struct {
	OnUnavailable weir.Policy      `json:"on_unavailable"`
	Retention     *Retention       `json:"retention,omitempty"`
	Limits        map[string]Limit `json:"limits"`
}

// Retention is the body of a PUT to /v1/admin/system/retention, which changes the settings that it
// has, and of its answer and that to a GET, which have the settings that are configured.
type Retention struct {
	UsageDays     *int64 `json:"usage_days,omitempty"`
	AuditDays     *int64 `json:"audit_days,omitempty"`
	TTLMultiplier *int64 `json:"ttl_multiplier,omitempty"`
	Note          string `json:"note,omitempty"`
}

// RetentionOf returns a retention.
func RetentionOf(r *weir.Retention) *Retention {
	return &Retention{UsageDays: r.UsageDays, AuditDays: r.AuditDays, TTLMultiplier: r.TTLMultiplier}
}

// Retention returns the retention in the body.
func (b *Retention) Retention() *weir.Retention {
	return &weir.Retention{UsageDays: b.UsageDays, AuditDays: b.AuditDays, TTLMultiplier: b.TTLMultiplier}
}

// Policy is the body of a PUT to /v1/admin/system/on_unavailable, and of its answer.
type Policy struct {
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Note          string      `json:"note,omitempty"`
}

// LimitSet is the limits of one place, in requests and answers.
type LimitSet struct {
	Limits map[string]Limit `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// Entity is an entity in an answer, with its limits by resource.
type Entity struct {
	Entity   string                      `json:"entity,omitempty"`
	Parent   string                      `json:"parent,omitempty"`
	Cascade  bool                        `json:"cascade,omitempty"`
	Name     string                      `json:"name,omitempty"`
	Metadata Metadata                    `json:"metadata,omitempty"`
	Limits   map[string]map[string]Limit `json:"limits,omitempty"`
	Note     string                      `json:"note,omitempty"`
}

// EntityOf returns an entity with its limits.
func EntityOf(name string, e *weir.EntityDefinition) *Entity {
	b := &Entity{
		Entity: name, Parent: e.Parent, Cascade: e.Cascade, Name: e.Name, Metadata: e.Metadata,
		Limits: make(map[string]map[string]Limit, len(e.Limits)),
	}
	for resource, limits := range e.Limits {
		b.Limits[resource] = LimitsOf(limits)
	}
	return b
}

// Definition returns the entity in the body.
func (b *Entity) Definition() (*weir.EntityDefinition, error) {
	e := &weir.EntityDefinition{
		Parent: b.Parent, Cascade: b.Cascade, Name: b.Name, Metadata: b.Metadata,
		Limits: map[string][]weir.Limit{},
	}
	for resource, bodies := range b.Limits {
		var err error
		if e.Limits[resource], err = ReadLimits(bodies); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// EntityChange is the body of a PUT of an entity. A name and metadata that are not given stay as
// they are.
type EntityChange struct {
	Parent   string    `json:"parent,omitempty"`
	Cascade  bool      `json:"cascade,omitempty"`
	Name     *string   `json:"name,omitempty"`
	Metadata *Metadata `json:"metadata,omitempty"`
}

// EntityChangeOf returns a change of an entity.
func EntityChangeOf(c *change.Entity) *EntityChange {
	b := &EntityChange{Parent: c.Parent, Cascade: c.Cascade, Name: c.Name}
	if c.Metadata != nil {
		b.Metadata = new(Metadata(c.Metadata))
	}
	return b
}

// Metadata are the metadata of an entity. Their numbers are read exactly.
type Metadata map[string]any

// UnmarshalJSON reads an object into the normal form of package metadata.
func (m *Metadata) UnmarshalJSON(text []byte) (err error) {
	*m, err = metadata.Parse(text)
	return err
}

// EntityList is a page of entities. Next is the start of the next page, or empty on the last one.
type EntityList struct {
	Entities []string `json:"entities"`
	Next     string   `json:"next,omitempty"`
}

// ResourceList is a page of resources. Next is the start of the next page, or empty on the last one.
type ResourceList struct {
	Resources []string `json:"resources"`
	Next      string   `json:"next,omitempty"`
}

// ReadResources reads a [ResourceList] that answers a query for the names after a name.
func ReadResources(body []byte, after string) (*ResourceList, error) {
	b, err := Read[ResourceList](body)
	switch {
	case err != nil:
		return nil, err
	case b.Resources == nil:
		return nil, errors.New("has no resources")
	case b.Next != "" && b.Next <= after:
		return nil, errors.New("has a next page that is no further")
	}
	return b, nil
}

// ReadEntities reads an [EntityList].
func ReadEntities(body []byte) (*weir.EntityPage, error) {
	b, err := Read[EntityList](body)
	if err == nil && b.Entities == nil {
		err = errors.New("has no entities")
	}
	if err != nil {
		return nil, err
	}
	return &weir.EntityPage{Names: b.Entities, Next: b.Next}, nil
}
