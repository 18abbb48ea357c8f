package chart_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// schemes returns the colours of the style by name: light and dark.
func schemes(t *testing.T) map[string]map[string][3]float64 {
	t.Helper()
	text, err := os.ReadFile("page/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(text), "(prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("there is no dark scheme")
	}
	out := map[string]map[string][3]float64{"light": {}, "dark": {}}
	for name, part := range map[string]string{"light": light, "dark": dark} {
		for _, m := range regexp.MustCompile(`--(\w+): #(\w{6});`).FindAllStringSubmatch(part, -1) {
			v, err := strconv.ParseUint(m[2], 16, 24)
			if err != nil {
				t.Fatal(err)
			}
			out[name][m[1]] = [3]float64{linear(v >> 16), linear(v >> 8 & 255), linear(v & 255)}
		}
	}
	return out
}

// linear returns the amount of light of one component of a colour.
func linear(v uint64) float64 {
	c := float64(v) / 255
	if c <= .04045 {
		return c / 12.92
	}
	return math.Pow((c+.055)/1.055, 2.4)
}

// contrast returns the contrast as WCAG defines it.
func contrast(a, b [3]float64) float64 {
	light := func(c [3]float64) float64 { return .2126*c[0] + .7152*c[1] + .0722*c[2] + .05 }
	return max(light(a), light(b)) / min(light(a), light(b))
}

func TestColoursHaveContrast(t *testing.T) {
	t.Parallel()
	for name, c := range schemes(t) {
		if len(c) < 15 {
			t.Fatalf("%s: only %d colours", name, len(c))
		}
		for _, p := range []struct {
			front, back string
			least       float64
		}{
			{"ink", "back", 4.5}, {"ink", "surface", 4.5}, {"muted", "back", 4.5}, {"muted", "surface", 4.5},
			{"muted", "sunk", 4.5}, {"accent", "surface", 4.5}, {"alarm", "surface", 4.5},
			{"good", "surface", 3}, {"bad", "surface", 3}, {"s0", "surface", 3}, {"s1", "surface", 3},
			{"s2", "surface", 3}, {"s3", "surface", 3}, {"rule", "surface", 3}, {"field", "surface", 3},
			{"bad", "sunk", 3}, {"s0", "sunk", 3}, {"good", "sunk", 3}, {"low", "sunk", 3},
		} {
			if got := contrast(c[p.front], c[p.back]); got < p.least {
				t.Errorf("%s: %s on %s has %.2f, at least %.1f", name, p.front, p.back, got, p.least)
			}
		}
	}
}

// TestColoursDifferForTheColourBlind converts colours to what colour-blind people see (the matrices are
// those of Machado, Oliveira and Fernandes, 2009, at full strength), and measures the distance
// between the colours of one figure in CIELAB. A distance of 20 is easy to see.
func TestColoursDifferForTheColourBlind(t *testing.T) {
	t.Parallel()
	eyes := map[string][3][3]float64{
		"usual": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia": {
			{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998},
		},
		"deuteranopia": {
			{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881},
		},
		"tritanopia": {
			{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900},
		},
	}
	for scheme, c := range schemes(t) {
		for eye, m := range eyes {
			for _, pair := range [][2]string{{"good", "bad"}, {"s0", "s1"}, {"bad", "s0"}} {
				a, b := lab(seen(m, c[pair[0]])), lab(seen(m, c[pair[1]]))
				far := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
				if far < 20 {
					t.Errorf("%s, %s: %s and %s are %.1f apart", scheme, eye, pair[0], pair[1], far)
				}
			}
		}
	}
}

func seen(m [3][3]float64, c [3]float64) (out [3]float64) {
	for i := range m {
		out[i] = min(max(m[i][0]*c[0]+m[i][1]*c[1]+m[i][2]*c[2], 0), 1)
	}
	return out
}

// lab converts linear sRGB to CIELAB.
func lab(c [3]float64) [3]float64 {
	f := func(v float64) float64 {
		if v > .008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16./116
	}
	x := f((.4124564*c[0] + .3575761*c[1] + .1804375*c[2]) / .95047)
	y := f(.2126729*c[0] + .7151522*c[1] + .0721750*c[2])
	z := f((.0193339*c[0] + .1191920*c[1] + .9503041*c[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}
