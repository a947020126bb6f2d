package consumer

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
)

// buffer bounds the memory of what a worker has read and its handlers have not finished. Each shard
// that is read has an equal share of it, and one record at least. So a shard whose handler is slow
// or paused keeps no other from reading.
//
// A call asks for as many records as there is room for, by the size of the records before. It
// reserves that room as long as it runs. Its answer may be larger, since sizes differ; then the
// next calls wait. A shard's reads begin small, double while they are full, and shrink when they
// are not, so that idle shards reserve next to nothing.
//
// A share of a thousandth is small: a shard that alone gets many records would make far more calls
// than it may, and a thousand calls of a few records cost more than one of many. So a shard whose
// handler was quick with the last read may ask for more than its share, as a loan. The handler
// still gets pages within the share. The fetcher holds the rest, and discards it after one turn if
// other shards wait for room; it reads that part again later. As long as there are loans, shards
// take turns: each one waits until there is room for the read that it wants.
//
// It is safe for concurrent use.
type buffer struct {
	limit int64

	mu     sync.Mutex
	used   int64      // by all shards
	shards int        // shards that are read
	loans  int        // shards with a loan
	queue  []*account // that wait for room: the first one comes first
	// waits is set while the queue has a shard that other shards must let free memory first. Those
	// behind it wait, too, or it would never get a large read.
	waits bool
}

// account is one shard's part of the buffer.
type account struct {
	of *buffer
	// limit is the number of records that a read may ask for.
	limit int

	// lends is set if the shard's reads may exceed its share: the fetcher can discard them.
	lends bool

	// The buffer's lock guards these.
	quick    bool  // the last read was handed over in less than quickRead
	lent     bool  // a loan is not settled
	held     int64 // of what was read and is not finished, and reserved
	reserved int64 // for the read in hand
	asked    int   // records of that read
	size     int64 // of a Kinesis record, in memory; 0 if none has come
	window   int64 // of the next read
	granted  chan int
	closed   bool
}

const (
	// unknownSize is the size that a record may have as long as none has come: the largest record
	// of a stream by default.
	unknownSize = 1 << 20
	// maxAnswer is the memory of the largest answer: 10 MiB of data in 10,000 records (AWS,
	// "GetRecords").
	maxAnswer = 10<<20 + maxRecords*readOverhead
	// firstWindow is the least read in bytes, if the size of the records is known and shares are
	// not smaller.
	firstWindow = 256 << 10
	// leastWindow is the least read in bytes, if the size of the records is known.
	leastWindow = 16 << 10
	// shardCost is the memory of a shard that is read, beside its records: goroutines and buffers.
	// All shards count for at least bodiesPart of the buffer, since a few busy ones have as many
	// answers under way, and for at most half of it.
	shardCost = 32 << 10
	// bodiesPart is the part of the buffer for the bodies of answers that are being decoded.
	bodiesPart = 8
	// loanPart is the part of the buffer that one read may ask for.
	loanPart = 16
	// userOverhead is the memory of a user record beside its data: the record itself, and the texts
	// of its number and key.
	userOverhead = int64(unsafe.Sizeof(runnel.Record{})) + numberBytes + keyBytes
	// readOverhead is that of a Kinesis record beside its data.
	readOverhead = int64(unsafe.Sizeof(types.Record{})) + numberBytes + keyBytes
	numberBytes  = 64 // of the text of a sequence number
	keyBytes     = 28 // of the text of a partition key, as most are
)

// These are the times of a loan. A handler that takes longer than quickRead for a read gets no loan
// for the next one. After turn a loan ends if other shards wait.
const (
	quickRead = 500 * time.Millisecond
	turn      = time.Second
)

// add adds the account of a shard.
func (b *buffer) add(limit int) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shards++
	return &account{of: b, limit: limit, window: firstWindow, granted: make(chan int, 1)}
}

// room waits until there is room for a read, reserves it, and returns the number of records that
// the read may ask for.
func (a *account) room(ctx context.Context) (int, error) {
	a.of.mu.Lock()
	a.discard() // the room of a read whose answer was not used
	n := 0
	if !a.of.waits {
		n, a.of.waits = a.grant()
	}
	if n == 0 {
		a.of.queue = append(a.of.queue, a)
	}
	a.of.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	select {
	case n = <-a.granted:
		return n, nil
	case <-ctx.Done():
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if i := slices.Index(a.of.queue, a); i >= 0 {
		a.of.queue = slices.Delete(a.of.queue, i, i+1)
		a.of.serve()
	} else {
		<-a.granted
		a.discard()
	}
	return 0, context.Cause(ctx)
}

// share is the memory that a shard may hold. The lock is held.
func (b *buffer) share() int64 { return b.size() / int64(max(1, b.shards)) }

// size is the memory for records. The lock is held.
func (b *buffer) size() int64 {
	return b.limit - min(b.limit/2, max(b.limit/bodiesPart, int64(b.shards)*shardCost))
}

// grant reserves room for a read and returns its records; 0 if there is none. It reports whether
// the shard then waits for the memory of others. The lock is held.
func (a *account) grant() (n int, waits bool) {
	size, window := a.size, a.window
	if size == 0 {
		size, window = unknownSize, maxAnswer
	}
	// A shard may have its share although others exceed theirs, as by the last record of a page.
	share, free := a.of.share(), min(a.of.limit, a.of.size()*5/4)-a.of.used
	// Two reads fit in a share, so that one is under way while the handler works on the other.
	want := min(window, max(share/2, size))
	room := min(want, share-a.held, free)
	if loan := min(window, a.of.limit/loanPart); loan > want && a.lends && a.quick &&
		a.size > 0 && !a.lent && a.held <= share {
		// Without any loan a shard would wait for the memory of others in vain.
		if lendable := a.of.size() - a.of.used; lendable >= loan/2 || a.of.loans > 0 {
			want, room, free = loan, min(loan, lendable), lendable
		}
	}
	if room < max(want/2, min(size, want)) {
		switch {
		case a.of.loans > 0 && room == free:
			return 0, true
		case a.held > 0:
			return 0, false
		}
	}
	n = min(max(1, int(room/size)), a.limit)
	if room >= maxAnswer {
		n = a.limit
	}
	a.asked, a.reserved = n, min(int64(n)*size, maxAnswer)
	if n == 1 {
		a.reserved = min(a.reserved, share) // a larger record has room nevertheless
	}
	if a.lends && n > 1 && a.held+a.reserved > share {
		a.lent = true
		a.of.loans++
	}
	a.held += a.reserved
	a.of.used += a.reserved
	return n, false
}

// unused gives the room of a read back that brought nothing.
func (a *account) unused() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.discard()
}

// discard gives the room of a read back. The lock is held.
func (a *account) discard() {
	reserved := a.reserved
	if a.reserved = 0; reserved > 0 {
		a.repay()
		a.give(reserved)
	}
}

// overdue reports whether the rest of a read that came at a time is to be discarded for other
// shards. That is a loan, or what exceeds the share since there are more shards now.
func (a *account) overdue(since time.Time) bool {
	if a == nil || time.Since(since) < turn {
		return false
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	wanted := len(a.of.queue) > 0 || a.of.used > a.of.size()
	return wanted && (a.lent || a.held > a.of.share())
}

// settle notes that no part of the last read is left that could be discarded. The read came so
// long ago.
func (a *account) settle(took time.Duration) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.quick = took < quickRead
	a.repay()
	a.of.serve()
}

// repay ends a loan. The lock is held.
func (a *account) repay() {
	if a.lent {
		a.lent = false
		a.of.loans--
	}
}

// read takes the answer of a read in the place of the room that was reserved for it.
func (a *account) read(records []types.Record) {
	if a == nil {
		return
	}
	bytes := sizesOf(records)
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.closed {
		return
	}
	if n := int64(len(records)); n > 0 {
		// A new size counts at once if it is larger, since the next answer may be as large.
		a.size = max(bytes/n+1, a.size-a.size/8)
		half := a.of.share() / 2
		least := min(firstWindow, max(half, leastWindow))
		if len(records) >= a.asked {
			a.window = max(min(2*a.window, max(half, a.of.limit/loanPart)), least)
		} else {
			a.window = max(a.window/2, least)
		}
	}
	reserved := a.reserved
	a.reserved = 0
	a.held += bytes
	a.of.used += bytes
	a.give(reserved)
}

// opened counts the memory of user records in the place of that of the Kinesis records that held
// them.
func (a *account) opened(kinesis, user int64) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.give(kinesis - user)
}

// page returns the memory at which a page is full: two of them fit in a share.
func (a *account) page() int64 {
	if a == nil {
		return math.MaxInt64
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.of.share() / 2
}

// free gives back what a handler has finished.
func (a *account) free(bytes int64) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.give(bytes)
}

// close gives back all that the shard holds.
func (a *account) close() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.closed {
		return
	}
	a.of.shards--
	a.repay()
	held := a.held
	a.give(held)
	a.closed = true
}

// give gives memory back, and lets those read that wait for it. The lock is held.
func (a *account) give(bytes int64) {
	if a.closed {
		return
	}
	a.held -= bytes
	a.of.used -= bytes
	a.of.serve()
}

// serve grants room to the shards in the queue, in their order. The lock is held.
func (b *buffer) serve() {
	b.waits = false
	b.queue = slices.DeleteFunc(b.queue, func(a *account) bool {
		n := 0
		if !b.waits {
			n, b.waits = a.grant()
		}
		if n > 0 {
			a.granted <- n
		}
		return n > 0
	})
}

// sizesOf returns the memory of Kinesis records.
func sizesOf(records []types.Record) (sum int64) {
	for i := range records {
		sum += sizeOf(&records[i])
	}
	return sum
}

// sizeOf returns the memory of a Kinesis record.
func sizeOf(r *types.Record) int64 {
	return readOverhead + int64(len(r.Data)+max(0, len(aws.ToString(r.PartitionKey))-keyBytes))
}
