package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFileBytes bounds the size of a limits file.
const maxFileBytes = 4 << 20

// byteOrderMark may begin a file. Anywhere else it is a mistake.
const byteOrderMark = "\uFEFF"

// checkText returns the file as text with line feeds only, or records why it is not text. It
// records one mistake, because nothing after that can be trusted.
func checkText(data []byte, found *mistakes) string {
	if len(data) > maxFileBytes {
		found.add(position{1, 1}, "", "", fmt.Sprintf(
			"the file has %d bytes: at most %d", len(data), maxFileBytes))
		return ""
	}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	at := position{1, 1}
	for i, r := range text {
		switch {
		case r == '\n':
			at = position{at.line + 1, 1}
			continue
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			found.add(at, "", "", fmt.Sprintf("the file is not UTF-8: it has the byte 0x%02X", text[i]))
			return ""
		case r != '\t' && unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\uFEFF':
			found.add(at, "", "", fmt.Sprintf("the file has a control character, %U", r))
			return ""
		}
		at.column++
	}
	found.end = at
	return text + "\n" // without it the scanner loses a tag at the end of the file
}
