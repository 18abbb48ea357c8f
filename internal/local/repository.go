package local

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// mavenCentral is the repository that Maven uses if it is told nothing else.
	mavenCentral = "https://repo.maven.apache.org/maven2"
	// RepositoryEnv is the variable with the address of a repository.
	RepositoryEnv = "WEIR_MAVEN_REPOSITORY"
)

// Repository is a Maven repository.
type Repository struct {
	// URL is its address.
	URL string
	// From says where the address was found, such as "--repository".
	From string
}

// describe names the repository in an error, without a password.
func (r Repository) describe() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "the repository (" + r.From + ")"
	}
	return u.Redacted() + " (" + r.From + ")"
}

// FindRepository returns the repository to fetch from: the one that is given, or else that of
// WEIR_MAVEN_REPOSITORY, the mirror of Maven Central in the user's settings of Maven, or Maven
// Central.
func FindRepository(given string, env func(string) string) (Repository, error) {
	if given != "" {
		return checkRepository(given, "--repository")
	}
	if value := env(RepositoryEnv); value != "" {
		return checkRepository(value, RepositoryEnv)
	}
	home := env("HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // without one there are no settings
	}
	settings := filepath.Join(home, ".m2", "settings.xml")
	data, err := os.ReadFile(settings)
	if errors.Is(err, fs.ErrNotExist) {
		return Repository{mavenCentral, "Maven Central"}, nil
	}
	if err != nil {
		return Repository{}, err
	}
	mirror, err := mirrorOfCentral(data, env)
	switch {
	case err != nil:
		return Repository{}, fmt.Errorf("%s: %w: name a repository with --repository", settings, err)
	case mirror == "":
		return Repository{mavenCentral, "Maven Central"}, nil
	}
	return checkRepository(mirror, settings)
}

func checkRepository(address, from string) (Repository, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Repository{}, fmt.Errorf(
			"%s: must be the address of a Maven repository, like %s", from, mavenCentral)
	}
	return Repository{address, from}, nil
}

// variable is a variable of the environment in Maven's settings.
var variable = regexp.MustCompile(`\$\{env\.([^}]+)\}`)

// mirrorOfCentral returns the address of the first mirror of Maven Central in settings.xml; empty if
// there is none.
func mirrorOfCentral(settings []byte, env func(string) string) (string, error) {
	var s struct {
		Mirrors []struct {
			Of      string `xml:"mirrorOf"`
			URL     string `xml:"url"`
			Blocked bool   `xml:"blocked"`
		} `xml:"mirrors>mirror"`
	}
	if err := xml.Unmarshal(settings, &s); err != nil {
		return "", err
	}
	for _, m := range s.Mirrors {
		if m.Blocked || !mirrorsCentral(m.Of) {
			continue
		}
		return variable.ReplaceAllStringFunc(strings.TrimSpace(m.URL), func(use string) string {
			return env(variable.FindStringSubmatch(use)[1])
		}), nil
	}
	return "", nil
}

// mirrorsCentral reports whether a mirrorOf, which lists repositories with commas between them,
// covers Maven Central.
func mirrorsCentral(of string) bool {
	covers := false
	for word := range strings.SplitSeq(of, ",") {
		switch strings.TrimSpace(word) {
		case "!central":
			return false
		case "central", "*", "external:*":
			covers = true
		}
	}
	return covers
}
