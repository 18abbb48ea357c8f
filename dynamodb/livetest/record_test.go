package livetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadRecords(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, text, want string }{
		{"whole", `{"k":"call","p":"go-1","v":"denied"}` + "\n" + `{"k":"end","p":"go-1"}` + "\n", ""},
		{"cut off", `{"k":"call","p":"go-1"}` + "\n", "no end"},
		{"in the middle of a line", `{"k":"end","p":"go-1"}` + "\n" + `{"k":"ca`, "record 2"},
		{"empty", "", "no end"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			records, err := ReadRecords(name)
			switch {
			case c.want == "" && (err != nil || len(records) != 2 || records[0].Side() != SideGo):
				t.Errorf("got %v, %v", records, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}
