package cboritem_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

func scanner(t testing.TB, digits string) cboritem.Scanner {
	t.Helper()
	document, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return cboritem.NewScanner(document)
}

// Strings come in one piece or in chunks, with heads of every width, and behind tags.
func TestStrings(t *testing.T) {
	for digits, want := range map[string]string{
		"60": "", "63 616263": "abc", "78 03 616263": "abc", "79 0003 616263": "abc",
		"7a 00000003 616263": "abc", "7b 0000000000000003 616263": "abc",
		"7f ff": "", "7f 61 61 62 6263 ff": "abc", "c1 63 616263": "abc", "d9 d9f7 c0 61 61": "a",
	} {
		s := scanner(t, digits)
		if got := string(s.Text()); got != want || s.End() != nil {
			t.Errorf("%s: %q, %v", digits, got, s.Err())
		}
	}
	s := scanner(t, "5f 41 61 42 6263 ff")
	if got := string(s.Bytes()); got != "abc" || s.End() != nil {
		t.Errorf("%q, %v", got, s.Err())
	}
}

// AppendHead chooses the shortest form.
func TestAppendHead(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "60", 23: "77", 24: "7818", 255: "78ff", 256: "790100", 65535: "79ffff", 65536: "7a00010000",
		math.MaxUint32: "7affffffff", math.MaxUint32 + 1: "7b0000000100000000",
	} {
		if got := hex.EncodeToString(cboritem.AppendHead(nil, cboritem.Text, n)); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := string(cboritem.AppendString([]byte{1}, cboritem.Bytes, "ab")); got != "\x01\x42ab" {
		t.Errorf("%q", got)
	}
}

// Whole numbers and floats have every width.
func TestNumbers(t *testing.T) {
	for digits, want := range map[string]int64{
		"00": 0, "17": 23, "18 18": 24, "18 00": 0, "19 ffff": 65535, "1a ffffffff": math.MaxUint32,
		"1b 7fffffffffffffff": math.MaxInt64, "20": -1, "3b 7fffffffffffffff": math.MinInt64,
		"c1 1b 000001a013accc38": 0x1a013accc38,
	} {
		s := scanner(t, digits)
		if n, _, whole := s.Number(); n != want || !whole || s.End() != nil {
			t.Errorf("%s: %d, %v", digits, n, s.Err())
		}
	}
	for digits, want := range map[string]float64{
		"f9 3e00": 1.5, "f9 0001": math.Ldexp(1, -24), "f9 c400": -4, "fa 3fc00000": 1.5,
		"fb 3ff8000000000000": 1.5, "c1 fb 41d452d9e2400000": 1363896201, "f9 fc00": math.Inf(-1),
	} {
		s := scanner(t, digits)
		if _, f, whole := s.Number(); f != want || whole || s.End() != nil {
			t.Errorf("%s: %v, %v", digits, f, s.Err())
		}
	}
	s := scanner(t, "f9 7e00")
	if _, f, _ := s.Number(); !math.IsNaN(f) {
		t.Error(f)
	}
}

// Arrays and maps have definite and indefinite lengths. Items that are skipped leave no trace.
func TestContainers(t *testing.T) {
	for _, digits := range []string{
		"83 01 02 03", "9f 01 02 03 ff", "98 03 01 02 03", "9b 0000000000000003 01 02 03",
	} {
		s, sum := scanner(t, digits), int64(0)
		for left := s.Array(); s.More(&left); {
			n, _, _ := s.Number()
			sum = sum*10 + n
		}
		if sum != 123 || s.End() != nil {
			t.Errorf("%s: %d, %v", digits, sum, s.Err())
		}
	}
	const skipped = "9f 5f 41 00 ff 82 f6 f7 bf 01 f9 0000 ff c2 42 0100 f8 ff 7f ff a1 20 80 ff"
	for _, digits := range []string{
		"a2 61 61 " + skipped + " 61 62 07", "bf 61 61 " + skipped + " 61 62 07 ff",
	} {
		s, b := scanner(t, digits), int64(0)
		for left := s.Map(); s.More(&left); {
			if string(s.Text()) == "b" {
				b, _, _ = s.Number()
			} else {
				s.Skip()
			}
		}
		if b != 7 || s.End() != nil {
			t.Errorf("%s: %d, %v", digits, b, s.Err())
		}
	}
	s := scanner(t, "f6 f7 60")
	for _, want := range []bool{true, true, false} {
		if s.Null() != want {
			t.Error("null and undefined are not seen")
		}
	}
	if !s.IsText() || s.Left() != 1 {
		t.Error("the text is not seen")
	}
}

// Each error of a document has its own value, and ends the reading.
func TestErrors(t *testing.T) {
	for digits, want := range map[string]error{
		"": io.ErrUnexpectedEOF, "19 00": io.ErrUnexpectedEOF, "62 61": io.ErrUnexpectedEOF,
		"7b ffffffffffffffff 61": io.ErrUnexpectedEOF, "9b 7fffffffffffffff": io.ErrUnexpectedEOF,
		"bb ffffffffffffffff 00": io.ErrUnexpectedEOF, "9f 01": io.ErrUnexpectedEOF,
		"7f 61 61": io.ErrUnexpectedEOF, "c1": io.ErrUnexpectedEOF, "a1 01": io.ErrUnexpectedEOF,
		"1c": cboritem.ErrMalformed, "1f": cboritem.ErrMalformed, "ff": cboritem.ErrMalformed,
		"df 00": cboritem.ErrMalformed, "7f 41 61 ff": cboritem.ErrMalformed,
		"7f 7f ff ff": cboritem.ErrMalformed, "00 00": cboritem.ErrMalformed,
		"7f 7f ff": cboritem.ErrMalformed,
		"81 ff":    cboritem.ErrMalformed, "bf 01 ff": cboritem.ErrMalformed,
		"f8 18":                         cboritem.ErrMalformed,
		strings.Repeat("81", 31) + "00": nil,
		strings.Repeat("81", 32) + "00": cboritem.ErrDeep,
		strings.Repeat("9f", 5000):      cboritem.ErrDeep,
	} {
		s := scanner(t, digits)
		s.Skip()
		if err := s.End(); !errors.Is(err, want) {
			t.Errorf("%.20s: %v, want %v", digits, err, want)
		}
	}
	for _, digits := range []string{"9b ffffffffffffffff ff", "9b 8000000000000000 ff", "84 00 00 00"} {
		s := scanner(t, digits)
		for left := s.Array(); s.More(&left); {
			s.Skip()
		}
		if err := s.End(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", digits, err)
		}
	}
	for digits, read := range map[string]func(*cboritem.Scanner){
		"41 61": func(s *cboritem.Scanner) { s.Text() }, "61 61": func(s *cboritem.Scanner) { s.Bytes() },
		"a0": func(s *cboritem.Scanner) { s.Array() }, "80": func(s *cboritem.Scanner) { s.Map() },
		"f5":                  func(s *cboritem.Scanner) { s.Number() },
		"1b 8000000000000000": func(s *cboritem.Scanner) { s.Number() },
		"3b 8000000000000000": func(s *cboritem.Scanner) { s.Number() },
		"c2 41 01":            func(s *cboritem.Scanner) { s.Number() },
	} {
		s := scanner(t, digits)
		read(&s)
		n, _, _ := s.Number()
		if !errors.Is(s.End(), cboritem.ErrMismatch) || n != 0 || len(s.Text()) > 0 || s.Left() > 0 {
			t.Errorf("%s: %v", digits, s.Err())
		}
	}
}

// A string is a part of the document. An append to it does not change the rest.
func TestCapacity(t *testing.T) {
	s := scanner(t, "42 6162 41 63")
	first := s.Bytes()
	_ = append(first, 'x')
	if second := s.Bytes(); string(second) != "c" {
		t.Errorf("%q", second)
	}
}

// FuzzSkip compares the scanner with another library: both accept the same documents.
func FuzzSkip(f *testing.F) {
	for _, digits := range []string{
		"a2 61 61 9f 01 ff 62 6263 f9 3e00", "bf 61 61 5f 41 00 41 01 ff ff", "c1 1b 000001a013accc38",
		"f8 ff", "f8 18", "7f 61 61 ff", "9b 7fffffffffffffff", "d9 d9f7 80", strings.Repeat("81", 40),
	} {
		document, _ := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		before := bytes.Clone(document)
		s := cboritem.NewScanner(document)
		s.Skip()
		err, other := s.End(), cbor.Wellformed(document)
		var deep *cbor.MaxNestedLevelError
		if errors.Is(err, cboritem.ErrDeep) || errors.As(other, &deep) {
			return // the two do not count levels alike
		}
		if (err == nil) != (other == nil) {
			t.Errorf("%x: %v, the library says %v", document, err, other)
		}
		if !bytes.Equal(before, document) {
			t.Error("the document has changed")
		}
	})
}
