package kinesis

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The kinds of sealed tokens. The seal authenticates the kind, so that no token passes for one of
// another kind.
const (
	sealIterator      = 'i'
	sealShardsPage    = 's'
	sealStreamsPage   = 'l'
	sealConsumersPage = 'c'
)

// sealer makes and reads the API's opaque tokens: base64 of AES-256-GCM (a random 96-bit nonce, the
// text, a 128-bit tag) under the data directory's key, with the token's kind and the world as
// additional data. Clients cannot read or forge tokens, nor use them in another world. Tokens stay
// valid over restarts.
type sealer struct {
	aead cipher.AEAD
}

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the catalogue's key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("the catalogue's key: %w", err)
	}
	return &sealer{aead}, nil
}

func (s *sealer) seal(kind byte, world wire.World, text []byte) string {
	return base64.StdEncoding.EncodeToString(s.aead.Seal(nil, nil, text, sealedWith(kind, world)))
}

// open returns the sealed content, or false for any token that this sealer did not make.
func (s *sealer) open(kind byte, world wire.World, token string) ([]byte, bool) {
	sealed, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return nil, false
	}
	text, err := s.aead.Open(nil, nil, sealed, sealedWith(kind, world))
	return text, err == nil
}

func sealedWith(kind byte, world wire.World) []byte {
	data := make([]byte, 0, 64)
	data = append(data, kind)
	data = append(data, world.Account...)
	data = append(data, '/')
	return append(data, world.Region...)
}
