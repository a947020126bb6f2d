package kinesis

import (
	"context"
	"regexp"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// keyID matches the forms of a KeyId that the model's documentation lists: a key's id, that of
// a multi-Region key, an alias, and the ARNs of all of them.
var keyID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:` +
		`(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/)?` +
		`([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})` +
		`|(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:)?alias/[a-z0-9/_-]+)$`)
})

// checkKeyID returns an error unless the id has a valid form. It cannot check whether the key
// exists. The text is KMS's own; that Kinesis passes it on is a guess.
func checkKeyID(id string) *wire.Error {
	if !keyID().MatchString(id) {
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
	if in.EncryptionType != nil && *in.EncryptionType == catalogue.EncryptionNone {
		v.fail(invalid("EncryptionType NONE is not valid, the only valid value is KMS."))
	}
}

// changeEncryption lets apply change an ACTIVE stream's settings. The stream is UPDATING
// afterwards.
func (s *streams) changeEncryption(
	ctx context.Context, world wire.World, in *encryptionInput,
	apply func(st *catalogue.Stream, next *catalogue.Settings, now moment),
) error {
	return s.changeSettings(ctx, world, &in.target, true, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		if err := checkKeyID(*in.KeyID); err != nil {
			return err
		}
		apply(st, next, now)
		return nil
	})
}
