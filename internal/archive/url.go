package archive

import (
	"net/url"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// Location says where an archive is.
type Location struct {
	// Bucket is the name of the S3 bucket.
	Bucket string
	// Prefix comes before all keys; empty, or with a slash at its end.
	Prefix string
	// Region is the bucket's region. Default: the region that the SDK's own chain finds.
	Region string
	// Endpoint is the address of another S3 than Amazon's. Default: the endpoint of the region.
	Endpoint string
	// Namespace and NamespaceID say which events to read. At most one is set.
	Namespace, NamespaceID string

	local bool // the endpoint is on this machine
}

const scheme = "s3:"

// Parse parses s3://BUCKET[/PREFIX][?NAME=VALUE&…]. The names are region and endpoint, and more
// if the caller takes them: namespace, namespace_id. Values are percent-encoded, and a '+' stands
// for itself, as in the URL of a store. The error is a [*weir.Error] with code [weir.Invalid].
func Parse(rawURL string, more ...string) (*Location, error) {
	rest, ok := strings.CutPrefix(rawURL, scheme)
	if !ok {
		other, _, _ := strings.Cut(rawURL, ":") // what follows may be a secret
		return nil, invalid("archive", other,
			"is not an archive: name a bucket with s3://BUCKET/PREFIX")
	}
	place, query, _ := strings.Cut(rest, "?")
	place, ok = strings.CutPrefix(place, "//")
	bucket, prefix, _ := strings.Cut(place, "/")
	if !ok || strings.ContainsAny(bucket, "@:#") {
		return nil, invalid("archive", scheme,
			"must be s3://BUCKET/PREFIX, with or without ?NAME=VALUE "+
				"after it: credentials come from the AWS SDK's default chain")
	}
	if reason := bucketFault(bucket); reason != "" {
		return nil, invalid("archive.bucket", bucket, reason)
	}
	l := &Location{Bucket: bucket, Prefix: strings.Trim(prefix, "/")}
	switch {
	case strings.ContainsFunc(l.Prefix,
		func(r rune) bool { return r < ' ' || r == 0x7F || r == '#' }):
		return nil, invalid("archive.prefix", l.Prefix,
			"must not contain # or control characters")
	case len(l.Prefix) > longestPrefix:
		return nil, invalid("archive.prefix", l.Prefix[:64]+"…",
			"is too long: keys have at most 1,024 bytes")
	case l.Prefix != "":
		l.Prefix += "/"
	}
	known := append([]string{"region", "endpoint"}, more...)
	if err := l.parseQuery(query, known); err != nil {
		return nil, err
	}
	return l, nil
}

// longestPrefix leaves room for the rest of a key.
const longestPrefix = 700

// parseQuery parses name=value pairs, each with a known name and at most once.
func (l *Location) parseQuery(query string, known []string) error {
	if query == "" {
		return nil
	}
	fields := map[string]*string{
		"region": &l.Region, "endpoint": &l.Endpoint, "namespace": &l.Namespace,
		"namespace_id": &l.NamespaceID,
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, encoded, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(encoded)
		switch {
		case !slices.Contains(known, name):
			return invalid("archive."+name, encoded,
				"is unknown: must be "+strings.Join(known, " or "))
		case err != nil:
			return invalid("archive."+name, encoded, "has a malformed percent-encoding")
		case value == "":
			return invalid("archive."+name, "", "must not be empty")
		case *fields[name] != "":
			return invalid("archive."+name, encoded, "is given twice")
		}
		*fields[name] = value
	}
	if strings.Trim(l.Region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return invalid("archive.region", l.Region, "must be a region like eu-central-1")
	}
	if l.Namespace != "" && l.NamespaceID != "" {
		return invalid("archive.namespace", l.Namespace, "and namespace_id cannot both be given")
	}
	var err error
	l.local, err = awsconfig.CheckEndpoint("archive.endpoint", l.Endpoint)
	return err
}

// bucketFault returns the reason why a name cannot be a bucket's; empty if it can.
func bucketFault(name string) string {
	const least, most = 3, 63
	switch {
	case name == "":
		return "is missing: name a bucket with s3://BUCKET/PREFIX"
	case len(name) < least || len(name) > most,
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return "must be the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens"
	}
	return ""
}

func invalid(field, value, reason string) error {
	return weir.NewError(weir.Invalid, field, value, reason)
}
