package consumer

import (
	"context"
	"slices"
	"sync"
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
// are not, so that idle shards reserve next to nothing. It is safe for concurrent use.
type buffer struct {
	limit int64

	mu     sync.Mutex
	used   int64      // by all shards
	shards int        // shards that are read
	queue  []*account // that wait for room: the first one comes first
}

// account is one shard's part of the buffer.
type account struct {
	of *buffer
	// limit is the number of records that a read may ask for.
	limit int

	// The buffer's lock guards these.
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
	// firstWindow is the least read in bytes, if the size of the records is known.
	firstWindow = 256 << 10
	// userOverhead is the memory of a user record beside its data: the record itself, and the texts
	// of its number and key.
	userOverhead = int64(unsafe.Sizeof(runnel.Record{})) + numberBytes + keyBytes
	// readOverhead is that of a Kinesis record beside its data.
	readOverhead = int64(unsafe.Sizeof(types.Record{})) + numberBytes + keyBytes
	numberBytes  = 64 // of the text of a sequence number
	keyBytes     = 28 // of the text of a partition key, as most are
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
	a.give(a.reserved) // of a read whose answer was discarded
	a.reserved = 0
	n := a.grant()
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
	} else {
		<-a.granted
		a.give(a.reserved)
		a.reserved = 0
	}
	return 0, context.Cause(ctx)
}

// share is the memory that a shard may hold. The lock is held.
func (b *buffer) share() int64 { return b.limit / int64(max(1, b.shards)) }

// grant reserves room for a read and returns its records; 0 if there is none. The lock is held.
func (a *account) grant() int {
	size, window := a.size, a.window
	if size == 0 {
		size, window = unknownSize, maxAnswer
	}
	share := a.of.share()
	// Two reads fit in a share, so that one is under way while the handler works on the other.
	room := min(window, max(share/2, size), share-a.held, a.of.limit-a.of.used)
	n := int(min(room/size, int64(a.limit)))
	if room >= maxAnswer {
		n = a.limit
	}
	if n <= 0 {
		if a.held > 0 {
			return 0
		}
		n = 1
	}
	a.asked, a.reserved = n, min(int64(n)*size, maxAnswer)
	a.held += a.reserved
	a.of.used += a.reserved
	return n
}

// unused gives the room of a read back that brought nothing.
func (a *account) unused() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.give(a.reserved)
	a.reserved = 0
}

// read takes the answer of a read in the place of the room that was reserved for it.
func (a *account) read(records []types.Record) {
	if a == nil {
		return
	}
	var bytes int64
	for i := range records {
		bytes += sizeOf(&records[i])
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.closed {
		return
	}
	if n := int64(len(records)); n > 0 {
		// A new size counts at once if it is larger, since the next answer may be as large.
		a.size = max(bytes/n+1, a.size-a.size/8)
		if len(records) >= a.asked {
			a.window = max(min(2*a.window, a.of.share()/2), firstWindow)
		} else {
			a.window = max(a.window/2, firstWindow)
		}
	}
	reserved := a.reserved
	a.reserved = 0
	a.held += bytes
	a.of.used += bytes
	a.give(reserved)
}

// opened counts user records in the place of the Kinesis records that held them.
func (a *account) opened(records []types.Record, memory int64) {
	if a == nil {
		return
	}
	for i := range records {
		memory -= sizeOf(&records[i])
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.give(-memory)
}

// full reports whether a page of so many bytes is as large as a page may be: two of them fit in a
// share.
func (a *account) full(page int64) bool {
	if a == nil || page == 0 {
		return false
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return page >= a.of.share()/2
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
	a.of.queue = slices.DeleteFunc(a.of.queue, func(waits *account) bool {
		n := waits.grant()
		if n > 0 {
			waits.granted <- n
		}
		return n > 0
	})
}

// sizeOf returns the memory of a Kinesis record.
func sizeOf(r *types.Record) int64 {
	return readOverhead + int64(len(r.Data)+max(0, len(aws.ToString(r.PartitionKey))-keyBytes))
}
