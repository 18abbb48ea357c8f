package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-limiter/weir/internal/testkit"
)

// curlDefaults keep the scripts short. Each answer's head goes to the file head, its body to the
// file body, and its status to standard output.
const curlDefaults = `silent
show-error
max-time = 30
noproxy = "*"
header = "Content-Type: application/json"
dump-header = "head"
output = "body"
write-out = "%{http_code}\n"
`

// TestWireCurl checks the rules of the HTTP API with curl, which knows nothing of weir.
func TestWireCurl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		testkit.Require(t, "curl", err.Error())
	}
	runWireScripts(t, "testdata/wire/curl_*.txtar")
}

// TestWireCommands checks the same rules with the command line.
func TestWireCommands(t *testing.T) {
	t.Parallel()
	runWireScripts(t, "testdata/wire/cli_*.txtar")
}

func runWireScripts(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got scripts %v and error %v", pattern, files, err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": scriptServe, "leaseid": scriptLeaseID,
			"json": scriptJSON, "setjson": scriptSetJSON, "header": scriptHeader,
		},
		Setup:               setUpWireScript,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// setUpWireScript writes curl's defaults, and a time zone into the limits files in which no
// calendar month ends while the script runs.
func setUpWireScript(e *testscript.Env) error {
	hurry(e)
	e.Setenv("CURL_HOME", e.WorkDir)
	if err := os.WriteFile(filepath.Join(e.WorkDir, ".curlrc"), []byte(curlDefaults),
		0o600); err != nil {
		return err
	}
	name := filepath.Join(e.WorkDir, "limits.yaml")
	limits, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(limits), "@zone@", quietZone(time.Now()))
	return os.WriteFile(name, []byte(text), 0o600)
}

// quietZone names a zone without summer time whose month does not end within an hour of now.
func quietZone(now time.Time) string {
	if now := now.UTC(); now.Add(time.Hour).Month() != now.Month() {
		return "Asia/Tokyo"
	}
	return "UTC"
}

// The months of the two zones never end within an hour of one another.
func TestQuietZone(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	met := map[string]int{}
	for at := start; at.Year() == start.Year(); at = at.Add(10 * time.Minute) {
		name := quietZone(at)
		met[name]++
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if local := at.In(zone); local.Add(59*time.Minute).Month() != local.Month() {
			t.Errorf("%s: got %s, where the month ends within an hour", at, name)
		}
	}
	if met["UTC"] == 0 || met["Asia/Tokyo"] == 0 {
		t.Errorf("got %v, want both zones", met)
	}
}

// lookUpJSON must not find a value that does not exist, because the scripts rely on it.
func TestLookUpJSON(t *testing.T) {
	t.Parallel()
	const text = `{"n": 9223372036854775807, "s": "x y", "none": {}, "null": null, "list": [1,
		{"limit": "rpm", "entity": "a", "left": 2}, {"limit": "tpm", "entity": "a", "left": 3},
		{"limit": "tpm", "entity": "b", "left": 4}]}`
	for path, want := range map[string]string{
		"n": "9223372036854775807", "s": "x y", "list.0": "1", "list.rpm.left": "2",
		"list.b:tpm.left": "4",
		"list.*":          "4", "*": "5", "none": "{}", "none.*": "0", "null": "null",
	} {
		if got, err := lookUpJSON(text, path); err != nil || got != want {
			t.Errorf("%s: got %q and error %v, want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"", "N", "n.x", "list.4", "list.-1", "list.tpm", "list.c:tpm",
		"none.x", "null.x"} {
		if got, err := lookUpJSON(text, path); err == nil {
			t.Errorf("%s: got %q, want an error", path, got)
		}
	}
	for _, text := range []string{"", "{", "{} {}", "<p>"} {
		if got, err := lookUpJSON(text, "*"); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}
