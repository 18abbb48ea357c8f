package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/text"
)

// watchPause is the time between two questions of a denialWatch.
const watchPause = time.Second

// denialWatch prints the denials of a server as they come.
type denialWatch struct {
	app   *console.App
	flags *activityFlags
	json  bool
	ask   func(context.Context) (*httpapi.ActivityReport, error)

	// last is the last report; nil before the first answer. silent is set while the server does not
	// answer.
	last   *httpapi.ActivityReport
	silent bool
}

// run asks the server again and again, until ctx ends, which is no error. The first answer must
// come; later the server may be gone for a while.
func (w *denialWatch) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		report, err := w.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if err := w.print(report); err != nil {
				return err
			}
		case w.last == nil || !errors.Is(err, weir.Unavailable) && !errors.Is(err, weir.Overloaded):
			return err
		case !w.silent:
			w.silent = true
			w.note("the server does not answer: trying again until it does")
		}
		timer.Reset(watchPause)
	}
}

// print prints the denials that the last report did not have. It prints none of the first report.
func (w *denialWatch) print(r *httpapi.ActivityReport) error {
	last := w.last
	w.last = r
	if w.silent {
		w.silent = false
		w.note("the server answers again")
	}
	if last == nil {
		return nil
	}
	if r.SinceMS != last.SinceMS {
		w.note("the server was started again, at " + formatTime(time.UnixMilli(r.SinceMS)))
		last = &httpapi.ActivityReport{}
	}
	seen := int64(0)
	if len(last.Denials) > 0 {
		seen = last.Denials[0].ID
	}
	fresh := slices.Clone(r.Denials)
	fresh = slices.DeleteFunc(fresh, func(d httpapi.ActivityDenial) bool { return d.ID <= seen })
	if unseen := r.Denied - last.Denied - int64(len(fresh)); unseen > 0 {
		w.note(text.FormatInt(unseen) + " more denials came than the server lists")
	}
	var b bytes.Buffer
	for i := len(fresh) - 1; i >= 0; i-- { // the newest comes first in a report
		if d := &fresh[i]; w.flags.wants(d) {
			if err := w.write(&b, d); err != nil {
				return fmt.Errorf("output: %w", err)
			}
		}
	}
	if _, err := w.app.Streams.Out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// write prints a denial on a line.
func (w *denialWatch) write(b *bytes.Buffer, d *httpapi.ActivityDenial) error {
	if w.json {
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		return e.Encode(d)
	}
	cells := denialCells(d)
	line := fmt.Sprintf("%s  %s  denied by %s  retry after %s", cells[0], cells[1], cells[2], cells[3])
	b.WriteString(text.Printable(line) + "\n")
	return nil
}

// note prints a sentence to standard error.
func (w *denialWatch) note(sentence string) {
	// A failure could not be reported elsewhere.
	_, _ = io.WriteString(w.app.Streams.Err, "weir: note: "+text.Printable(sentence)+"\n")
}
