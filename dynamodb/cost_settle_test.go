package dynamodb

import (
	"github.com/weir-limiter/weir"
)

// settleCosts returns the rows of updates of a lease.
func settleCosts() []costRow {
	row := func(what, python, calls string, settle func(p *costProcess, l *weir.Lease) error) costRow {
		var lease *weir.Lease
		var full, lean costUnits
		if calls != "none" {
			full.write, lean.write = 2000, 1000
		}
		return costRow{
			full: full, lean: lean,
			what: what, python: python, before: calls,
			prepare: func(s *costWorld) *costProcess {
				p := warmFlat(s)
				lease = p.take("solo", one())
				return p
			},
			do: func(_ *costWorld, p *costProcess) {
				if err := settle(p, lease); err != nil {
					p.t.Fatal(err)
				}
			},
		}
	}
	adjust := func(tokens int64) func(p *costProcess, l *weir.Lease) error {
		return func(p *costProcess, l *weir.Lease) error {
			_, err := l.Adjust(p.t.Context(), weir.Costs{"tpm": tokens})
			return err
		}
	}
	complete := func(tokens int64) func(p *costProcess, l *weir.Lease) error {
		return func(p *costProcess, l *weir.Lease) error {
			_, err := l.Complete(p.t.Context(), weir.Costs{"tpm": tokens})
			return err
		}
	}
	const update = "1 UpdateItem"
	return []costRow{
		row("adjust to the same", "none", "none", adjust(100)),
		row("adjust to more", "1 UpdateItem; 2", update, adjust(150)),
		row("adjust to less", "1 UpdateItem; 2", update, adjust(50)),
		row("complete with the same", "", "none", complete(100)),
		row("complete with more", "", update, complete(150)),
		row("complete with less", "", update, complete(50)),
		row("cancel", "1 UpdateItem; 2", update, func(p *costProcess, l *weir.Lease) error {
			_, err := l.Cancel(p.t.Context())
			return err
		}),
		row("extend", "", "none", func(p *costProcess, l *weir.Lease) error {
			_, err := l.Extend(p.t.Context())
			return err
		}),
	}
}
