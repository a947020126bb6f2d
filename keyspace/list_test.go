package keyspace_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
)

func TestParseList(t *testing.T) {
	got, err := keyspace.ParseList("0, 32,9=7\n57=0\t340282366920938463463374607431768211455=18446744073709551615")
	want := []keyspace.Rated{
		{keyspace.Key{}, 1},
		{keyspace.Key{Lo: 32}, 1},
		{keyspace.Key{Lo: 9}, 7},
		{keyspace.Key{Lo: 57}, 0},
		{keyspace.Max, ^uint64(0)},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", " ", ",", " ,\n"} {
		if got, err := keyspace.ParseList(text); err != nil || len(got) > 0 {
			t.Errorf("ParseList(%q) = %v, %v; want none", text, got, err)
		}
	}
}

func TestParseListRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"1,x": keyspace.ErrSyntax, "1;2": keyspace.ErrSyntax, "=5": keyspace.ErrSyntax,
		"1,-2": keyspace.ErrSyntax, "340282366920938463463374607431768211456": keyspace.ErrSyntax,
		"1=": keyspace.ErrList, "1=x": keyspace.ErrList, "1=2=3": keyspace.ErrList,
		"1=1.5": keyspace.ErrList, "1=-1": keyspace.ErrList, "1=18446744073709551616": keyspace.ErrList,
	} {
		if got, err := keyspace.ParseList(text); !errors.Is(err, want) || got != nil {
			t.Errorf("ParseList(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := keyspace.ParseList("7,64=fast"); err == nil || !strings.Contains(err.Error(), `"64=fast"`) {
		t.Errorf("the error does not name what is wrong: %v", err)
	}
}

// What ParseList takes, an allocator takes as a whole, or it says why not and is empty.
func FuzzParseList(f *testing.F) {
	for _, text := range []string{"", "0,32,9,57", "1=2 3", "1,1", "1=,", "5=18446744073709551615,6"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := keyspace.ParseList(text)
		if err != nil {
			if !errors.Is(err, keyspace.ErrSyntax) && !errors.Is(err, keyspace.ErrList) {
				t.Fatalf("ParseList(%q): %v", text, err)
			}
			return
		}
		var a keyspace.Allocator
		err = a.AddRated(list...)
		switch {
		case err == nil && a.Len() == len(list):
			back := strings.Trim(a.Tree(), "()")
			if (back == "") != (len(list) == 0) {
				t.Fatalf("%d keys, and the tree is %s", len(list), a.Tree())
			}
		case errors.Is(err, keyspace.ErrTaken), errors.Is(err, keyspace.ErrRate):
			if a.Len() != 0 || a.Rate() != 0 {
				t.Fatalf("%v left %d keys behind", err, a.Len())
			}
		default:
			t.Fatalf("ParseList(%q), AddRated: %v, %d keys", text, err, a.Len())
		}
	})
}
