package wire

import (
	"net/url"
	"strings"
	"testing"
)

func TestForm(t *testing.T) {
	form, err := ParseForm([]byte("Action=Put+it&A.B.member.10=ten&A.B.member.9=nine&A.C=%26%3D" +
		"&Empty=&&A.C=last&Bare&"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Action": "Put it", "Empty": "", "Bare": "", "None": ""} {
		if got := form.Get(name).Value(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if form.Get("None") != nil || form.Get("Empty") == nil || form.Get("None").Get("x") != nil {
		t.Error("what was sent and what was not are alike")
	}
	if got := form.Get("A").Get("C").Value(); got != "last" {
		t.Errorf("A.C is %q, want the last one", got)
	}
	list, err := form.Get("A").Get("B").List()
	if err != nil || len(list) != 2 || list[0].Value() != "nine" || list[1].Value() != "ten" {
		t.Errorf("the list is %v, %v", list, err)
	}
	for _, name := range []string{"Empty", "None"} {
		if list, err := form.Get(name).List(); err != nil || len(list) != 0 {
			t.Errorf("the list %s: %v, %v", name, list, err)
		}
	}
}

func TestFormRefused(t *testing.T) {
	for name, body := range map[string]string{
		"escape in a name":  "%zz=1",
		"escape in a value": "a=%f",
		"depth":             strings.Repeat("a.", maxFormDepth) + "a=1",
		"size":              strings.Repeat("a&", maxParameters+1),
	} {
		if _, err := ParseForm([]byte(body)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := ParseForm([]byte(strings.Repeat("a&", maxParameters) + strings.Repeat("&", 1000))); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	for _, number := range []string{"0", "-1", "x", "99999999999999999999", ""} {
		form, err := ParseForm([]byte("L.member." + number + "=1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := form.Get("L").List(); err == nil {
			t.Errorf("a member with the number %q", number)
		}
	}
}

// FuzzForm compares with the standard library where that reads the form: each parameter's last
// value is found by its path.
func FuzzForm(f *testing.F) {
	f.Add("Action=X&MetricData.member.1.Value=1&&a=%20+&")
	f.Add("a..b=1&.=2&=3&a=4;5")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := ParseForm([]byte(body))
		if strings.Contains(body, ";") { // which url.ParseQuery does not take
			return
		}
		values, wrong := url.ParseQuery(body)
		if err != nil {
			return
		}
		if wrong != nil {
			t.Fatalf("taken, though %v", wrong)
		}
		for name, all := range values {
			at := form
			for part := range strings.SplitSeq(name, ".") {
				at = at.Get(part)
			}
			if at == nil || at.Value() != all[len(all)-1] {
				t.Errorf("%q is %v, want %q", name, at, all[len(all)-1])
			}
			_, _ = at.List()
		}
	})
}
