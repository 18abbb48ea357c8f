package manifest

import (
	"fmt"

	"github.com/goccy/go-yaml/token"

	"github.com/weir-limiter/weir/internal/clip"
)

// blockMapping parses a mapping in block style: the entries that begin at the column of the first.
func (p *treeParser) blockMapping(first *token.Token) node {
	m := node{at: tokenPosition(first), kind: mappingNode}
	column := first.Position.Column
	if !p.push(first) {
		return m
	}
	defer p.pop()
	for {
		t := p.peek()
		if t == nil || isMark(t) || t.Position.Column < column {
			return m
		}
		fresh := t == first || p.tokens[p.next-1].Position.Line < t.Position.Line
		if t.Position.Column > column || !fresh {
			p.misplaced(t)
			return m
		}
		colon := p.colonAfter(p.next)
		if !isScalar(t) || colon == nil || colon.Position.Line != t.Position.Line {
			p.notAName(t)
			return m
		}
		p.next += 2
		p.entry(&m, t, valueOwner{at: tokenPosition(t), line: colon.Position.Line, column: column})
	}
}

// flowMapping parses a mapping in braces.
func (p *treeParser) flowMapping(open *token.Token) node {
	m := node{at: tokenPosition(open), kind: mappingNode}
	p.next++
	if !p.push(open) {
		return m
	}
	defer p.pop()
	for {
		t := p.peek()
		switch {
		case t == nil || isMark(t):
			p.stop(open, "the file is not YAML: this '{' is never closed")
			return m
		case t.Type == token.MappingEndType:
			p.next++
			return m
		case !isScalar(t):
			p.notAName(t)
			return m
		}
		of := valueOwner{at: tokenPosition(t), flow: true}
		if colon := p.colonAfter(p.next); colon == nil {
			p.next++
			m.entries = append(m.entries, entry{at: of.at, name: t.Value, value: node{at: of.at}})
		} else {
			if p.badColon(t, colon) {
				return m
			}
			p.next += 2
			p.entry(&m, t, of)
		}
		if t = p.peek(); t == nil {
			continue
		}
		if t.Type == token.CollectEntryType {
			p.next++
		} else if t.Type != token.MappingEndType {
			p.stop(t, fmt.Sprintf("the file is not YAML: ',' or '}' is missing before %q",
				clip.Text(t.Value)))
			return m
		}
	}
}

// badColon stops at a colon within braces that the scanner takes for the end of a name, but YAML
// does not: without a space after the colon the whole is one text, and a colon on another line
// belongs to no name.
func (p *treeParser) badColon(name, colon *token.Token) bool {
	if name.Position.Line != colon.Position.Line {
		p.stop(colon, "the file is not YAML: a ':' must be on the line of its name")
		return true
	}
	if p.next+2 >= len(p.tokens) || isQuoted(name) {
		return false
	}
	after := p.tokens[p.next+2]
	switch after.Type {
	case token.CollectEntryType, token.MappingStartType, token.MappingEndType,
		token.SequenceStartType, token.SequenceEndType:
		return false
	}
	if after.Position.Line != colon.Position.Line ||
		after.Position.Column != colon.Position.Column+1 {
		return false
	}
	p.stop(colon, "within braces a ':' needs a space after it, or quotes around the text")
	return true
}

// entry parses the value of a name and adds both to a mapping.
func (p *treeParser) entry(m *node, name *token.Token, of valueOwner) {
	v := p.value(of)
	if !isQuoted(name) && name.Value == "<<" {
		p.unsupported(name, "merge keys")
		return
	}
	m.entries = append(m.entries, entry{at: of.at, name: name.Value, value: v})
}

// notAName stops at a token that is in the place of a name and a colon.
func (p *treeParser) notAName(t *token.Token) {
	switch t.Type {
	case token.SequenceEntryType, token.SequenceStartType:
		p.stop(t, "lists are not allowed in a limits file")
	case token.AnchorType:
		p.stop(t, "anchors are not allowed in a limits file")
	case token.AliasType:
		p.stop(t, "aliases are not allowed in a limits file")
	case token.TagType:
		p.stop(t, "tags are not allowed in a limits file")
	case token.MappingKeyType:
		p.stop(t, "names that begin with '?' are not allowed in a limits file")
	default:
		p.stop(t, fmt.Sprintf("the file is not YAML: a name followed by ': ' must be here, not %q",
			clip.Text(t.Value)))
	}
}

// push enters a nested mapping, or stops if it is too deep.
func (p *treeParser) push(t *token.Token) bool {
	if p.depth == maxDepth {
		p.stop(t, fmt.Sprintf("mappings are nested deeper than %d levels", maxDepth))
		return false
	}
	p.depth++
	return true
}

func (p *treeParser) pop() { p.depth-- }

// skipBlockList skips a list in block style: everything that is indented more than its owner, and
// its dashes.
func (p *treeParser) skipBlockList(dash *token.Token, of valueOwner) {
	for t := p.peek(); t != nil && !isMark(t); t = p.peek() {
		inside := t.Position.Line == dash.Position.Line || t.Position.Column > of.column ||
			t.Type == token.SequenceEntryType && t.Position.Column == of.column
		if !inside {
			return
		}
		p.next++
	}
}

// skipFlowList skips a list in brackets with everything nested in it.
func (p *treeParser) skipFlowList(open *token.Token) {
	depth := 0
	for t := p.peek(); t != nil && !isMark(t); t = p.peek() {
		p.next++
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if depth == 0 {
			return
		}
	}
	p.stop(open, "the file is not YAML: this '[' is never closed")
}
