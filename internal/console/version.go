package console

import (
	"runtime"
	"runtime/debug"
)

// Version describes a build of the program.
type Version struct {
	// Version is the version of the module, such as v0.1.0, or (devel).
	Version string `json:"version"`
	// Commit and CommittedAt, in RFC 3339, are known to builds in a clone. Modified is true if its
	// files were changed after the commit.
	Commit      string `json:"commit,omitempty"`
	CommittedAt string `json:"committed_at,omitempty"`
	Modified    bool   `json:"modified,omitempty"`
	Go          string `json:"go"`
	Platform    string `json:"platform"`
	// TigerBeetle is true if the build has that store, which needs cgo.
	TigerBeetle bool `json:"tigerbeetle"`
}

// BuildVersion returns what the build information of the binary says.
func BuildVersion() *Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) *Version {
	v := &Version{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommittedAt = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "CGO_ENABLED":
			v.TigerBeetle = s.Value == "1"
		}
	}
	return v
}

// String returns the version as a line of text.
func (v *Version) String() string {
	text := "weir " + v.Version
	if v.Commit != "" {
		text += " (commit " + v.Commit + " of " + v.CommittedAt
		if v.Modified {
			text += ", modified"
		}
		text += ")"
	}
	text += " " + v.Go + " " + v.Platform
	if v.TigerBeetle {
		return text + " with TigerBeetle"
	}
	return text + " without TigerBeetle"
}
