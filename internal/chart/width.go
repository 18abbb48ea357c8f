package chart

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cells is how many cells of a terminal a text takes.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

// runeCells is near enough: marks take no cell, what East Asia writes and emoji take two.
func runeCells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303F, r >= 0xFF01 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6,
		r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
}

// printable escapes what would move the cursor, or, in plain ASCII, what that has not.
func printable(text string, ascii bool) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		broken := r == utf8.RuneError && n == 1
		if !broken && strconv.IsPrint(r) && (!ascii || r < utf8.RuneSelf) {
			b.WriteString(text[:n])
		} else {
			quoted := strconv.QuoteToASCII(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// shorten keeps the beginning of what takes more cells than there are.
func shorten(text string, most int, ascii bool) string {
	if cells(text) <= most {
		return text
	}
	end := "…"
	if ascii {
		end = "~"
	}
	room := most - 1
	for i, r := range text {
		if room -= runeCells(r); room < 0 {
			return text[:i] + end
		}
	}
	return text
}

// left fills a text up to a width, right puts it to the end of one.
func left(text string, width int) string  { return text + blank(width-cells(text)) }
func right(text string, width int) string { return blank(width-cells(text)) + text }

func blank(n int) string { return strings.Repeat(" ", max(n, 0)) }
