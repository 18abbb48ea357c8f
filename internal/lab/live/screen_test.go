package live

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/text"
)

// pictured returns a state with everything that can be shown.
func pictured() *replay.State {
	row := func(entity, limit string, kind weir.Kind, figures ...int64) replay.StateRow {
		return replay.StateRow{
			LimitReport: &replay.LimitReport{
				Entity: entity, Limit: limit, Kind: kind, Admitted: figures[0], Denied: figures[1],
			},
			InUse: big.NewInt(figures[2]), Capacity: big.NewInt(figures[3]),
		}
	}
	s := &replay.State{
		Done: 4600, Total: 8819, PerSecond: 315, Admitted: 3700, Denied: 899, Errors: 1, Late: 2,
		Left: 13400 * time.Millisecond,
		Rows: []replay.StateRow{
			row("tenant-1", "rpm", weir.Bucket, 1200, 0, 45, 90),
			row("tenant-1", "tpm", weir.Bucket, 1200, 0, -5, 240000),
			row("acme", "tpm", weir.Bucket, 3700, 899, 700000, 600000),
			row("acme", "parallel", weir.Concurrency, 3700, 12, 32, 32),
			row("acme", "usd_micros", weir.Budget, 3700, 5, 999, 1000),
		},
	}
	s.Rows[2].Denies, s.Rows[4].Denies, s.Rows[4].Shadow = true, true, true
	return s
}

// pictures has the expected screens, from wide to narrow and from high to low.
var pictures = []struct {
	columns, rows int
	blocks        bool
	want          string
}{
	{100, 24, true, `
 52 %  ██████████░░░░░░░░░░  4,600 of 8,819 calls  315/s  14s left
3,700 admitted, 899 denied, 1 error, 2 sent late

ENTITY    LIMIT         KIND         ADMITTED  DENIED  USED NOW       OF
tenant-1  rpm           bucket          1,200       0        45       90  █████░░░░░
tenant-1  tpm           bucket          1,200       0        -5  240,000  ░░░░░░░░░░
acme      tpm           bucket          3,700     899   700,000  600,000  ██████████
acme      parallel      concurrency     3,700      12        32       32  ██████████
acme      usd_micros *  budget          3,700       5       999    1,000  █████████░
`},
	{80, 24, false, `
 52 %  ##########----------  4,600 of 8,819 calls  315/s  14s left
3,700 admitted, 899 denied, 1 error, 2 sent late

ENTITY    LIMIT         KIND         ADMITTED  DENIED  USED NOW       OF
tenant-1  rpm           bucket          1,200       0        45       90
tenant-1  tpm           bucket          1,200       0        -5  240,000
acme      tpm           bucket          3,700     899   700,000  600,000
acme      parallel      concurrency     3,700      12        32       32
acme      usd_micros *  budget          3,700       5       999    1,000
`},
	{60, 9, true, `
 52 %  4,600 of 8,819 calls  315/s  14s left
3,700 admitted, 899 denied, 1 error, 2 sent late

ENTITY    LIMIT  KIND    ADMITTED  DENIED  USED NOW       OF
tenant-1  rpm    bucket     1,200       0        45       90
tenant-1  tpm    bucket     1,200       0        -5  240,000
acme      tpm    bucket     3,700     899   700,000  600,000
and 2 limits more
`},
	{60, 24, true, `
 52 %  4,600 of 8,819 calls  315/s  14s left
3,700 admitted, 899 denied, 1 error, 2 sent late

ENTITY    LIMIT         ADMITTED  DENIED  USED NOW       OF
tenant-1  rpm              1,200       0        45       90
tenant-1  tpm              1,200       0        -5  240,000
acme      tpm              3,700     899   700,000  600,000
acme      parallel         3,700      12        32       32
acme      usd_micros *     3,700       5       999    1,000
`},
	{40, 24, true, `
 52 %  4,600 of 8,819 calls  315/s  14s
3,700 admitted, 899 denied, 1 error, 2 s

ENTITY    LIMIT         DENIED  USED NOW
tenant-1  rpm                0        45
tenant-1  tpm                0        -5
acme      tpm              899   700,000
acme      parallel          12        32
acme      usd_micros *       5       999
`},
	{80, 4, true, `
 52 %  ██████████░░░░░░░░░░  4,600 of 8,819 calls  315/s  14s left
3,700 admitted, 899 denied, 1 error, 2 sent late
`},
	{80, 2, true, `
 52 %  ██████████░░░░░░░░░░  4,600 of 8,819 calls  315/s  14s left
`},
	{80, 1, true, "\n"},
}

// TestPicture checks that columns and rows for which there is no room are left out, the least
// important first.
func TestPicture(t *testing.T) {
	t.Parallel()
	for _, c := range pictures {
		lines := render(console.Style{Blocks: c.blocks}, pictured(), c.columns, c.rows)
		var shown []string
		for _, l := range lines {
			shown = append(shown, strings.TrimRight(text.Cut(l.text, c.columns), " ")+"\n")
		}
		if got := "\n" + strings.Join(shown, ""); got != c.want {
			t.Errorf("%d columns, %d rows: got%s\nwant%s", c.columns, c.rows, got, c.want)
		}
		if len(lines) >= c.rows {
			t.Errorf("%d rows: got %d lines, want one less at most", c.rows, len(lines))
		}
	}
}

// TestPictureOfLongNames checks that a long name does not push the figures off the screen.
func TestPictureOfLongNames(t *testing.T) {
	t.Parallel()
	s := pictured()
	s.Rows[0].Entity = strings.Repeat("é漢", 128)
	for _, l := range render((console.Style{}), s, 100, 24) {
		if n := text.Width(l.text); n > 100 {
			t.Errorf("got %d cells: %s", n, l.text)
		}
	}
	s.Rows = nil
	got := render((console.Style{}), s, 100, 24)
	if len(got) != 4 || !strings.HasPrefix(got[3].text, "ENTITY") {
		t.Errorf("got %v, want the heads alone", got)
	}
}

// TestScreen checks that a picture replaces the one before, that a note stays above it, and that
// the last picture is erased.
func TestScreen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &liveScreen{to: &out, size: func() (int, int) { return 20, 3 }}
	state := &replay.State{Total: 10}
	said := func(want string) {
		t.Helper()
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		out.Reset()
	}
	const first = "  0 %  0 of 10 calls\x1b[K\r\n0 admitted, 0 denied\x1b[K\r\n"
	s.end()
	said("")
	s.show(state)
	said("\x1b[?7l" + first + "\x1b[J\x1b[?7h")
	s.show(state)
	said("\x1b[?7l\x1b[2A\r" + first + "\x1b[J\x1b[?7h")
	s.note("hello")
	said("\x1b[2A\r\x1b[Jhello\r\n")
	s.show(state)
	said("\x1b[?7l" + first + "\x1b[J\x1b[?7h")
	s.end()
	said("\x1b[2A\r\x1b[J")
	s.end()
	said("")
}

// TestScreenColors checks that heads are bold, and that limits that have just denied are red, but
// only if colours are on.
func TestScreenColors(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{true, false} {
		var out bytes.Buffer
		s := &liveScreen{to: &out, size: func() (int, int) { return 100, 24 }, style: console.Style{Color: color}}
		s.show(pictured())
		var styled []string
		for line := range strings.Lines(out.String()) {
			if text, found := strings.CutSuffix(line, console.AnsiPlain+console.AnsiEndLine+"\r\n"); found {
				styled = append(styled, text[:12])
			}
		}
		want := []string{"\x1b[1mENTITY  ", "\x1b[31macme   "}
		if !color {
			want = nil
		}
		if !slices.Equal(styled, want) {
			t.Errorf("colors %v: got %q, want %q", color, styled, want)
		}
	}
}

// TestLines checks the output for a pipe.
func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &Lines{To: &out}
	l.show(pictured())
	l.show(&replay.State{Total: 3})
	l.end()
	want := " 52 %  4,600 of 8,819 calls: 3,700 admitted, 899 denied " +
		"(acme tpm 899, acme parallel 12), 1 error\n" +
		"  0 %  0 of 3 calls: 0 admitted, 0 denied\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
