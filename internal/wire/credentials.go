package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
)

// Key is an access key, for signing requests.
type Key struct {
	AccessKeyID     string // 1 to 128 letters, digits and _ - . ; 12 digits name an account too
	SecretAccessKey string
	SessionToken    string // requests bring it as X-Amz-Security-Token; empty: must not
}

// Credentials are the access keys that a server accepts signatures of. Any of them may do anything:
// there are no policies. Credentials are safe for concurrent use. They print as their number, never
// as secrets.
type Credentials struct {
	keys map[string]Key   // by access key id
	now  func() time.Time // for the dates of signatures; see At
}

// NewCredentials makes credentials of at least one key. It reports all faults at once, by the keys'
// ids, without their secrets.
func NewCredentials(keys ...Key) (*Credentials, error) {
	c := &Credentials{keys: make(map[string]Key, len(keys))}
	var faults []error
	if len(keys) == 0 {
		faults = append(faults, errors.New("there is no access key: want at least one"))
	}
	for _, key := range keys {
		if err := key.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		if _, twice := c.keys[key.AccessKeyID]; twice {
			faults = append(faults, fmt.Errorf("the access key %q is there twice",
				key.AccessKeyID))
		}
		c.keys[key.AccessKeyID] = key
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return c, nil
}

// At returns the same keys with the server's clock, which Begin needs for the dates of signatures.
// nil stays nil.
func (c *Credentials) At(now func() time.Time) *Credentials {
	if c == nil {
		return nil
	}
	return &Credentials{keys: c.keys, now: now}
}

func (k Key) check() error {
	const maxKeyID = 128 // AWS: GetAccessKeyInfo, AccessKeyId
	switch {
	case k.AccessKeyID == "" || len(k.AccessKeyID) > maxKeyID || !isKeyID(k.AccessKeyID):
		// Not quoted: a text that is no id may be a misplaced secret.
		return fmt.Errorf("an access key id of %d characters: want 1 to %d letters, digits, "+
			"_, - and .", len(k.AccessKeyID), maxKeyID)
	case k.SecretAccessKey == "":
		return fmt.Errorf("the access key %q has no secret", k.AccessKeyID)
	case strings.ContainsFunc(k.SecretAccessKey+k.SessionToken, unicode.IsSpace):
		return fmt.Errorf("the access key %q has a secret or a token with a blank", k.AccessKeyID)
	}
	return nil
}

func isKeyID(id string) bool {
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		case c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// Format prints the number of keys for every verb: no log shows a secret by accident.
func (c *Credentials) Format(s fmt.State, _ rune) {
	if c == nil {
		_, _ = fmt.Fprint(s, "no credentials")
		return
	}
	_, _ = fmt.Fprintf(s, "%d access keys", len(c.keys))
}

// LogValue returns the text for slog, as Format.
func (c *Credentials) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// Format prints the key's id alone.
func (k Key) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "access key %q", k.AccessKeyID) }

// LogValue returns the text for slog, as Format.
func (k Key) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }
