package wire

import (
	"errors"
	"fmt"
	"strings"
)

// maxCredentials is the longest file of credentials, in bytes: some thousand keys.
const maxCredentials = 256 << 10

// ParseCredentials reads access keys in the format of AWS' shared credentials file. The server
// accepts the key of every profile:
//
//	# a comment has a line of its own
//	[any-name]
//	aws_access_key_id = …
//	aws_secret_access_key = …
//	aws_session_token = …      (only for a temporary key)
//
// Names of settings are in any case, and values are taken literally. Faults are: other settings; a
// repeated setting, profile or access key; blanks in a value. All are reported at once, each with
// its line and profile, but never with a value.
//
// (The parser is our own since an error must name its line and must not quote it. Libraries for INI
// files do it the other way round; they also merge profiles of one name.)
func ParseCredentials(text []byte) (*Credentials, error) {
	if len(text) > maxCredentials {
		return nil, fmt.Errorf("the credentials have %d bytes: want at most %d",
			len(text), maxCredentials)
	}
	f := credentialsFile{profiles: map[string]int{}, ids: map[string]int{}}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		f.line++
		f.read(strings.TrimSpace(line))
	}
	f.endProfile()
	if err := errors.Join(f.faults...); err != nil {
		return nil, err
	}
	return NewCredentials(f.keys...)
}

// credentialsFile is the state of parsing a file of credentials.
type credentialsFile struct {
	line     int
	profile  string // "" before the first
	began    int    // the profile's line
	settings map[string]string

	profiles map[string]int // where each began
	ids      map[string]int // where the profile of each access key began
	keys     []Key
	faults   []error
}

func (f *credentialsFile) fault(line int, format string, args ...any) {
	where := fmt.Sprintf("line %d: ", line)
	if f.profile != "" {
		where += fmt.Sprintf("[%s]: ", f.profile)
	}
	f.faults = append(f.faults, errors.New(where+fmt.Sprintf(format, args...)))
}

func (f *credentialsFile) read(line string) {
	switch {
	case line == "" || line[0] == '#' || line[0] == ';':
	case line[0] == '[':
		f.endProfile()
		f.beginProfile(line)
	default:
		f.set(line)
	}
}

func (f *credentialsFile) beginProfile(line string) {
	name, closed := strings.CutSuffix(line[1:], "]")
	f.profile, f.began, f.settings = strings.TrimSpace(name), f.line, map[string]string{}
	if !closed || f.profile == "" || strings.ContainsAny(f.profile, "[]=") {
		f.profile = "?" // an invalid name may be a misplaced value
		f.fault(f.line, "want [name], alone on its line")
		return
	}
	if first, twice := f.profiles[f.profile]; twice {
		f.fault(f.line, "the profile is there twice, first in line %d", first)
	}
	f.profiles[f.profile] = f.line
}

func (f *credentialsFile) set(line string) {
	name, value, ok := strings.Cut(line, "=")
	name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
	_, twice := f.settings[name]
	switch {
	case !ok:
		f.fault(f.line, "want name = value")
	case f.profile == "":
		f.fault(f.line, "a setting before the first [profile]")
	case name != "aws_access_key_id" && name != "aws_secret_access_key" &&
		name != "aws_session_token":
		f.fault(f.line, "want aws_access_key_id, aws_secret_access_key or aws_session_token "+
			"before the =")
	case twice:
		f.fault(f.line, "%s is there twice", name)
	case value == "":
		f.fault(f.line, "%s is empty", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		f.fault(f.line, "the value of %s has blanks in it, or more than ASCII: comments have "+
			"lines of their own", name)
	default:
		f.settings[name] = value
		return
	}
	if f.settings != nil {
		f.settings[name] = "" // it is there, and has been complained about
	}
}

// endProfile makes a key of the current profile, if there is one.
func (f *credentialsFile) endProfile() {
	if f.settings == nil {
		return
	}
	before := len(f.faults)
	for _, name := range [...]string{"aws_access_key_id", "aws_secret_access_key"} {
		if _, ok := f.settings[name]; !ok {
			f.fault(f.began, "%s is missing", name)
		}
	}
	key := Key{
		AccessKeyID:     f.settings["aws_access_key_id"],
		SecretAccessKey: f.settings["aws_secret_access_key"],
		SessionToken:    f.settings["aws_session_token"],
	}
	f.settings = nil
	if len(f.faults) > before || key.AccessKeyID == "" || key.SecretAccessKey == "" {
		return
	}
	if err := key.check(); err != nil {
		f.fault(f.began, "%v", err)
	} else if first, twice := f.ids[key.AccessKeyID]; twice {
		f.fault(f.began, "the access key %q is there twice, first in the profile of line %d",
			key.AccessKeyID, first)
	} else {
		f.ids[key.AccessKeyID] = f.began
		f.keys = append(f.keys, key)
	}
}
