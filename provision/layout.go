package provision

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// layoutWidth is the longest line with more than one field or element. CloudFormation accepts 51,200
// bytes in a call, and a line for each element would take half of them for indentation.
const layoutWidth = 160

// laidOut returns a value as JSON for people: what fits into a line is one.
func laidOut(value any) ([]byte, error) {
	whole, err := compactJSON(value)
	if err != nil {
		return nil, err
	}
	var plain any // It has only the types of JSON.
	d := json.NewDecoder(bytes.NewReader(whole))
	d.UseNumber()
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	err = layOut(out, plain, "", 0)
	out.WriteByte('\n')
	return out.Bytes(), err
}

// layOut writes a value; before is the length of what is before it on its line.
func layOut(out *bytes.Buffer, value any, indent string, before int) error {
	line, err := compactJSON(value)
	if err != nil {
		return err
	}
	fits := len(indent)+before+len(line) <= layoutWidth
	inner := indent + " "
	switch v := value.(type) {
	case object:
		if fits || len(v) == 0 {
			break
		}
		for i, key := range slices.Sorted(maps.Keys(v)) {
			name, err := compactJSON(key)
			if err != nil {
				return err
			}
			out.WriteString(map[bool]string{true: "{\n", false: ",\n"}[i == 0] + inner)
			out.Write(name)
			out.WriteString(": ")
			if err := layOut(out, v[key], inner, len(name)+2); err != nil {
				return err
			}
		}
		out.WriteString("\n" + indent + "}")
		return nil
	case []any:
		if fits || len(v) == 0 {
			break
		}
		for i, element := range v {
			out.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0] + inner)
			if err := layOut(out, element, inner, 0); err != nil {
				return err
			}
		}
		out.WriteString("\n" + indent + "]")
		return nil
	}
	out.Write(line)
	return nil
}

// compactJSON returns a value as JSON without white space.
func compactJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
