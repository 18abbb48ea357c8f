package cli

import "testing"

func TestStoreInLog(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"memory:":                       "memory:",
		"memory:?snapshot=/var/weir/st": "memory:?snapshot=/var/weir/st",
		"memory:?snapshot=/a%20b":       "memory:?snapshot=/a b",
		"dynamodb://limits?region=eu-central-1&namespace=a": "dynamodb://limits?" +
			"namespace=a&region=eu-central-1",
		"tigerbeetle://10.0.0.1:3000,10.0.0.2:3000?cluster=7": "tigerbeetle://" +
			"10.0.0.1:3000,10.0.0.2:3000?cluster=7",
		"dynamodb://limits?endpoint=http://me:secret@host:8000/x?y=secret": "dynamodb://limits?" +
			"endpoint=http://host:8000",
		"dynamodb://limits?endpoint=me:secret@host": "dynamodb://limits?endpoint=(hidden)",
		"dynamodb://me:secret@limits":               "dynamodb:(hidden)",
		"dynamodb://limits?a=%zzsecret":             "dynamodb:(hidden)",
	} {
		if got := storeInLog(rawURL); got != want {
			t.Errorf("%s: got %q, want %q", rawURL, got, want)
		}
	}
}
