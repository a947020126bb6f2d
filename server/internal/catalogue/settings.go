package catalogue

import (
	"maps"
	"slices"
)

// Settings are the attributes that users set on a stream and read again, apart from its shards, its
// retention period and its consumers. The log holds them as a whole.
type Settings struct {
	Mode      string            `json:"mode"`
	MaxRecord int64             `json:"maxRecord"` // KiB of data and partition key
	Tags      map[string]string `json:"tags,omitempty"`
	Policy    string            `json:"policy,omitempty"` // JSON; "": none
	// Encryption and KeyID are metadata: they encrypt nothing.
	Encryption string   `json:"encryption,omitempty"` // KMS; "": NONE
	KeyID      string   `json:"keyId,omitempty"`
	Encrypted  []Span   `json:"encrypted,omitempty"`  // when records came to be encrypted ones
	Monitoring []string `json:"monitoring,omitempty"` // shard level metrics, sorted
	Warm       int64    `json:"warm,omitempty"`       // MiB/s that the stream is to be ready for
}

// Clone returns a copy that can be changed.
func (s Settings) Clone() Settings {
	s.Tags, s.Monitoring = maps.Clone(s.Tags), slices.Clone(s.Monitoring)
	s.Encrypted = slices.Clone(s.Encrypted)
	return s
}

// Encryption types, as the API names them. The setting is metadata: it encrypts no record, neither
// on the disk nor on the wire, and no key is looked up. It exists so that clients and tools that
// set it can read it again.
const (
	EncryptionNone = "NONE"
	EncryptionKMS  = "KMS"
)

// Span is a time in ms since 1970, [From, Until). Until 0 means that it has not ended.
type Span struct {
	From  int64 `json:"from"`
	Until int64 `json:"until,omitempty"`
}

// maxSpans bounds the number of stored spans, the latest ones. AWS allows 25 changes in 24 hours.
const maxSpans = 100

// EncryptionType returns the stream's EncryptionType.
func (s *Settings) EncryptionType() string {
	if s.Encryption == "" {
		return EncryptionNone
	}
	return s.Encryption
}

// Encrypts reports whether answers call a record that arrived at ms encrypted. They keep doing so
// after encryption was stopped. (AWS, "Start" and "StopStreamEncryption": the time at which the
// stream became ACTIVE again counts.)
func (s *Settings) Encrypts(arrival int64) bool {
	for i := len(s.Encrypted) - 1; i >= 0; i-- {
		if at := s.Encrypted[i]; arrival >= at.From {
			return at.Until == 0 || arrival < at.Until
		}
	}
	return false
}

// Encrypt sets the key. Records that arrive from a time on count as encrypted. It drops spans that
// ended before oldest.
func (s *Settings) Encrypt(key string, from, oldest int64) {
	if s.Encryption == "" {
		s.Encrypted = slices.DeleteFunc(s.Encrypted, func(at Span) bool {
			return at.Until <= oldest
		})
		s.Encrypted = append(s.Encrypted, Span{From: from})
		s.Encrypted = s.Encrypted[max(0, len(s.Encrypted)-maxSpans):]
	}
	s.Encryption, s.KeyID = EncryptionKMS, key
}

// Plain ends encryption for records that arrive from a time on.
func (s *Settings) Plain(from int64) {
	if n := len(s.Encrypted); n > 0 && s.Encrypted[n-1].Until == 0 {
		s.Encrypted[n-1].Until = max(from, s.Encrypted[n-1].From)
	}
	s.Encryption, s.KeyID = "", ""
}
