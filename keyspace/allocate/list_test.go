package allocate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

func TestParseList(t *testing.T) {
	got, err := allocate.ParseRated("0, 32,9=7\n57=0\t340282366920938463463374607431768211455=18446744073709551615")
	want := []allocate.Rated{
		{keyspace.Key{}, 1},
		{keyspace.Key{Lo: 32}, 1},
		{keyspace.Key{Lo: 9}, 7},
		{keyspace.Key{Lo: 57}, 0},
		{keyspace.Max(), ^uint64(0)},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", " ", ",", " ,\n"} {
		if got, err := allocate.ParseRated(text); err != nil || len(got) > 0 {
			t.Errorf("ParseRated(%q) = %v, %v; want none", text, got, err)
		}
	}
}

func TestParseListRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"1,x": keyspace.ErrKeySyntax, "1;2": keyspace.ErrKeySyntax, "=5": keyspace.ErrKeySyntax,
		"1,-2": keyspace.ErrKeySyntax, "340282366920938463463374607431768211456": keyspace.ErrKeySyntax,
		"1=": allocate.ErrRateSyntax, "1=x": allocate.ErrRateSyntax, "1=2=3": allocate.ErrRateSyntax,
		"1=1.5": allocate.ErrRateSyntax, "1=-1": allocate.ErrRateSyntax, "1=18446744073709551616": allocate.ErrRateSyntax,
	} {
		if got, err := allocate.ParseRated(text); !errors.Is(err, want) || got != nil {
			t.Errorf("ParseRated(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := allocate.ParseRated("7,64=fast"); err == nil || !strings.Contains(err.Error(), `"64=fast"`) {
		t.Errorf("the error does not name what is wrong: %v", err)
	}
}

// An allocator adds all keys that ParseRated reads, or fails and stays empty.
func FuzzParseList(f *testing.F) {
	for _, text := range []string{"", "0,32,9,57", "1=2 3", "1,1", "1=,", "5=18446744073709551615,6"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := allocate.ParseRated(text)
		if err != nil {
			if !errors.Is(err, keyspace.ErrKeySyntax) && !errors.Is(err, allocate.ErrRateSyntax) {
				t.Fatalf("ParseRated(%q): %v", text, err)
			}
			return
		}
		var a allocate.Allocator
		err = a.AddRated(list...)
		switch {
		case err == nil && a.Len() == len(list):
			back := strings.Trim(a.Tree(), "()")
			if (back == "") != (len(list) == 0) {
				t.Fatalf("%d keys, and the tree is %s", len(list), a.Tree())
			}
		case errors.Is(err, allocate.ErrKeyTaken), errors.Is(err, allocate.ErrRateOverflow):
			if a.Len() != 0 || a.Rate() != 0 {
				t.Fatalf("%v left %d keys behind", err, a.Len())
			}
		default:
			t.Fatalf("ParseRated(%q), AddRated: %v, %d keys", text, err, a.Len())
		}
	})
}
