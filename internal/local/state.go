package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stateFile is the name of the state file in the folder of a [Server].
const stateFile = "state.json"

// Settings are the choices for a server.
type Settings struct {
	// Port is its TCP port on 127.0.0.1.
	Port int `json:"port"`
	// Table is the name of the table that is created.
	Table string `json:"table"`
	// Lean is set if the index by resource has keys only.
	Lean bool `json:"lean"`
	// Data is the folder with the data; empty if it is kept in memory.
	Data string `json:"data,omitempty"`
	// Engine runs the server: "java", or the name of a container engine.
	Engine string `json:"engine"`
}

// State says what was started.
type State struct {
	Settings

	// PID is the number of the process, and Born the time at which the system says that it was
	// started, in a form of its own. Both are empty for a container.
	PID  int    `json:"pid,omitempty"`
	Born string `json:"born,omitempty"`
	// Container is the ID of the container; empty for a process.
	Container string `json:"container,omitempty"`
	// Started is the time of the start.
	Started time.Time `json:"started"`
}

// Endpoint returns the server's URL.
func (s *Settings) Endpoint() string { return "http://127.0.0.1:" + strconv.Itoa(s.Port) }

// StoreURL returns the URL of the table for --store.
func (s *Settings) StoreURL() string {
	return "dynamodb://" + s.Table + "?region=" + Region + "&endpoint=" + s.Endpoint()
}

// differences returns what of the wanted settings is not so, as "--port 9000".
func (s *Settings) differences(want *Wanted) string {
	var all []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(want.Port != nil && *want.Port != 0 && *want.Port != s.Port, "--port %d", deref(want.Port))
	add(want.Table != nil && *want.Table != s.Table, "--table %s", deref(want.Table))
	add(want.Lean != nil && *want.Lean != s.Lean, "--lean=%t", deref(want.Lean))
	add(want.Data != nil && *want.Data != s.Data, "--data %s", deref(want.Data))
	add(want.Engine != nil && *want.Engine != s.Engine, "--engine %s", deref(want.Engine))
	return strings.Join(all, " ")
}

// deref returns what a pointer points to; zero for nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// String says what runs, for an error.
func (s *Settings) String() string {
	kind, data := "full", "in memory"
	if s.Lean {
		kind = "lean"
	}
	if s.Data != "" {
		data = "in " + s.Data
	}
	return fmt.Sprintf("on port %d, with the %s table %s, its data %s, by %s",
		s.Port, kind, s.Table, data, s.Engine)
}

// readState returns what was started last; nil if that was ended in order.
func (l *Server) readState() (*State, error) {
	name := filepath.Join(l.Folder, stateFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and end the server, if it runs, by hand", name, err)
	}
	return s, nil
}

func (l *Server) writeState(s *State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(l.Folder, stateFile), append(data, '\n'))
}

func (l *Server) removeState() error {
	err := os.Remove(filepath.Join(l.Folder, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
