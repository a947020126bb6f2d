package itemstore

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Token names a transaction, so that a client can ask for it twice and have it made once. It
// stands in the transaction's own frame: what a crash leaves of the one it leaves of the other.
type Token struct {
	World wire.World
	Text  string
	Hash  [32]byte // of what was asked for
	At    int64    // ms since 1970
}

const (
	// TokenLife is how long a token is remembered, in ms: 10 minutes ("TransactWriteItems",
	// ClientRequestToken).
	TokenLife = 10 * 60 * 1000
	// MaxTokens bounds what is remembered, since SDKs give every transaction a token. Beyond
	// it, at more than 100 transactions a second, the oldest are forgotten early.
	MaxTokens = 1 << 16
)

// tokens are those of the transactions of the last ten minutes.
type tokens struct {
	mu    sync.Mutex // before a table's
	known map[tokenName]*knownToken
	order []*knownToken // the oldest first
}

type tokenName struct {
	world wire.World
	text  string
}

type knownToken struct {
	Token
	lsn   wal.LSN           // of its transaction
	since bootclock.Instant // it is known: its transaction, or a start
}

// old reports whether the token's life is over at the time of another one. A clock that is set
// forward ends no life: as much time must have gone by while the token was known.
func (k *knownToken) old(at int64) bool {
	return at-k.At >= TokenLife && bootclock.Since(k.since) >= TokenLife*time.Millisecond
}

// find returns what is known of a token, or nil. The lock is held.
func (t *tokens) find(token *Token) *knownToken {
	known := t.known[tokenName{token.World, token.Text}]
	if known == nil || known.old(token.At) {
		return nil
	}
	return known
}

// add remembers a token, and forgets those that are too old beside it. The lock is held.
func (t *tokens) add(token Token, lsn wal.LSN) {
	if t.known == nil {
		t.known = map[tokenName]*knownToken{}
	}
	known := &knownToken{token, lsn, bootclock.Now()}
	t.known[tokenName{token.World, token.Text}] = known
	t.order = append(t.order, known)
	for len(t.order) > MaxTokens || t.order[0].old(token.At) {
		name := tokenName{t.order[0].World, t.order[0].Text}
		if t.known[name] == t.order[0] { // and not a younger one of the same name
			delete(t.known, name)
		}
		t.order[0] = nil
		t.order = t.order[1:]
	}
}

func (t *tokens) list() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Token, len(t.order))
	for i, known := range t.order {
		list[i] = known.Token
	}
	return list
}

func (t *tokens) restore(from *tokens) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.order = from.known, from.order
}

func appendTokenBody(dst []byte, token Token) []byte {
	for _, text := range []string{
		token.World.Account, token.World.Region, token.Text, string(token.Hash[:]),
	} {
		dst = appendBytes(dst, text)
	}
	return binary.AppendUvarint(dst, uint64(token.At))
}

func (d *decoder) token() Token {
	token := Token{World: wire.World{Account: d.text(), Region: d.text()}, Text: d.text()}
	hash := d.text()
	if copy(token.Hash[:], hash) != len(hash) || len(hash) != len(token.Hash) {
		d.fail("bad token")
	}
	token.At = int64(d.uvarint()) //nolint:gosec // as appendTokenBody wrote it, or nonsense
	return token
}
