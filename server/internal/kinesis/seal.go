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

// sealOverhead is the length of a sealed text beyond its own: the nonce and the tag.
const sealOverhead = 12 + 16

// sealer makes and reads the API's opaque tokens: base64 of a mark and of AES-256-GCM (a random
// 96-bit nonce, the text, a 128-bit tag) under the data directory's key, with the token's kind and
// the world as additional data. The mark is fixed for a kind, and most kinds have none. Clients
// cannot read or forge tokens, nor use them in another world. Tokens stay valid over restarts.
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
	mark := markOf(kind)
	sealed := make([]byte, 0, len(mark)+len(text)+sealOverhead)
	sealed = s.aead.Seal(append(sealed, mark...), nil, text, sealedWith(kind, world))
	return base64.StdEncoding.EncodeToString(sealed)
}

// open returns the sealed content, or false for any token that this sealer did not make.
func (s *sealer) open(kind byte, world wire.World, token string) ([]byte, bool) {
	mark := markOf(kind)
	sealed, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(sealed) < len(mark) || string(sealed[:len(mark)]) != mark {
		return nil, false
	}
	text, err := s.aead.Open(nil, nil, sealed[len(mark):], sealedWith(kind, world))
	return text, err == nil
}

// markOf returns the bytes before the sealed text: AWS's for iterators, none for other kinds.
func markOf(kind byte) string {
	if kind == sealIterator {
		return iteratorMark
	}
	return ""
}

func sealedWith(kind byte, world wire.World) []byte {
	data := make([]byte, 0, 64)
	data = append(data, kind)
	data = append(data, world.Account...)
	data = append(data, '/')
	return append(data, world.Region...)
}
