package leasetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

const shard1 = "shardId-000000000001"

// Two workers begin a table in the middle of a reshard, with different origins and different first
// shards. One origin holds for all rows, whichever worker is first.
func oneOrigin(b *bench) {
	mine := runnel.FromTime(orders.Created.UTC())
	for name, order := range map[string][]string{
		"the smaller shard first": {shard0, shard1},
		"the larger shard first":  {shard1, shard0},
	} {
		origins := map[string]runnel.From{shard0: mine, shard1: runnel.FromOldest()}
		for _, key := range order { // neither worker saw the other's row
			bound, _, err := b.table.Begin(b.ctx(), fresh(runnel.ShardID(key)), origins[key])
			b.must(err)
			if bound.Origin != origins[key] || bound.Synced {
				b.Fatalf("%s: %s begun as %+v", name, key, bound)
			}
		}
		// Both look again. The larger shard is the first one by now.
		bound, err := b.table.Bind(b.ctx(), mine)
		b.must(err)
		if bound.Origin != runnel.FromOldest() || bound.Synced || bound.New {
			b.Fatalf("%s: bound %+v", name, bound)
		}
		again, _, err := b.table.Begin(b.ctx(), fresh(shard1), bound.Origin)
		if b.must(err); again != bound {
			b.Fatalf("%s: begun again as %+v, want %+v", name, again, bound)
		}
		b.must(b.table.MarkSynced(b.ctx(), bound))
		for _, l := range b.rows() {
			if l.Beginning || l.Origin == nil || *l.Origin != bound.Origin || l.Counter != 0 {
				b.Errorf("%s: %+v", name, l)
			}
			b.must(b.table.Delete(b.ctx(), l))
		}
	}
}

func (b *bench) rows() []lease.Lease {
	b.Helper()
	leases, _, err := b.table.List(b.ctx())
	b.must(err)
	return leases
}

// cutOff lets so many writes of single rows pass and fails the others, as a crash does.
type cutOff struct {
	lease.DynamoDBAPI
	left int
}

func (c *cutOff) write() error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return nil
}

func (c *cutOff) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.DynamoDBAPI.UpdateItem(ctx, in, opts...)
}

func (c *cutOff) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.DynamoDBAPI.DeleteItem(ctx, in, opts...)
}

// oldRows puts a table as an older version left it: rows without an origin, and its item.
func oldRows(b *bench, origin runnel.From) {
	for _, key := range []string{shard0, shard1} {
		b.put(item{
			"leaseKey": str(key), "leaseCounter": num("7"), "checkpoint": str("TRIM_HORIZON"),
			"leaseOwner": str("w1"), "runnelStream": str(orders.String()), "runnelHold": str("h"),
		})
	}
	b.put(item{
		"leaseKey": str("runnelStream"), "entityType": str("RUNNEL_STREAM"),
		"runnelStream": str(orders.String()), "runnelOrigin": str(string(origin.Word())),
		"runnelFrom": num("1700000000123"), "runnelSynced": num("1"),
	})
}

// mended checks the table of oldRows after a mend, and deletes the rows.
func mended(b *bench, origin runnel.From) {
	b.Helper()
	bound, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if bound != (lease.Binding{Origin: origin, Synced: true}) {
		b.Errorf("bound: %+v", bound)
	}
	rows := b.rows()
	if len(rows) != 2 {
		b.Errorf("%d rows", len(rows))
	}
	for _, l := range rows {
		if l.Origin == nil || *l.Origin != origin ||
			l.Counter != 7 || l.Owner != "w1" || l.Hold != "h" {
			b.Errorf("mended as %+v", l)
		}
		b.must(b.table.Delete(b.ctx(), l))
	}
}

// A worker that mends the table of an older version dies between any two steps. The item goes last,
// so the next worker finds all that it needs.
func mendCutOff(b *bench) {
	origin := runnel.FromLatest().Pin(orders.Created.UTC())
	for writes := range 4 {
		oldRows(b, origin)
		table := b.open(&cutOff{DynamoDBAPI: b.api, left: writes}, orders)
		bound, err := table.Bind(b.ctx(), runnel.FromOldest())
		b.must(err)
		if bound.Origin != origin || !bound.Old() || !bound.Synced {
			b.Fatalf("bound: %+v", bound)
		}
		if err := table.MarkSynced(b.ctx(), bound); errors.Is(err, errCut) != (writes < 3) {
			b.Fatalf("after %d writes: %v", writes, err)
		}
		bound, err = b.table.Bind(b.ctx(), runnel.FromOldest())
		b.must(err)
		if bound.Origin != origin || !bound.Synced {
			b.Fatalf("bound after %d writes: %+v", writes, bound)
		}
		b.must(b.table.MarkSynced(b.ctx(), bound))
		mended(b, origin)
	}
}

// Many workers mend the table of an older version at once, while its owner writes.
func mendTogether(b *bench) {
	origin := runnel.FromLatest().Pin(orders.Created.UTC())
	oldRows(b, origin)
	bound, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	held := b.keep(b.table.Get(b.ctx(), shard0))
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if err := b.table.MarkSynced(b.ctx(), bound); err != nil {
				b.Error(err)
			}
		})
	}
	for range 5 {
		if held, err = b.table.Renew(b.ctx(), held); err != nil {
			b.Errorf("the owner lost the lease: %v", err)
			break
		}
	}
	group.Wait()
	if held.Counter != 12 {
		b.Errorf("the counter is %d", held.Counter)
	}
	l := b.keep(b.table.Get(b.ctx(), shard0))
	b.must(b.table.Delete(b.ctx(), l))
	b.put(item{
		"leaseKey": str(shard0), "leaseCounter": num("7"), "checkpoint": str("TRIM_HORIZON"),
		"leaseOwner": str("w1"), "runnelHold": str("h"),
		"runnelOrigin": str("LATEST"), "runnelOriginTime": num("1700000000123"),
	})
	mended(b, origin)
}

// A table that was begun is marked until all of it is there, also if the worker that removes the
// mark dies.
func markCutOff(b *bench) {
	origin := runnel.FromTime(orders.Created.UTC())
	bound, _, err := b.table.Begin(b.ctx(), fresh(shard0), origin)
	b.must(err)
	table := b.open(&cutOff{DynamoDBAPI: b.api}, orders)
	if err := table.MarkSynced(b.ctx(), bound); !errors.Is(err, errCut) {
		b.Fatalf("got %v", err)
	}
	bound, err = b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if bound != (lease.Binding{Origin: origin}) {
		b.Fatalf("bound: %+v", bound)
	}
	// The row goes away meanwhile, as by the hand of a person. The mark does not bring it back.
	b.must(b.table.Delete(b.ctx(), b.keep(b.table.Get(b.ctx(), shard0))))
	b.must(b.table.MarkSynced(b.ctx(), bound))
	if rows := b.rows(); len(rows) != 0 {
		b.Fatalf("rows: %+v", rows)
	}
}

// A row at LATEST or AT_TIMESTAMP that has no time gets one by the first take. The next holder
// begins there, and not at a time of its own.
func takeWritesTime(b *bench) {
	first, second := orders.Created.UTC(), orders.Created.UTC().Add(time.Hour)
	for _, word := range []string{"LATEST", "AT_TIMESTAMP"} {
		b.put(item{
			"leaseKey": str(shard0), "leaseCounter": num("7"), "checkpoint": str(word),
			"checkpointSubSequenceNumber": num("0"),
		})
		table := b.table.WithTimes(lease.Times{Latest: first, AtTimestamp: first})
		l := b.keep(table.Get(b.ctx(), shard0))
		l = b.keep(table.Take(b.ctx(), l, by("w1")))
		b.stands(l)
		table = b.table.WithTimes(lease.Times{Latest: second, AtTimestamp: second})
		l = b.keep(table.Get(b.ctx(), shard0))
		if l = b.keep(table.Take(b.ctx(), l, by("w2"))); !l.From.Equal(first) {
			b.Errorf("%s: the second holder begins at %s, want %s", word, l.From, first)
		}
		b.must(b.table.Delete(b.ctx(), l))
	}
}
