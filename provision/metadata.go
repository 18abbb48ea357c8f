package provision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/weir-limiter/weir"
)

// revision numbers the templates of weir's versions. A template that an older weir cannot write, or
// would change back, has a higher one.
const revision = 1

// metadataID is where a template has its metadata.
const metadataID = "Weir"

// metadata says how a template was made, so that an upgrade can make it again.
type metadata struct {
	Revision int       `json:"revision"`
	Version  string    `json:"version,omitempty"`
	Options  *Template `json:"options"`
	// Paused is set while the stack is being taken over: nothing invokes its function then.
	Paused bool `json:"paused,omitempty"`
	// Digest is the SHA-256 of all else in the template. With another one it was edited.
	Digest string `json:"digest"`
}

// addMetadata adds the metadata to a template that is otherwise complete.
func addMetadata(whole object, of *Template) error {
	sum, err := digest(whole)
	if err != nil {
		return err
	}
	whole["Metadata"] = object{metadataID: metadata{
		Revision: revision, Version: of.Version, Options: of, Paused: of.paused,
		Digest: sum,
	}}
	return nil
}

// digest returns the SHA-256 of a template in one form, without its metadata.
func digest(whole any) (string, error) {
	text, err := json.Marshal(whole)
	if err != nil {
		return "", fmt.Errorf("provision: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	plain := object{}
	if err := d.Decode(&plain); err != nil {
		return "", fmt.Errorf("provision: %w", err)
	}
	delete(plain, "Metadata")
	if text, err = json.Marshal(plain); err != nil {
		return "", fmt.Errorf("provision: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// readTemplate reads the metadata of a template, and reports whether the template was edited. It
// returns nil for a template that weir has not made.
func readTemplate(body string) (m *metadata, edited bool) {
	whole, outer := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal([]byte(body), &whole) != nil ||
		json.Unmarshal(whole["Metadata"], &outer) != nil {
		return nil, false
	}
	m = &metadata{Options: &Template{}}
	if json.Unmarshal(outer[metadataID], m) != nil {
		return nil, false
	}
	m.Options.paused = m.Paused
	sum, err := digest(whole)
	return m, err != nil || sum != m.Digest
}

// newer returns the error for a stack whose template a newer weir has made.
func (m *metadata) newer(stack string) error {
	if m.Revision <= revision {
		return nil
	}
	version := ""
	if m.Version != "" {
		version = " (" + m.Version + ")"
	}
	return fault(weir.Unsupported, "stack", stack, fmt.Sprintf(
		"was deployed by a newer weir%s, which this one would undo: use that one", version))
}
