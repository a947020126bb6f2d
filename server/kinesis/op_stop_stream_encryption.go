package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// stopStreamEncryption notes that an ACTIVE stream is not encrypted any more. It is UPDATING
// for the stream delay. A stream that was not encrypted stays so, and the key need not be the
// stream's (both guesses).
func (s *Service) stopStreamEncryption(
	ctx context.Context, world awswire.World, in *encryptionInput,
) (any, error) {
	return nil, s.changeSettings(ctx, world, &in.target, true, func(
		st *stream, next *settings, now int64,
	) error {
		if err := st.mustBeActive(now); err != nil {
			return err
		}
		if err := checkKeyID(*in.KeyID); err != nil {
			return err
		}
		next.plain(s.until(now))
		return nil
	})
}
