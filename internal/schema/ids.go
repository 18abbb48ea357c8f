package schema

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/weir-limiter/weir"
)

// NewNamespaceID makes a namespace's ID from random bytes: 11 characters of A–Z, a–z, 0–9, "_" and
// "-", of which the first is no "-", so that commands take it for no flag.
func NewNamespaceID(random io.Reader) (string, error) {
	const tries = 64 // each fails once in 64 times
	var b [8]byte
	for range tries {
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("namespace ID: %w", err)
		}
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id, nil
		}
	}
	return "", errors.New("namespace ID: the random bytes are not random")
}

// NewIncarnation makes an entity's incarnation from random bytes: 16 hexadecimal digits.
func NewIncarnation(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("incarnation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NewULID makes an event's ID from an instant in Unix milliseconds and random bytes: 26 characters
// whose order is that of the instants.
func NewULID(ms int64, random io.Reader) (string, error) {
	const last = 1<<48 - 1
	if ms < 0 || ms > last {
		return "", fmt.Errorf("ULID: %d ms is beyond 48 bits", ms)
	}
	var id weir.LeaseID
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(random, id[6:]); err != nil {
		return "", fmt.Errorf("ULID: %w", err)
	}
	return id.String(), nil
}
