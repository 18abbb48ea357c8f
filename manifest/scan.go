package manifest

import (
	"io"
	"strings"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"

	"github.com/weir-limiter/weir/internal/clip"
)

// scan splits the text into tokens, without comments. It records a mistake and stops at the first
// part that is not YAML.
//
// Every position comes from the tokens of the YAML library's scanner. The library's parser is not
// used, because it recurses once for each level and copies the rest of the tokens again and again.
// On 20,000 lines "a:" it takes three seconds, and this package 25 ms. On a file of 4 MiB that
// begins with "{a: {a: " it uses up the memory of the machine, from which a program cannot recover.
// It also stops at the first mistake. A limits file needs only mappings and scalars anyway. FuzzTree
// checks that the parser reads the same as this package.
func scan(text string, found *mistakes) (tokens []*token.Token, whole bool) {
	var s scanner.Scanner
	s.Init(text)
	for {
		batch, err := s.Scan()
		if err == io.EOF {
			return tokens, true
		}
		for _, t := range batch {
			switch t.Type {
			case token.CommentType:
			case token.InvalidType:
				reason := strings.ReplaceAll(clip.To(t.Error, 120), "\t", `\t`)
				found.add(tokenPosition(t), "", "", "the file is not YAML: "+reason)
				return nil, false
			default:
				if hasTab(t) {
					found.add(tokenPosition(t), "", "", "a tab is not allowed in quotes: write \\t")
					return nil, false
				}
				tokens = append(tokens, t)
			}
		}
		if err != nil {
			found.add(position{1, 1}, "", "", "the file is not YAML: "+clip.To(err.Error(), 120))
			return nil, false
		}
	}
}

// tokenPosition returns the position of a token. The scanner counts from 1, but returns 0 for some
// tokens on an empty line.
func tokenPosition(t *token.Token) position {
	return position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// hasTab reports whether there is a tab in double quotes. A limits file needs none, and after one
// the scanner reports wrong lines.
func hasTab(t *token.Token) bool {
	return t.Type == token.DoubleQuoteType && strings.Contains(strings.TrimSpace(t.Origin), "\t")
}

// isScalar reports whether a token is a value without structure, which may also be a name.
func isScalar(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.NullType,
		token.ImplicitNullType, token.BoolType, token.IntegerType, token.BinaryIntegerType,
		token.OctetIntegerType, token.HexIntegerType, token.FloatType, token.InfinityType,
		token.NanType, token.MergeKeyType:
		return true
	}
	return false
}

func isQuoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// isMark reports whether a token begins or ends a document.
func isMark(t *token.Token) bool {
	return t.Type == token.DocumentHeaderType || t.Type == token.DocumentEndType
}
