package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// stopStreamEncryption marks an ACTIVE stream as not encrypted any more. It is UPDATING for the
// stream delay. A call for an unencrypted stream succeeds, and the key need not be the stream's
// (both guesses).
func (s *Service) stopStreamEncryption(
	ctx context.Context, world wire.World, in *encryptionInput,
) (any, error) {
	return nil, s.streams.changeEncryption(ctx, world, in, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) {
		next.Plain(s.streams.untilStamp(now))
	})
}
