package weir_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// The vectors come from the ULID specification and its implementations in JavaScript and Go.
var ulids = []struct {
	text, bytes string
	ms          int64
}{
	{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01563e3ab5d3d6764c61efb99302bd5b", 1_469_922_850_259},
	{"01ARYZ6S41TSV4RRFFQ69G5FAV", "01563df36481d6764c61efb99302bd5b", 1_469_918_176_385},
	{"01BX5ZZKBKACTAV9WEVGEMMVRY", "015f4bffcd735334ada78edc1d4a6f1e", 1_508_808_576_371},
	{"0000XSNJG0MQJHBF4QX1EFD6Y3", "00003b9aca00a5e515bc97e85cf69bc3", 1_000_000_000},
	{"00000000000000000000000000", "00000000000000000000000000000000", 0},
	{"00000000000000000000000001", "00000000000000000000000000000001", 0},
	{"0000000000ZZZZZZZZZZZZZZZZ", "000000000000ffffffffffffffffffff", 0},
	{"00000000010000000000000000", "00000000000100000000000000000000", 1},
	{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ffffffffffffffffffffffffffffffff", 1<<48 - 1},
}

func TestLeaseIDVectors(t *testing.T) {
	t.Parallel()
	for _, c := range ulids {
		id, err := weir.ParseLeaseID(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := hex.EncodeToString(id[:]); got != c.bytes {
			t.Errorf("%s: bytes %s, want %s", c.text, got, c.bytes)
		}
		if got := id.String(); got != c.text {
			t.Errorf("String() = %s, want %s", got, c.text)
		}
		if got, want := id.Time(), time.UnixMilli(c.ms); !got.Equal(want) {
			t.Errorf("%s: Time() = %v, want %v", c.text, got, want)
		}
		if got, want := id.IsZero(), strings.Trim(c.text, "0") == ""; got != want {
			t.Errorf("%s: IsZero() = %t, want %t", c.text, got, want)
		}
		lower, err := weir.ParseLeaseID(strings.ToLower(c.text))
		if err != nil || lower != id {
			t.Errorf("lower case of %s: %v, %v", c.text, lower, err)
		}
	}
}

func TestParseLeaseIDRefuses(t *testing.T) {
	t.Parallel()
	const good = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	bad := map[string]string{
		"empty":                  "",
		"one too short":          good[1:],
		"one too long":           good + "0",
		"a space in front":       " " + good[1:],
		"a line end behind":      good[:25] + "\n",
		"first character 8":      "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
		"first character 8, min": "80000000000000000000000000",
		"first character Z":      "Z" + good[1:],
		"a UUID":                 "01563e3a-b5d3-d676-4c61-efb99302bd5b",
		"a zero byte":            good[:25] + "\x00",
		"26 bytes of UTF-8":      strings.Repeat("é", 13),
		"a full-width digit":     good[:23] + "１",
	}
	for _, c := range "ILOUilou-_+/=@[`{*~$" { // other uses of Crockford's alphabet accept some of them
		bad["letter "+string(c)] = good[:12] + string(c) + good[13:]
		bad["last letter "+string(c)] = good[:25] + string(c)
	}
	for name, s := range bad {
		id, err := weir.ParseLeaseID(s)
		checkRefused(t, name, id, err)
		kept := weir.LeaseID{1}
		if err := kept.UnmarshalText([]byte(s)); err == nil || kept != (weir.LeaseID{1}) {
			t.Errorf("%s: UnmarshalText changed the ID to %v, %v", name, kept, err)
		}
	}
}

func checkRefused(t *testing.T, name string, id weir.LeaseID, err error) {
	t.Helper()
	if !errors.Is(err, weir.Invalid) {
		t.Errorf("%s: error %v, want %v", name, err, weir.Invalid)
	}
	if e, ok := errors.AsType[*weir.Error](err); !ok || e.Field != "lease_id" || e.Reason == "" {
		t.Errorf("%s: error %#v, want field lease_id and a reason", name, err)
	}
	if !id.IsZero() {
		t.Errorf("%s: ID %v, want none", name, id)
	}
}

func TestNewLeaseIDCarriesItsTime(t *testing.T) {
	t.Parallel()
	for _, ms := range []int64{0, 1, 255, 1 << 32, 1_700_000_000_123, 1<<48 - 1} {
		now := time.UnixMilli(ms).Add(999 * time.Microsecond) // the part below a millisecond is dropped
		if got := weir.NewLeaseID(now).Time().UnixMilli(); got != ms {
			t.Errorf("an ID made at %d ms carries %d", ms, got)
		}
	}
}

func TestNewLeaseIDsDifferAndSortByTime(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_000_000)
	const instants, each = 100, 100
	seen := make(map[weir.LeaseID]bool)
	var latest string // the greatest ID of the millisecond before
	for i := range instants {
		var texts []string
		for range each {
			id := weir.NewLeaseID(start.Add(time.Duration(i) * time.Millisecond))
			seen[id] = true
			texts = append(texts, id.String())
		}
		if earliest := slices.Min(texts); earliest <= latest {
			t.Errorf("%s, made a millisecond after %s, sorts before it", earliest, latest)
		}
		latest = slices.Max(texts)
	}
	if got := len(seen); got != instants*each {
		t.Errorf("%d different IDs, want %d", got, instants*each)
	}
}

// Every bit after the time is random, and no two bytes are always equal.
func TestNewLeaseIDDrawsEveryBit(t *testing.T) {
	t.Parallel()
	var set, clear weir.LeaseID
	different := make(map[[2]int]bool)
	for range 200 {
		id := weir.NewLeaseID(time.UnixMilli(1_700_000_000_000))
		for i := 6; i < len(id); i++ {
			set[i] |= id[i]
			clear[i] |= ^id[i]
			for j := 6; j < i; j++ {
				if id[i] != id[j] {
					different[[2]int{i, j}] = true
				}
			}
		}
	}
	for i := 6; i < len(set); i++ {
		if set[i] != 0xff || clear[i] != 0xff {
			t.Errorf("byte %d: bits seen set %08b, clear %08b, want all", i, set[i], clear[i])
		}
		for j := 6; j < i; j++ {
			if !different[[2]int{i, j}] {
				t.Errorf("bytes %d and %d are always equal", j, i)
			}
		}
	}
}

func TestLeaseIDInJSON(t *testing.T) {
	t.Parallel()
	type body struct {
		ID weir.LeaseID           `json:"id,omitzero"`
		By map[weir.LeaseID]int64 `json:"by,omitempty"`
	}
	const text = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	const want = `{"id":"` + text + `","by":{"` + text + `":7}}`
	var b body
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if got := b.ID.String(); got != text || b.By[b.ID] != 7 {
		t.Errorf("read %+v of %s", b, want)
	}
	if got, err := json.Marshal(b); err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v, want %s", got, err, want)
	}
	if got, err := json.Marshal(body{}); err != nil || string(got) != "{}" {
		t.Errorf("Marshal of no ID = %s, %v, want {}", got, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"nonsense"}`), &b); !errors.Is(err, weir.Invalid) {
		t.Errorf("Unmarshal of nonsense: %v, want %v", err, weir.Invalid)
	}
}

// bigULID parses a ULID as one number in base 32.
func bigULID(s string) (weir.LeaseID, bool) {
	var id weir.LeaseID
	n := new(big.Int)
	for _, c := range []byte(s) {
		digit := strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c)
		if digit < 0 {
			digit = strings.IndexByte("0123456789abcdefghjkmnpqrstvwxyz", c)
		}
		if digit < 0 {
			return id, false
		}
		n.Add(n.Lsh(n, 5), big.NewInt(int64(digit)))
	}
	if len(s) != 26 || n.BitLen() > 128 {
		return id, false
	}
	n.FillBytes(id[:])
	return id, true
}

func FuzzParseLeaseID(f *testing.F) {
	for _, c := range ulids {
		f.Add(c.text)
		f.Add(strings.ToLower(c.text))
	}
	f.Add("8ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Add("01ARZ3NDEKTSV4RRFFQ69G5FAU")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := weir.ParseLeaseID(s)
		want, ok := bigULID(s)
		if !ok {
			checkRefused(t, s, id, err)
			return
		}
		if err != nil || id != want {
			t.Fatalf("ParseLeaseID(%q) = %x, %v, want %x", s, id, err, want)
		}
		if got := id.String(); got != strings.ToUpper(s) {
			t.Fatalf("String() = %s, want %s", got, strings.ToUpper(s))
		}
	})
}

func FuzzLeaseIDRoundTrip(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Add([]byte("any sixteen byte"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var id weir.LeaseID
		copy(id[:], data)
		got, err := weir.ParseLeaseID(id.String())
		if err != nil || got != id {
			t.Fatalf("ParseLeaseID(%s) = %x, %v, want %x", id, got, err, id)
		}
		if text, err := id.AppendText([]byte("id ")); string(text) != "id "+id.String() || err != nil {
			t.Fatalf("AppendText = %q, %v, want %q", text, err, "id "+id.String())
		}
		want, _ := bigULID(id.String())
		if want != id {
			t.Fatalf("%x is written as %s, which is %x", id, id, want)
		}
	})
}
