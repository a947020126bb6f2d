package wire

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gopkg.in/ini.v1"
)

func TestParseCredentials(t *testing.T) {
	c, err := ParseCredentials([]byte("\ufeff# who may call\r\n\n[producer]\n" +
		"aws_access_key_id = AKIA1\naws_secret_access_key=a+/=b#c;\"d\"\n\n;\n" +
		"[ the consumer ]\n AWS_Access_Key_ID=111122223333 \n\taws_secret_access_key\t=\ts%(x)s\n" +
		"aws_session_token = tok==\n[a.b]\naws_secret_access_key = x\naws_access_key_id = y"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Key{
		"AKIA1":        {AccessKeyID: "AKIA1", SecretAccessKey: `a+/=b#c;"d"`},
		"111122223333": {AccessKeyID: "111122223333", SecretAccessKey: "s%(x)s", SessionToken: "tok=="},
		"y":            {AccessKeyID: "y", SecretAccessKey: "x"},
	}
	if len(c.keys) != len(want) {
		t.Errorf("%d keys, want %d", len(c.keys), len(want))
	}
	for id, key := range want {
		if c.keys[id] != key {
			t.Errorf("%s is another", id)
		}
	}
}

func TestBadCredentials(t *testing.T) {
	const id, secret = "aws_access_key_id = SECRET1\n", "aws_secret_access_key = SECRET2\n"
	for _, c := range []struct {
		name, text string
		want       []string // the faults, in order
	}{
		{"nothing", "", []string{"there is no access key"}},
		{"only comments", "# x\n", []string{"there is no access key"}},
		{"no secret", "\n[p]\n" + id, []string{"line 2: [p]: aws_secret_access_key is missing"}},
		{"no id", "[p]\n" + secret, []string{"line 1: [p]: aws_access_key_id is missing"}},
		{
			"an empty profile", "[p]\n[q]\n" + id + secret,
			[]string{
				"line 1: [p]: aws_access_key_id is missing",
				"line 1: [p]: aws_secret_access_key is missing",
			},
		},
		{"no profile", id + "[p]\n" + secret, []string{
			"line 1: a setting before the first [profile]", "line 2: [p]: aws_access_key_id is missing",
		}},
		{"a secret alone", "[p]\n" + id + secret + "SECRET3\n", []string{"line 4: [p]: want name = value"}},
		{"a secret first", "SECRET3\n", []string{"line 1: want name = value"}},
		{
			"a misspelt name", "[p]\n" + id + secret + "aws_sesion_token = SECRET3",
			[]string{"line 4: [p]: want aws_access_key_id, aws_secret_access_key or aws_session_token"},
		},
		{
			"a setting twice", "[p]\n" + id + secret + secret,
			[]string{"line 4: [p]: aws_secret_access_key is there twice"},
		},
		{
			"a profile twice", "[p]\n" + id + secret + "[p]\naws_access_key_id = b\n" + secret,
			[]string{"line 4: [p]: the profile is there twice, first in line 1"},
		},
		{
			"a key twice", "[p]\naws_access_key_id = k\n" + secret + "[q]\naws_access_key_id = k\n" + secret,
			[]string{`line 4: [q]: the access key "k" is there twice, first in the profile of line 1`},
		},
		{"an empty secret", "[p]\n" + id + "aws_secret_access_key =\n", []string{
			"line 3: [p]: aws_secret_access_key is empty",
		}},
		{"a comment behind", "[p]\n" + id + "aws_secret_access_key = SECRET3 # mine\n", []string{
			"line 3: [p]: the value of aws_secret_access_key has blanks in it",
		}},
		{"a secret as id", "[p]\naws_access_key_id = SECRET3/+\n" + secret, []string{
			"line 1: [p]: an access key id of 9 characters: want 1 to 128",
		}},
		{"an open bracket", "[p\n" + id + secret, []string{"line 1: [?]: want [name], alone on its line"}},
		{"more than a name", "[p] SECRET3\n" + id + secret, []string{"want [name], alone"}},
		{"no name", "[]\n" + id + secret, []string{"want [name], alone"}},
		{"too much", strings.Repeat("#", maxCredentials+1), []string{"want at most 262144"}},
		{"UTF-16", "\xff\xfe[\x00p\x00]\x00", []string{"line 1: want name = value"}},
	} {
		credentials, err := ParseCredentials([]byte(c.text))
		if err == nil || credentials != nil {
			t.Errorf("%s: taken", c.name)
			continue
		}
		faults := strings.Split(err.Error(), "\n")
		if len(faults) != len(c.want) {
			t.Errorf("%s: %d faults, want %d: %v", c.name, len(faults), len(c.want), err)
			continue
		}
		for i := range faults {
			if !strings.Contains(faults[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, faults[i], c.want[i])
			}
		}
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: a value is told: %v", c.name, err)
		}
	}
}

func TestNewCredentials(t *testing.T) {
	good := Key{AccessKeyID: "a", SecretAccessKey: "b"}
	for _, c := range []struct {
		keys []Key
		want string
	}{
		{nil, "there is no access key"},
		{[]Key{good, good}, `the access key "a" is there twice`},
		{[]Key{{AccessKeyID: "a"}}, `the access key "a" has no secret`},
		{[]Key{{SecretAccessKey: "b"}}, "an access key id of 0 characters"},
		{[]Key{{AccessKeyID: strings.Repeat("a", 129), SecretAccessKey: "b"}}, "of 129 characters"},
	} {
		if _, err := NewCredentials(c.keys...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.keys, err, c.want)
		}
	}
}

// TestSecretsAreNotPrinted, in any way of printing the values.
func TestSecretsAreNotPrinted(t *testing.T) {
	key := Key{AccessKeyID: "a", SecretAccessKey: "SECRET", SessionToken: "SECRET"}
	c, err := NewCredentials(key)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "c", c, "key", key)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", c, "key", key)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		_, _ = fmt.Fprintf(&log, verb+"\n", c)
		_, _ = fmt.Fprintf(&log, verb+"\n", key)
		_, _ = fmt.Fprintf(&log, verb+"\n", struct {
			C *Credentials
			K []Key
		}{c, []Key{key}})
	}
	if strings.Contains(log.String(), "SECRET") || strings.Contains(log.String(), fmt.Sprintf("%x", "SECRET")) {
		t.Errorf("it is:\n%s", log.String())
	}
	if !strings.Contains(log.String(), "1 access keys") || !strings.Contains(log.String(), `access key "a"`) {
		t.Errorf("nothing is:\n%s", log.String())
	}
	var none *Credentials
	if got := fmt.Sprint(none); got != "no credentials" {
		t.Errorf("nil is %q", got)
	}
}

// FuzzParseCredentials compares with a library for INI files: it must read the same keys from every
// accepted text.
func FuzzParseCredentials(f *testing.F) {
	f.Add("[p]\naws_access_key_id = a\naws_secret_access_key = b\naws_session_token = c\n")
	f.Add("# x\n[p]\nAWS_access_key_id=a\naws_secret_access_key=\"b'\n[q.r]\n;\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCredentials([]byte(text))
		if err != nil {
			return
		}
		if strings.Contains(text, "`") || strings.Contains(text, `"""`) {
			return // quotes that the library knows, and the SDKs do not
		}
		file, err := ini.LoadSources(ini.LoadOptions{
			InsensitiveKeys: true, IgnoreContinuation: true, IgnoreInlineComment: true,
			PreserveSurroundedQuote: true, KeyValueDelimiters: "=", ChildSectionDelimiter: "\x00",
		}, []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		n := 0
		for _, section := range file.Sections() {
			if len(section.Keys()) == 0 {
				continue
			}
			n++
			value := func(name string) string { return section.Key(name).Value() }
			want := Key{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")}
			if c.keys[want.AccessKeyID] != want {
				t.Errorf("%q: [%s] is another key", text, section.Name())
			}
		}
		if n != len(c.keys) {
			t.Errorf("%q: %d keys, want %d", text, len(c.keys), n)
		}
	})
}
