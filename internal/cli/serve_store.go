package cli

import (
	"net/url"
	"strings"
)

// storeInLog returns the URL of a store without what may be a secret: a user and password before an
// '@', and those in the URL of an endpoint. A URL that it cannot read is only its scheme.
func storeInLog(rawURL string) string {
	address, query, _ := strings.Cut(rawURL, "?")
	scheme, _, _ := strings.Cut(address, ":")
	if strings.Contains(address, "@") {
		return scheme + ":(hidden)"
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return scheme + ":(hidden)"
	}
	for _, of := range values {
		for i := range of {
			of[i] = withoutUser(of[i])
		}
	}
	if len(values) == 0 {
		return address
	}
	shown, err := url.QueryUnescape(values.Encode())
	if err != nil {
		return scheme + ":(hidden)"
	}
	return address + "?" + shown
}

// withoutUser removes the user and password from a value that is a URL.
func withoutUser(value string) string {
	if !strings.Contains(value, "@") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return "(hidden)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
