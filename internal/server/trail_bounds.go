package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// The most lines about refusals of one kind in a minute: of one address or bearer token, and of all
// together. After a minute there are at most mostNamed lines and another one with the numbers of
// those that were left out.
const (
	refusalsOfOne = 5
	refusalsOfAll = 30
	// changesOfOne and changesOfAll are for changes that were not made. They are many, because only
	// administrators ask for changes.
	changesOfOne = 60
	changesOfAll = 120
	mostNamed    = 5
	// mostCounted bounds the addresses and bearer tokens that are counted one by one, for each kind.
	mostCounted = 1000
)

// refusalCount counts the refusals of one kind after the last flush. Its memory is bounded, however
// many addresses there are.
type refusalCount struct {
	kind         httphandler.RefusalKind
	ofOne, ofAll int64

	mu     sync.Mutex
	logged int64
	by     map[string]*refusedAsker
	// uncounted are the refusals of addresses beyond the first mostCounted.
	uncounted int64
}

// refusedAsker counts the refusals of one address or bearer token.
type refusedAsker struct {
	key     string
	named   bool // key is the name of a bearer token
	times   int64
	leftOut int64
}

// allow counts a refusal and reports whether to log it.
func (c *refusalCount) allow(key string, named bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.by[key]
	if of == nil {
		if len(c.by) >= mostCounted {
			c.uncounted++
			return false
		}
		if c.by == nil {
			c.by = make(map[string]*refusedAsker)
		}
		of = &refusedAsker{key: strings.Clone(key), named: named}
		c.by[of.key] = of
	}
	of.times++
	if of.times > c.ofOne || c.logged >= c.ofAll {
		of.leftOut++
		return false
	}
	c.logged++
	return true
}

// flush logs how many refusals were left out, and begins to count again.
func (c *refusalCount) flush(ctx context.Context, logger *slog.Logger) {
	c.mu.Lock()
	by, uncounted := c.by, c.uncounted
	c.by, c.uncounted, c.logged = nil, 0, 0
	c.mu.Unlock()
	var most []*refusedAsker
	for _, of := range by {
		if of.leftOut > 0 {
			most = append(most, of)
		}
	}
	slices.SortFunc(most, func(a, b *refusedAsker) int {
		return cmp.Or(cmp.Compare(b.leftOut, a.leftOut), cmp.Compare(a.key, b.key))
	})
	for _, of := range most[:min(len(most), mostNamed)] {
		key := "from"
		if of.named {
			key = "caller"
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "refusals left out", slog.String("kind", string(c.kind)),
			slog.String(key, of.key), slog.Int64("left_out", of.leftOut))
	}
	others := most[min(len(most), mostNamed):]
	if len(others) == 0 && uncounted == 0 {
		return
	}
	left := uncounted
	for _, of := range others {
		left += of.leftOut
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "refusals left out", slog.String("kind", string(c.kind)),
		slog.String("from", "others"), slog.Int("others", len(others)),
		slog.Bool("more", uncounted > 0),
		slog.Int64("left_out", left))
}

// shown returns a text of a caller as a log can have it: printable ASCII without spaces, quotes and
// '=', so that neither the text nor a part of it looks like a field, in text and in JSON. All else is
// escaped as in Go. The result has at most about most bytes; a longer text is cut, and its number of
// bytes added.
func shown(text string, most int) string { return escaped(text, most, false) }

// shownText is like shown for a text of several words, such as a reason that may quote a caller. It
// leaves spaces, and single quotes for double ones, but no '=', without which nothing looks like a
// field.
func shownText(text string, most int) string { return escaped(text, most, true) }

// mostList and mostListed bound a list of names in one line, and each name in it, in bytes.
const (
	mostList   = 512
	mostListed = 192
)

// shownList returns a list of names as [shown] has each, with commas between them. A comma in a name
// is escaped too, so that no name looks like two. A long list ends with how many names were left out.
func shownList(names []string) string {
	var out strings.Builder
	for i, name := range names {
		name = strings.ReplaceAll(shown(name, mostListed), ",", `\x2c`)
		if i > 0 && out.Len()+len(name) > mostList {
			return out.String() + ",...(" + strconv.Itoa(len(names)-i) + "_more)"
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(name)
	}
	return out.String()
}

func escaped(text string, most int, spaces bool) string {
	at := 0
	for at < len(text) && at < most && isShown(text[at], spaces) {
		at++
	}
	if at == len(text) {
		return text // as nearly always
	}
	out := append(make([]byte, 0, most+32), text[:at]...)
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if len(out) >= most {
			return string(out) + "...(" + strconv.Itoa(len(text)) + "_bytes)"
		}
		switch {
		case size == 1 && isShown(text[at], spaces):
			out = append(out, text[at])
		case text[at] == '"' && spaces:
			out = append(out, '\'')
		case size == 1:
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[text[at]>>4], digits[text[at]&15])
		default:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		at += size
	}
	return string(out)
}

// isShown reports whether a byte needs no escape.
func isShown(b byte, spaces bool) bool {
	switch b {
	case '"', '=', '\\':
		return false
	case ' ':
		return spaces
	}
	return ' ' < b && b <= '~'
}
