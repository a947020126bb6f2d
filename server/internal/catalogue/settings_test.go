package catalogue

import "testing"

// The records between the start and the stop count as encrypted, however often that happens.
func TestEncryptedSpans(t *testing.T) {
	var s Settings
	s.Encrypt("a", 100, 0)
	s.Encrypt("b", 150, 0)
	s.Plain(200)
	s.Plain(250)
	s.Encrypt("c", 300, 0)
	check := func(want string) {
		t.Helper()
		var got string
		for _, ms := range []int64{0, 99, 100, 199, 200, 299, 300, 9999} {
			got += map[bool]string{true: "K", false: "-"}[s.Encrypts(ms)]
		}
		if got != want {
			t.Errorf("the records are %s, want %s", got, want)
		}
	}
	check("--KK--KK")
	s.Plain(400)
	check("--KK--K-")
	s.Encrypt("d", 500, 200) // the first span has expired
	check("------KK")
	for i := range int64(2 * maxSpans) {
		s.Plain(600 + 2*i)
		s.Encrypt("e", 601+2*i, 0)
	}
	if len(s.Encrypted) != maxSpans {
		t.Errorf("%d spans are kept, want %d", len(s.Encrypted), maxSpans)
	}
	if !s.Encrypts(1 << 40) {
		t.Error("the latest span is forgotten")
	}
}
