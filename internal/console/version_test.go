package console

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	end := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"nothing known": {debug.BuildInfo{}, "weir (devel)" + end + " without TigerBeetle"},
		"a release in a clone": {
			debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "8f51d75"},
				{Key: "vcs.time", Value: "2026-11-27T18:00:00Z"},
				{Key: "vcs.modified", Value: "false"},
				{Key: "CGO_ENABLED", Value: "1"},
			}},
			"weir v0.1.0 (commit 8f51d75 of 2026-11-27T18:00:00Z)" + end + " with TigerBeetle",
		},
		"a changed clone": {
			debug.BuildInfo{Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "8f51d75"},
				{Key: "vcs.time", Value: "2026-11-27T18:00:00Z"},
				{Key: "vcs.modified", Value: "true"},
				{Key: "CGO_ENABLED", Value: "0"},
			}},
			"weir (devel) (commit 8f51d75 of 2026-11-27T18:00:00Z, modified)" + end + " without TigerBeetle",
		},
		"a module of a proxy": {
			debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}},
			"weir v0.1.0" + end + " without TigerBeetle",
		},
	} {
		if got := versionOf(&c.info).String(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
