package httpapi

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// LimitsAdmin compares a limits file with the configuration, applies it, and writes one.
type LimitsAdmin interface {
	// PlanLimits returns what an apply of the file would change. It changes nothing.
	PlanLimits(ctx context.Context, f *LimitsFile) (*LimitsPlan, error)
	// ApplyLimits makes the changes. A change that fails does not end the others: its Error says
	// why, and Failed counts those. The error is not nil if nothing was changed at all, for
	// example with code [weir.Conflict] if another apply is under way.
	ApplyLimits(ctx context.Context, f *LimitsFile) (*LimitsPlan, error)
	// ExportLimits returns the configuration as a limits file.
	ExportLimits(ctx context.Context) (*LimitsExport, error)
}

// LimitsFile is a limits file, and what its apply may do.
type LimitsFile struct {
	// Name is the file's name. It is used only in messages. Default: "limits".
	Name string `json:"name,omitempty"`
	// Text is the content of the file.
	Text string `json:"text"`
	// Yes allows the apply to delete more than a fifth of the limits. Default: false.
	Yes bool `json:"yes,omitempty"`
	// TakeOver ends another apply that is under way. Default: false.
	TakeOver bool `json:"take_over,omitempty"`
	// Adopt takes over what the Python library's provisioner manages. Default: false.
	Adopt bool `json:"adopt,omitempty"`
}

// LimitsPlan says what an apply would change, or has changed.
type LimitsPlan struct {
	// Namespace is the store's namespace.
	Namespace string `json:"namespace,omitempty"`
	// Changes are the differences in what the file has or managed before, in the order of a limits
	// file.
	Changes []LimitsChange `json:"changes"`
	// Unmanaged are the parts that only the store has and no file manages. An apply leaves it alone.
	Unmanaged []LimitsChange `json:"unmanaged"`
	// Kept are entities that the file no longer has, and that stay nevertheless.
	Kept []LimitsNote `json:"kept,omitempty"`
	// Lost are settings that a limits file cannot say, in places that would be written again.
	Lost []LimitsNote `json:"lost,omitempty"`
	// Foreign are the other settings of the store that a limits file cannot say. They stay.
	Foreign []LimitsNote `json:"foreign,omitempty"`
	// Refusals are the reasons why an apply would be refused.
	Refusals []LimitsRefusal `json:"refusals,omitempty"`
	// Record is true if only the record of what the file manages changes.
	Record bool `json:"record,omitempty"`
	// Applied and Failed count the changes that an apply has made, and that have failed.
	Applied int `json:"applied,omitempty"`
	Failed  int `json:"failed,omitempty"`
	// Behind says whose buckets in use do not have the changed limits yet, because the store could
	// not write them; nil if all have. An apply of the same file goes on with them.
	Behind *LimitsBehind `json:"behind,omitempty"`
	// Note is the server's note about the change, such as how long it holds.
	Note string `json:"note,omitempty"`
}

// Nothing reports whether an apply has nothing to do.
func (p *LimitsPlan) Nothing() bool { return len(p.Changes) == 0 && !p.Record }

// LimitsChange is one difference.
type LimitsChange struct {
	// Action is create, update or delete.
	Action string `json:"action"`
	// Path is the place, as a limits file names it: "resources.gpt-4o.limits.rpm".
	Path string `json:"path"`
	// Level is the level of the place.
	Level weir.Level `json:"level"`
	// Entity and Resource are the place; empty if the level has none. Limit or Attribute says
	// what changes there; both are empty if an entity itself is created or deleted.
	Entity    string `json:"entity,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Limit     string `json:"limit,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Was and Is are the values; a limit has the form of the command line. One is empty if there
	// was or will be none.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
	// Live are the entities that have units in use and that the change reaches; nil if that is not
	// known.
	Live *LiveEntities `json:"live,omitempty"`
	// Error says why the change has failed; empty if it has not.
	Error string `json:"error,omitempty"`
}

// LiveEntities are entities with state in the store.
type LiveEntities struct {
	// Count is their number, and Names are the first of them, in order.
	Count int      `json:"count"`
	Names []string `json:"names"`
}

// LimitsBehind are entities whose buckets in use do not have the limits in force. Programs with the
// Python library go by the buckets.
type LimitsBehind struct {
	// Count is the number of the entities, and Names are the first of them, in order. Count is 0 if
	// the number is not known, because the buckets could not be listed.
	Count int      `json:"count"`
	Names []string `json:"names"`
	// Reason is the first error of the store.
	Reason string `json:"reason"`
}

// LimitsNote is a place and what there is to say about it.
type LimitsNote struct {
	// Path is the place, as a limits file names it.
	Path string `json:"path"`
	// Attribute is a setting of the store; empty if the note is about the place.
	Attribute string `json:"attribute,omitempty"`
	// Reason is the end of a sentence that begins with the path.
	Reason string `json:"reason"`
}

// LimitsRefusal is a reason why an apply is refused.
type LimitsRefusal struct {
	// Reason says what is wrong, and what to do.
	Reason string `json:"reason"`
	// Allowed is the field of [LimitsFile] that allows the apply; empty if none does.
	Allowed string `json:"allowed_by,omitempty"`
	// By and Since say who applies a file at the moment; zero for other reasons.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// LimitsExport is a configuration as a limits file.
type LimitsExport struct {
	// Text is the file.
	Text string `json:"text"`
	// Foreign are the settings that the file leaves out, because the format cannot say them.
	Foreign []LimitsNote `json:"foreign"`
}
