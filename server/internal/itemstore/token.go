package itemstore

import (
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Token identifies a transaction, so that a client can repeat the request without repeating the
// writes. The transaction's own frame holds it: a crash keeps both or loses both.
type Token struct {
	World wire.World
	Text  string
	Hash  [32]byte // of the request
	At    int64    // ms since 1970
}

const (
	// TokenLife is the time for which the store remembers a token, in ms: 10 minutes
	// ("TransactWriteItems", ClientRequestToken).
	TokenLife = 10 * 60 * 1000
	// MaxTokens limits the number of remembered tokens, since SDKs send one with every
	// transaction. At more than 100 transactions a second the store forgets the oldest early.
	MaxTokens = 1 << 16
)

// tokens holds the tokens of the last ten minutes' transactions.
type tokens struct {
	mu    sync.Mutex // acquired before a table's lock
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
	since bootclock.Instant // the token became known then: at its transaction, or at a start
}

// old reports whether the token has expired at the time of another one. The same time must also
// have passed since the token became known, so that setting the clock forward expires no token.
func (k *knownToken) old(at int64) bool {
	return at-k.At >= TokenLife && bootclock.Since(k.since) >= TokenLife*time.Millisecond
}

// find returns the known token, or nil. The lock is held.
func (t *tokens) find(token *Token) *knownToken {
	known := t.known[tokenName{token.World, token.Text}]
	if known == nil || known.old(token.At) {
		return nil
	}
	return known
}

// add remembers a token and drops the expired ones. The lock is held.
func (t *tokens) add(token Token, lsn wal.LSN) {
	if t.known == nil {
		t.known = map[tokenName]*knownToken{}
	}
	known := &knownToken{token, lsn, bootclock.Now()}
	t.known[tokenName{token.World, token.Text}] = known
	t.order = append(t.order, known)
	for len(t.order) > MaxTokens || t.order[0].old(token.At) {
		name := tokenName{t.order[0].World, t.order[0].Text}
		if t.known[name] == t.order[0] { // and not a newer one with the same name
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
	world := wire.World{Account: strings.Clone(d.text()), Region: strings.Clone(d.text())}
	token := Token{World: world, Text: strings.Clone(d.text())}
	hash := d.text()
	if copy(token.Hash[:], hash) != len(hash) || len(hash) != len(token.Hash) {
		d.fail("bad token")
	}
	token.At = int64(d.uvarint()) //nolint:gosec // written by appendTokenBody, or corrupt
	return token
}
