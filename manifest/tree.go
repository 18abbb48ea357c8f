package manifest

import (
	"fmt"

	"github.com/goccy/go-yaml/token"

	"github.com/weir-limiter/weir/internal/clip"
)

// maxDepth bounds how deep mappings are nested. The format needs seven levels.
const maxDepth = 16

// treeParser builds the tree of a file: mappings, in block or flow style, of scalars. It records
// anchors, tags and merge keys as mistakes and goes on. It skips lists and aliases, which the
// decoder then refuses. It stops at what is not YAML.
type treeParser struct {
	tokens  []*token.Token
	next    int
	depth   int
	found   *mistakes
	stopped bool
}

// parseTree returns the tree of a file, and whether it is complete: it is not if the rest of the
// text could not be parsed.
func parseTree(text string, found *mistakes) (root *node, whole bool) {
	tokens, whole := scan(text, found)
	if !whole {
		return nil, false
	}
	p := &treeParser{tokens: tokens, found: found}
	n := p.document()
	return &n, !p.stopped
}

// document parses the document of a file, and refuses a second one.
func (p *treeParser) document() node {
	for t := p.peek(); t != nil && t.Type == token.DirectiveType; t = p.peek() {
		p.unsupported(t, "directives")
		for line := t.Position.Line; p.peek() != nil && p.peek().Position.Line == line; {
			p.next++
		}
	}
	of := valueOwner{at: position{1, 1}}
	if t := p.peek(); t != nil && t.Type == token.DocumentHeaderType {
		of.line = t.Position.Line
		p.next++
	}
	root := p.value(of)
	marked := false
	for t := p.peek(); t != nil; t = p.peek() {
		switch {
		case t.Type == token.DocumentEndType:
			marked = true
			p.next++
		case marked, t.Type == token.DocumentHeaderType:
			p.stop(t, "a limits file has one document, and a second one begins here")
		default:
			p.misplaced(t)
		}
	}
	return root
}

// valueOwner is the owner of a value: an entry of a mapping, or the file.
type valueOwner struct {
	at     position
	line   int // of the entry's colon, or of the mark at which the document begins
	column int // of the entry's mapping
	flow   bool
}

// value parses the value after a colon, or the whole document.
func (p *treeParser) value(of valueOwner) node {
	for {
		t := p.peek()
		if t == nil || isMark(t) || !of.contains(t) {
			return node{at: of.at, kind: nullNode}
		}
		switch t.Type {
		case token.AnchorType:
			p.unsupported(t, "anchors")
			p.next = min(p.next+2, len(p.tokens)) // the '&' and the name
			continue
		case token.TagType:
			p.unsupported(t, "tags")
			p.next++
			continue
		}
		return p.plainValue(t, of)
	}
}

// contains reports whether a token can belong to the value. In block style it is on the line of the
// colon or indented more than the entry; a list may also be at the column of the entry.
func (of valueOwner) contains(t *token.Token) bool {
	if of.flow {
		return t.Type != token.CollectEntryType && t.Type != token.MappingEndType
	}
	return t.Position.Line == of.line || t.Position.Column > of.column ||
		t.Type == token.SequenceEntryType && t.Position.Column == of.column
}

// plainValue parses a value after its anchors and tags.
func (p *treeParser) plainValue(t *token.Token, of valueOwner) node {
	n := node{at: tokenPosition(t)}
	switch t.Type {
	case token.AliasType:
		n.kind = aliasNode
		p.next = min(p.next+2, len(p.tokens)) // the '*' and the name
	case token.SequenceEntryType:
		n.kind = listNode
		if of.flow {
			p.notAName(t)
		} else {
			p.skipBlockList(t, of)
		}
	case token.SequenceStartType:
		n.kind = listNode
		p.skipFlowList(t)
	case token.MappingStartType:
		return p.flowMapping(t)
	case token.LiteralType, token.FoldedType:
		n.kind, n.quoted = scalarNode, true
		p.next++
		if body := p.peek(); body != nil && body.Type == token.StringType {
			n.text = body.Value
			p.next++
		}
	default:
		if isScalar(t) {
			return p.scalarOrBlock(t, of)
		}
		p.misplaced(t)
	}
	return n
}

// scalarOrBlock parses a scalar, or the block mapping of which it is the first name.
func (p *treeParser) scalarOrBlock(t *token.Token, of valueOwner) node {
	if colon := p.colonAfter(p.next); colon != nil && !of.flow {
		if colon.Position.Line == of.line || colon.Position.Line != t.Position.Line {
			p.stop(colon, "the file is not YAML: a ':' is not allowed here; "+
				"begin a new line, correct the indentation, or quote the text")
			return node{at: tokenPosition(t)}
		}
		return p.blockMapping(t)
	}
	p.next++
	n := node{at: tokenPosition(t), kind: scalarNode, text: t.Value, quoted: isQuoted(t)}
	if !n.quoted && isNull(n.text) {
		n.kind = nullNode
	}
	return n
}

// colonAfter returns the colon after a token, or nil.
func (p *treeParser) colonAfter(i int) *token.Token {
	if i+1 < len(p.tokens) && p.tokens[i+1].Type == token.MappingValueType {
		return p.tokens[i+1]
	}
	return nil
}

func (p *treeParser) peek() *token.Token {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return nil
}

// unsupported records a part of YAML that a limits file does not have.
func (p *treeParser) unsupported(t *token.Token, what string) {
	p.found.add(tokenPosition(t), "", "", what+" are not allowed in a limits file")
}

// misplaced stops at a token that is not allowed in its position.
func (p *treeParser) misplaced(t *token.Token) {
	if p.next > 0 && p.tokens[p.next-1].Position.Line == t.Position.Line {
		p.stop(t, fmt.Sprintf("the file is not YAML: %q is not allowed here", clip.Text(t.Value)))
		return
	}
	p.stop(t, fmt.Sprintf(
		"the file is not YAML: the indentation of %q matches no line above it", clip.Text(t.Value)))
}

// stop records a mistake after which nothing can be parsed.
func (p *treeParser) stop(t *token.Token, reason string) {
	if !p.stopped {
		p.found.add(tokenPosition(t), "", "", reason)
	}
	p.stopped = true
	p.next = len(p.tokens)
}
