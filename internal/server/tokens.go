package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/weir-limiter/weir/httpapi"
)

// tokenDigest is the SHA-256 of a bearer token: the server keeps nothing that could be sent.
type tokenDigest [sha256.Size]byte

// tokenEntry is a bearer token that is let in.
type tokenEntry struct {
	identity httpapi.Identity
	digest   tokenDigest
}

// tokens are the bearer tokens that were last read from a file.
type tokens struct {
	current atomic.Pointer[[]tokenEntry]
}

// load takes a file. Where anything is wrong with it, the bearer tokens in force stay.
func (t *tokens) load(file *fileState) error {
	if err := checkPrivate(file.name, file.mode); err != nil {
		return err
	}
	entries, err := parseTokens(file.name, file.data)
	if err != nil {
		return err
	}
	t.current.Store(&entries)
	return nil
}

// callers is how many bearer tokens may reserve. There are none where t is nil, or nothing was
// loaded.
func (t *tokens) callers() (n int) {
	if t == nil || t.current.Load() == nil {
		return 0
	}
	for _, e := range *t.current.Load() {
		if e.identity.Role >= httpapi.RoleCall {
			n++
		}
	}
	return n
}

// checkPrivate refuses a file that others than its owner can read or write. Windows has no such
// bits.
func checkPrivate(file string, mode os.FileMode) error {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%s: its mode %04o lets others read or change it: make it 0600",
		file, mode.Perm())
}

// authenticate finds whose a bearer token is. It compares with every entry, and each in constant
// time, so that how long it takes says nothing of how near a guess was.
func (t *tokens) authenticate(bearer string) (httpapi.Identity, bool) {
	digest := tokenDigest(sha256.Sum256([]byte(bearer)))
	entries := *t.current.Load()
	found := -1
	for i := range entries {
		same := subtle.ConstantTimeCompare(digest[:], entries[i].digest[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return httpapi.Identity{}, false
	}
	return entries[found].identity, true
}
