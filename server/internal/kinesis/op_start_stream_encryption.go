package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// startStreamEncryption marks an ACTIVE stream as encrypted, with the given key; if it is encrypted
// already, it only changes the key. The stream is UPDATING for the stream delay, and answers call
// later records encrypted. None of them is: see encryption.go.
func (s *Service) startStreamEncryption(
	ctx context.Context, world wire.World, in *encryptionInput,
) (any, error) {
	return nil, s.streams.changeEncryption(ctx, world, in, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) {
		next.Encrypt(*in.KeyID, s.streams.untilStamp(now), st.Horizon(now))
	})
}
