package local

import "testing"

func TestExport(t *testing.T) {
	t.Parallel()
	vars := []Variable{{"A", "http://h?x=1&y=$z"}, {"B", `it's \n`}}
	for shell, want := range map[string]string{
		"sh":         "export A='http://h?x=1&y=$z'\nexport B='it'\\''s \\n'\n",
		"fish":       "set -gx A 'http://h?x=1&y=$z'\nset -gx B 'it\\'s \\\\n'\n",
		"powershell": "$Env:A = 'http://h?x=1&y=$z'\n$Env:B = 'it''s \\n'\n",
	} {
		if got := Export(shell, vars); got != want {
			t.Errorf("%s: got\n%swant\n%s", shell, got, want)
		}
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	s := &Settings{Port: 8000, Table: "limits", Engine: "java"}
	port, table, folder, engine, lean := 9000, "other", "/data", "docker", true
	same, any := 8000, 0
	for _, c := range []struct {
		want *Wanted
		says string
	}{
		{&Wanted{}, ""},
		{&Wanted{Port: &same}, ""},
		{&Wanted{Port: &any}, ""},
		{&Wanted{Port: &port}, "--port 9000"},
		{&Wanted{Table: &table, Lean: &lean}, "--table other --lean=true"},
		{&Wanted{Data: &folder, Engine: &engine}, "--data /data --engine docker"},
	} {
		if got := s.differences(c.want); got != c.says {
			t.Errorf("got %q, want %q", got, c.says)
		}
	}
}

func TestCheckSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port  int
		table string
		fine  bool
	}{
		{8000, "limits", true}, {0, "a.b", true}, {65535, "A-b_c.9", true},
		{-1, "limits", false}, {65536, "limits", false}, {1, "ab", false}, {1, "a/b", false},
	} {
		if err := (&Wanted{Port: &c.port, Table: &c.table}).Check(); (err == nil) != c.fine {
			t.Errorf("%d %q: got %v", c.port, c.table, err)
		}
	}
}
