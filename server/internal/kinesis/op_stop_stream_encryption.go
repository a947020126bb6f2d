package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

// stopStreamEncryption notes that an ACTIVE stream is not encrypted any more. It is UPDATING
// for the stream delay. A stream that was not encrypted stays so, and the key need not be the
// stream's (both guesses).
func (s *Service) stopStreamEncryption(
	ctx context.Context, world wire.World, in *encryptionInput,
) (any, error) {
	return nil, s.changeEncryption(ctx, world, in, func(st *stream, next *settings, now int64) {
		next.plain(s.until(now))
	})
}
