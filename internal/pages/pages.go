// Package pages reads the records of one shard, page by page. It is the one reader of the client
// half: consumers, followers, observers, look-ups and moves of keys are built on it.
//
// A Cursor polls: it makes iterators, makes them again when they are lost, tries again after
// errors, waits between two reads, and reports records that the stream removed unread. A
// Subscription has the same pages from enhanced fan-out, where the stream sends them.
// Neither opens an aggregate; package opener does that.
package pages

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// Source is a shard's pages, in order, by whatever way they come.
type Source interface {
	// Next returns the next page. After the shard's end it returns a page without records that has
	// Ended set, each time. It waits and tries again by the source's own rules, until ctx is done,
	// and then returns the cause of ctx.
	Next(ctx context.Context) (Page, error)
}

// Page is the result of one read.
type Page struct {
	// Records are the Kinesis records that no page had before, in order. They belong to the caller.
	Records []types.Record
	// Behind is how far the page's end is behind the shard's tip. A millisecond means that records
	// may follow that cannot be read yet, or that the server did not say.
	Behind time.Duration
	// Ended is set on the last page of a closed shard, and Children holds the shards that follow,
	// if the server named them.
	Ended    bool
	Children []runnel.Shard
	// Gone is set, with Ended, if the stream no longer has the shard: its end was not read.
	Gone bool
	// Gap is set if the stream may have removed records before this page that were not read.
	Gap bool
	// First is the shard's first sequence number, with a Gap before which no record was read.
	First runnel.SequenceNumber
	// Complete is a time by the stream's clock: each record that arrived up to then is in this page
	// or came before. Zero if that is not known, and without Config.Gaps.
	Complete time.Time
}

// KinesisAPI is the part of the AWS SDK's Kinesis client that a Cursor uses, by an awscbor.Client.
type KinesisAPI = awscbor.API

// Stream is the knowledge of a stream that its cursors share. Its methods are called by the
// goroutines of all of them.
type Stream interface {
	// Horizon returns the age at which the stream removes records, as of the last look.
	Horizon() shardmap.Horizon
	// Same looks at the stream, also for its retention period. It returns nil if the stream is the
	// one with which the reading began; see shardmap.Identity.
	Same(context.Context) error
	// Shards lists the stream's shards.
	Shards(context.Context) ([]runnel.Shard, error)
	// Lasting reports whether an error, of Same for example, ends the reading of the whole stream.
	Lasting(error) bool
}

// Config configures a Cursor. Kinesis, Shard and Stream are required; every other field's zero
// value is its default.
type Config struct {
	// Kinesis reads the shard. Cursors of one stream share it, since it learns whether the server
	// speaks CBOR.
	Kinesis *awscbor.Client
	Stream  string // its name or ARN
	Shard   runnel.ShardID
	// From is where the reading begins.
	From runnel.From
	// Limit is the largest number of records that one read asks for; default the API's, 10,000.
	Limit int
	// Room is called before each GetRecords call, when the call is due, and may wait. It reserves
	// room for the records and returns their number, at least 1, which replaces Limit. Its error
	// ends the reading. Default none.
	Room func(context.Context) (limit int, err error)
	// Unused is called if a call for which Room has reserved brings no page. A page without a call
	// has no reservation: one with Gone, or the end again. Default none.
	Unused func()
	// CallTimeout limits the time of each call; default none.
	CallTimeout time.Duration
	// Pace is the distance between two reads; default none.
	Pace Pace
	// Budget paces the calls; all cursors of the shard share it. Default: one of its own, with the
	// limits of LimitsOf.
	Budget *Budget

	// Attempts is the number of attempts at one page. The renewal of an expired iterator is none,
	// unless it expires again at once. Default 0: no limit.
	Attempts int
	// Backoff is the wait between two attempts. After a throttle of GetRecords the budget waits.
	Backoff retry.Backoff
	// Persist makes the cursor try again after every error, except for a lasting one. By default it
	// returns an error that another attempt would not mend, such as a denied access.
	Persist bool
	// OnFailure is called before the wait after a failed attempt that is neither a throttle nor an
	// expired iterator, with the number of failures in a row. Default none.
	OnFailure func(err error, failures int)
	// OnThrottle is called after each attempt that the server refused for coming too soon. Default
	// none.
	OnThrottle func()

	// Of is the shared knowledge of the stream. Without it, a shard or a stream that is gone is an
	// error, and Checked and Gaps must not be set.
	Of Stream
	// Checked makes the cursor check with each new iterator that the stream is still the same one.
	Checked bool
	// Gaps makes the cursor detect records that were removed unread. The two fields after it serve
	// that; gap.go describes how.
	Gaps     bool
	Complete time.Time        // Page.Complete where the reading begins; zero if it is not known
	Parents  []runnel.ShardID // of the shard
}
