package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settingsOf returns a settings file with mirrors, each of which is "mirrorOf url".
func settingsOf(mirrors ...string) string {
	var b strings.Builder
	b.WriteString(`<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>`)
	for _, m := range mirrors {
		of, url, _ := strings.Cut(m, " ")
		b.WriteString("<mirror><id>m</id><mirrorOf>" + of + "</mirrorOf><url>" + url + "</url></mirror>")
	}
	b.WriteString("</mirrors></settings>")
	return b.String()
}

func TestFindRepository(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, given, variable, settings string
		want                            string // or words of the error, after a "!"
	}{
		{"no settings", "", "", "", mavenCentral},
		{"given", "https://given.example/m", "https://env.example", settingsOf("* https://m.example"), "https://given.example/m"},
		{"variable", "", "https://env.example", settingsOf("* https://m.example"), "https://env.example"},
		{"mirror of all", "", "", settingsOf("* https://m.example"), "https://m.example"},
		{"mirror of central", "", "", settingsOf("other https://o.example", "central https://m.example/maven2"), "https://m.example/maven2"},
		{"mirror of all but others", "", "", settingsOf("external:*,!other https://m.example"), "https://m.example"},
		{"mirror of all but central", "", "", settingsOf("*,!central https://m.example"), mavenCentral},
		{"a variable in the settings", "", "", settingsOf("* https://${env.HOST}/m"), "https://mirror.example/m"},
		{"no mirrors", "", "", "<settings/>", mavenCentral},
		{"broken settings", "", "", "<settings><mirrors>", "!settings.xml: "},
		{"not an address", "given.example/m", "", "", "!--repository: must be the address"},
		{"another scheme", "", "ftp://env.example", "", "!WEIR_MAVEN_REPOSITORY: must be"},
		{"a mirror without an address", "", "", settingsOf("* nonsense"), "!settings.xml: must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if c.settings != "" {
				if err := os.Mkdir(filepath.Join(home, ".m2"), 0o700); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(home, ".m2", "settings.xml")
				if err := os.WriteFile(name, []byte(c.settings), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{"HOME": home, RepositoryEnv: c.variable, "HOST": "mirror.example"}
			got, err := FindRepository(c.given, func(name string) string { return env[name] })
			if words, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, %v, want an error with %q", got, err, words)
				}
				return
			}
			if err != nil || got.URL != c.want {
				t.Errorf("got %+v, %v, want %s", got, err, c.want)
			}
		})
	}
}

// TestRepositoryPassword checks that an error about a repository does not show its password.
func TestRepositoryPassword(t *testing.T) {
	t.Parallel()
	s, at := newShelf(t)
	at.URL = strings.Replace(at.URL, "http://", "http://user:secret@", 1)
	s.files[0].Path = "none.jar"
	for _, url := range []string{at.URL, "http://user:secret@127.0.0.1:1"} {
		at.URL = url
		err := (&Fetcher{Folder: t.TempDir(), Repository: at, Files: s.files}).Fetch(t.Context())
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want an error without the password", err)
		}
	}
}
