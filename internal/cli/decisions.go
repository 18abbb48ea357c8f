package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-limiter/weir"
)

// decisionFormat is the version of the decision log, whose first line carries it.
const decisionFormat = 1

// decisionLog writes every decision of a replay as a line of JSON. The file gets its name when it is
// complete; until then it has another in the same folder.
type decisionLog struct {
	name string
	file *os.File
	out  *bufio.Writer
	json *json.Encoder
}

func createDecisionLog(name string) (*decisionLog, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, named(name, err)
	}
	d := &decisionLog{name: name, file: file, out: bufio.NewWriterSize(file, 64<<10)}
	d.json = json.NewEncoder(d.out)
	d.json.SetEscapeHTML(false)
	return d, nil
}

// named says what went wrong with the log by the name that it was to have: until it is complete it has
// another one, which is nobody's business.
func named(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("--decisions %s: %w", name, err)
}

// abandon removes an unfinished log. After finish it does nothing.
func (d *decisionLog) abandon() {
	if d == nil || d.file == nil {
		return
	}
	_ = d.file.Close() // nothing in it is wanted any more
	_ = os.Remove(d.file.Name())
	d.file = nil
}

// finish writes the last line and gives the file its name.
func (d *decisionLog) finish(atMS int64) error {
	err := d.line(endLine{"end", atMS})
	err = errors.Join(err, d.out.Flush())
	err = errors.Join(err, d.file.Close())
	if err == nil {
		err = os.Rename(d.file.Name(), d.name)
	}
	if err != nil {
		_ = os.Remove(d.file.Name())
		err = named(d.name, err)
	}
	d.file = nil
	return err
}

func (d *decisionLog) line(v any) error { return d.json.Encode(v) }

// begin writes what is known before the first call: the run, and who is limited how.
func (d *decisionLog) begin(r runLine, subjects []*subject) error {
	r.Kind, r.Format = "run", decisionFormat
	if err := d.line(r); err != nil {
		return err
	}
	for _, s := range subjects {
		l := subjectLine{
			Kind: "subject", Entity: s.entity, Resource: s.resource, Parent: s.parent,
			Limits: []limitLine{},
		}
		for i := range s.limits {
			l.Limits = append(l.Limits, newLimitLine(&s.limits[i]))
		}
		if err := d.line(l); err != nil {
			return err
		}
	}
	return nil
}

func (d *decisionLog) reserved(a *attempt, v *verdict) error {
	l := reserveLine{
		Kind: "reserve", AtMS: a.call.atMS, Lease: a.lease,
		Charges: []chargeLine{{a.entity, a.resource, a.costs}},
	}
	switch {
	case v.fault != nil:
		l.Error = string(v.fault.Code)
	case v.denied != nil:
		l.Allowed = new(false)
		l.RetryAfterMS = new(v.denied.RetryAfter.Milliseconds())
	default:
		l.Allowed = new(true)
	}
	for i := range v.limits {
		s := &v.limits[i]
		l.Limits = append(l.Limits, statusLine{
			Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: string(s.Kind),
			Capacity: s.Capacity, Available: s.Available, Requested: s.Requested,
			Exceeded: s.Exceeded, Shadow: s.Shadow, RetryAfterMS: s.RetryAfter.Milliseconds(),
		})
	}
	return d.line(l)
}

func (d *decisionLog) completed(a *attempt) error {
	return d.line(completeLine{"complete", a.endMS, a.lease, []weir.Costs{a.actuals}})
}
