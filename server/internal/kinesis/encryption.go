package kinesis

import (
	"context"
	"regexp"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

// Encryption types, as the API names them. The setting is metadata: it encrypts no record, neither
// on the disk nor on the wire, and no key is looked up. It exists so that clients and tools that
// set it can read it again.
const (
	encryptionNone = "NONE"
	encryptionKMS  = "KMS"
)

// span is a time in ms since 1970, [From, Until). Until 0 means that it has not ended.
type span struct {
	From  int64 `json:"from"`
	Until int64 `json:"until,omitempty"`
}

// maxSpans bounds the number of stored spans, the latest ones. AWS allows 25 changes in 24 hours.
const maxSpans = 100

// encryption returns the stream's EncryptionType.
func (s *settings) encryption() string {
	if s.Encryption == "" {
		return encryptionNone
	}
	return s.Encryption
}

// encrypts reports whether answers call a record that arrived at ms encrypted. They keep doing so
// after encryption was stopped. (AWS, "Start" and "StopStreamEncryption": the time at which the
// stream became ACTIVE again counts.)
func (s *settings) encrypts(arrival int64) bool {
	for i := len(s.Encrypted) - 1; i >= 0; i-- {
		if at := s.Encrypted[i]; arrival >= at.From {
			return at.Until == 0 || arrival < at.Until
		}
	}
	return false
}

// encrypt sets the key. Records that arrive from a time on count as encrypted. It drops spans that
// ended before oldest.
func (s *settings) encrypt(key string, from, oldest int64) {
	if s.Encryption == "" {
		s.Encrypted = slices.DeleteFunc(s.Encrypted, func(at span) bool {
			return at.Until <= oldest
		})
		s.Encrypted = append(s.Encrypted, span{From: from})
		s.Encrypted = s.Encrypted[max(0, len(s.Encrypted)-maxSpans):]
	}
	s.Encryption, s.KeyID = encryptionKMS, key
}

// plain ends encryption for records that arrive from a time on.
func (s *settings) plain(from int64) {
	if n := len(s.Encrypted); n > 0 && s.Encrypted[n-1].Until == 0 {
		s.Encrypted[n-1].Until = max(from, s.Encrypted[n-1].From)
	}
	s.Encryption, s.KeyID = "", ""
}

// keyID matches the forms of a KeyId that the model's documentation lists: a key's id, that of
// a multi-Region key, an alias, and the ARNs of all of them.
var keyID = regexp.MustCompile(`^(?i:` +
	`(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/)?` +
	`([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})` +
	`|(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:)?alias/[a-z0-9/_-]+)$`)

// checkKeyID returns an error unless the id has a valid form. It cannot check whether the key
// exists. The text is KMS's own; that Kinesis passes it on is a guess.
func checkKeyID(id string) *wire.Error {
	if !keyID.MatchString(id) {
		return fail(codeKeyNotFound, "Invalid keyId %s", id)
	}
	return nil
}

// encryptionInput is the input of starting and stopping encryption.
type encryptionInput struct {
	target
	EncryptionType *string
	KeyID          *string `json:"KeyId"`
}

// validate checks a rule that the model only has in words: KMS is the only valid type. The error's
// text is a guess.
func (in *encryptionInput) validate(v *violations) {
	in.target.validate(v)
	if in.EncryptionType != nil && *in.EncryptionType == encryptionNone {
		v.fail(invalid("EncryptionType NONE is not valid, the only valid value is KMS."))
	}
}

// changeEncryption lets apply change an ACTIVE stream's settings. The stream is UPDATING
// afterwards.
func (s *Service) changeEncryption(
	ctx context.Context, world wire.World, in *encryptionInput,
	apply func(st *stream, next *settings, now int64),
) error {
	return s.changeSettings(ctx, world, &in.target, true, func(
		st *stream, next *settings, now int64,
	) error {
		if err := st.mustBeActive(now); err != nil {
			return err
		}
		if err := checkKeyID(*in.KeyID); err != nil {
			return err
		}
		apply(st, next, now)
		return nil
	})
}
