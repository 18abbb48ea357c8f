package manifest

import (
	"strconv"
	"strings"
)

// nodeKind is the kind of a value in the file.
type nodeKind int

const (
	// nullNode has no value: there is nothing after the colon, or "~" or "null".
	nullNode nodeKind = iota
	// scalarNode is a text, a number, true or false.
	scalarNode
	// mappingNode has entries.
	mappingNode
	// listNode is a list, and aliasNode refers to another value. A limits file has neither.
	listNode
	aliasNode
)

// node is a value in the file.
type node struct {
	at      position
	kind    nodeKind
	text    string // of a scalar, without quotes
	quoted  bool
	entries []entry // of a mapping
}

// entry is a name and its value in a mapping.
type entry struct {
	at    position // of the name
	name  string
	value node
}

// source returns the value as it is shown in a message.
func (n *node) source() string {
	if n.kind == scalarNode {
		return n.text
	}
	return ""
}

// kindName returns the kind of the value, for messages such as "must be …, not …".
func (n *node) kindName() string {
	switch {
	case n.kind == nullNode:
		return "nothing"
	case n.kind == mappingNode:
		return "a mapping"
	case n.kind == listNode:
		return "a list"
	case n.kind == aliasNode:
		return "an alias, which is not allowed in a limits file"
	case n.quoted:
		return "text in quotes"
	default:
		return "text"
	}
}

// integer parses a decimal number. The reason says what is wrong, as the end of "must be …"; it is
// empty if nothing is. Underscores between digits are allowed, as in YAML 1.1. Other bases are
// refused, because programs disagree about them: to some, 010 is eight.
func (n *node) integer() (value int64, reason string) {
	if n.kind != scalarNode || n.quoted {
		return 0, "not " + n.kindName()
	}
	digits, negative := strings.CutPrefix(n.text, "-")
	plain := strings.ReplaceAll(digits, "_", "")
	wrong := strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") ||
		strings.Contains(digits, "__") || plain == "" || len(plain) > 1 && plain[0] == '0'
	for i := range len(plain) {
		wrong = wrong || plain[i] < '0' || plain[i] > '9'
	}
	if wrong {
		return 0, "in decimal digits"
	}
	if negative {
		plain = "-" + plain
	}
	value, err := strconv.ParseInt(plain, 10, 64)
	if err != nil {
		return 0, "within 64 bits"
	}
	return value, ""
}

// boolean parses true or false. YAML 1.1's yes, no, on and off are refused, because to some
// programs they are text.
func (n *node) boolean() (value, ok bool) {
	if n.kind != scalarNode || n.quoted {
		return false, false
	}
	switch n.text {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// isNull reports whether an unquoted scalar means that there is no value.
func isNull(text string) bool {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}
