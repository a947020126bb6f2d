package leasetest

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/dynamotable"
	"github.com/runnel-stream/runnel/lease"
)

// The first row of a new table settles the origin, and the rest is created there.
func bindsStream(b *bench) {
	origin := runnel.FromLatest().Pin(orders.Created.UTC())
	bound, err := b.table.Bind(b.ctx(), origin)
	b.must(err)
	if bound != (lease.Binding{Origin: origin, New: true}) {
		b.Fatalf("a new table: %+v", bound)
	}
	net := &lossy{DynamoDBAPI: b.api, lose: 1}
	bound, _, err = b.open(net, orders).Begin(b.ctx(), fresh(shard0), origin)
	b.must(err)
	if bound.Origin != origin || bound.Synced {
		b.Fatalf("begun: %+v", bound)
	}
	// Another worker begins at the same time, and gets the origin of the first.
	other, _, err := b.table.Begin(b.ctx(), fresh(shard0), runnel.FromOldest())
	b.must(err)
	if other != bound {
		b.Fatalf("begun again: %+v, want %+v", other, bound)
	}
	if other, err = b.table.Bind(b.ctx(), runnel.FromOldest()); err != nil || other != bound {
		b.Fatalf("bound: %+v, %v, want %+v", other, err, bound)
	}
	b.must(b.table.MarkSynced(b.ctx(), bound))
	b.must(b.table.MarkSynced(b.ctx(), bound))
	other, err = b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if other != (lease.Binding{Origin: origin, Synced: true}) {
		b.Fatalf("bound: %+v", other)
	}
	if _, err := b.table.Bind(b.ctx(), runnel.FromSequence("49")); err == nil {
		b.Fatal("a sequence number was taken for the origin of a stream")
	}
	for _, stream := range []lease.Stream{
		{Name: "payments", Created: orders.Created},
		{Name: "orders", Created: orders.Created.Add(1e6)}, // 1 ms
	} {
		_, err := b.open(b.api, stream).Bind(b.ctx(), origin)
		var refused *lease.StreamError
		if !errors.As(err, &refused) || !errors.Is(err, lease.ErrOtherStream) {
			b.Fatalf("%s: %v", stream, err)
		}
	}
}

// An older version stored the stream in an item of its own, which stops Java workers. The first
// worker moves it to the rows; the owners and their counters do not change.
func oldTable(b *bench) {
	for _, synced := range []bool{false, true} {
		b.put(item{
			"leaseKey": str(shard0), "leaseCounter": num("7"), "checkpoint": str("TRIM_HORIZON"),
			"leaseOwner": str("w1"), "runnelStream": str(orders.String()), "runnelHold": str("h"),
		})
		held := b.keep(b.table.Get(b.ctx(), shard0))
		old := item{
			"leaseKey": str("runnelStream"), "entityType": str("RUNNEL_STREAM"),
			"runnelStream": str(orders.String()), "runnelOrigin": str("AT_TIMESTAMP"),
			"runnelFrom": num("1700000000500"),
		}
		if synced {
			old["runnelSynced"] = num("1")
		}
		b.put(old)
		bound, err := b.table.Bind(b.ctx(), runnel.FromOldest())
		b.must(err)
		origin := runnel.FromTime(time.UnixMilli(1700000000500).UTC())
		if bound.Origin != origin || bound.Synced != synced || !bound.Old() {
			b.Fatalf("bound: %+v", bound)
		}
		b.must(b.table.MarkSynced(b.ctx(), bound))
		b.must(b.table.MarkSynced(b.ctx(), bound)) // as by another worker
		got := b.keep(b.table.Get(b.ctx(), shard0))
		if got.Origin == nil || *got.Origin != origin || got.Counter != held.Counter ||
			got.Owner != "w1" {
			b.Fatalf("the row is %+v", got)
		}
		bound, err = b.table.Bind(b.ctx(), runnel.FromOldest())
		b.must(err)
		if bound != (lease.Binding{Origin: origin, Synced: true}) {
			b.Fatalf("bound again: %+v", bound)
		}
		b.must(b.table.Delete(b.ctx(), got))
	}
}

func sharedTable(b *bench) {
	b.put(item{
		"leaseKey": str(shard0), "leaseCounter": num("41"),
		"checkpoint": str("TRIM_HORIZON"), "leaseOwner": str("java"),
	})
	bound, err := b.table.Bind(b.ctx(), runnel.FromLatest())
	b.must(err)
	if bound != (lease.Binding{Origin: runnel.FromOldest(), Synced: true}) {
		b.Fatalf("bound %+v", bound)
	}
	b.must(b.table.MarkSynced(b.ctx(), bound))
	leases, skipped, err := b.table.List(b.ctx())
	b.must(err)
	if len(leases) != 1 || len(skipped) != 0 {
		b.Fatalf("%+v %v", leases, skipped)
	}
	taken := b.keep(b.table.Take(b.ctx(), leases[0], by("w1"))) // stamps the row
	b.stands(taken)
	if taken.Origin == nil || *taken.Origin != runnel.FromOldest() {
		b.Fatalf("taken as %+v", taken)
	}
	other := lease.Stream{Name: "orders", Created: orders.Created.Add(1e9)}
	_, err = b.open(b.api, other).Bind(b.ctx(), runnel.FromOldest())
	if !errors.Is(err, lease.ErrOtherStream) {
		b.Fatalf("a recreated stream: %v", err)
	}
}

// The rows of several streams are refused as a whole: none of them is skipped.
func multiStreamTable(b *bench) {
	b.put(item{
		"leaseKey": str("123456789012:orders:1700000000:shardId-000000000000"),
		"shardId":  str(shard0), "streamName": str("123456789012:orders:1700000000"),
		"leaseCounter": num("3"), "checkpoint": str("TRIM_HORIZON"), "leaseOwner": str("java"),
	})
	if _, err := b.table.Bind(b.ctx(), runnel.FromOldest()); !errors.Is(err, lease.ErrMultiStream) {
		b.Fatalf("got %v", err)
	}
}

// Programs and people write a lease without an owner in several ways. Each of them can be taken. A
// table of Java's has no index by owner, which would refuse two of them.
func ownersThatAreNone(b *bench) {
	plain := &bench{T: b.T, api: b.api, name: b.name + "-plain"}
	b.must(dynamotable.Table{
		DynamoDB: b.api, Name: plain.name, CallTimeout: time.Minute,
		Key: []dynamotable.Attribute{{Name: "leaseKey", Type: types.ScalarAttributeTypeS}},
	}.Ensure(b.ctx()))
	plain.table = plain.open(b.api, orders)
	for _, owner := range []types.AttributeValue{
		nil, &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberS{},
	} {
		row := item{
			"leaseKey": str(shard0), "leaseCounter": num("7"), "checkpoint": str("TRIM_HORIZON"),
		}
		if owner != nil {
			row["leaseOwner"] = owner
		}
		plain.put(row)
		free := b.keep(plain.table.Get(b.ctx(), shard0))
		if free.Owner != "" {
			b.Fatalf("%v: read as %+v", owner, free)
		}
		taken := b.keep(plain.table.Take(b.ctx(), free, by("w1")))
		plain.stands(taken)
		b.must(plain.table.Delete(b.ctx(), taken))
	}
}

// The time of AT_TIMESTAMP is in the row: in an attribute of ours, or where a Rust library writes
// it. Java writes 0.
func timesInRows(b *bench) {
	for sub, want := range map[string]int64{"0": 0, "17": 0, "1700000000123": 1700000000123} {
		b.put(item{
			"leaseKey": str(shard0), "leaseCounter": num("7"), "checkpoint": str("AT_TIMESTAMP"),
			"checkpointSubSequenceNumber": num(sub),
		})
		l := b.keep(b.table.Get(b.ctx(), shard0))
		b.must(b.table.Delete(b.ctx(), l))
		if want == 0 && !l.From.IsZero() || want != 0 && l.From.UnixMilli() != want {
			b.Fatalf("%s is read as %s", sub, l.From)
		}
	}
}

func nativeTable(b *bench) {
	b.put(item{
		"leaseKey": str("Migration3.0"), "cv": str("CLIENT_VERSION_3X"),
		"entityType": str("CLIENT_VERSION_MIGRATION"),
	})
	_, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	if !errors.Is(err, lease.ErrManagedByKCL3) {
		b.Fatalf("got %v", err)
	}
	// A worker that runs finds out when it looks at the rows.
	if _, _, err := b.table.Look(b.ctx()); !errors.Is(err, lease.ErrManagedByKCL3) {
		b.Fatalf("looked: %v", err)
	}
}

// A fleet of KCL 3.x in a mode of compatibility takes leases as 2.x does. Its row is no lease, and
// none that has to be mended.
func compatibleTable(b *bench) {
	b.put(item{
		"leaseKey": str("Migration3.0"), "cv": str("CLIENT_VERSION_2X"),
		"entityType": str("CLIENT_VERSION_MIGRATION"),
	})
	bound, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if !bound.New {
		b.Fatalf("bound: %+v", bound)
	}
	leases, skipped, err := b.table.List(b.ctx())
	b.must(err)
	if len(leases)+len(skipped) != 0 {
		b.Fatalf("listed: %v, %v", leases, skipped)
	}
}
