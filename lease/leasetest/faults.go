package leasetest

import (
	"context"
	"errors"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

var errCut = errors.New("the connection was cut")

// lossy passes calls through and loses answers.
type lossy struct {
	lease.DynamoDBAPI
	lose  int  // how many answers to lose
	again bool // like an SDK that sends the request again after a cut
	late  bool // the request arrives only before the next one
	held  []func()
	then  func() // after the lost answer's call; nil for nothing
}

func (f *lossy) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	held := f.held
	f.held = nil
	for _, send := range held {
		send()
	}
	if f.lose == 0 {
		return f.DynamoDBAPI.UpdateItem(ctx, in, opts...)
	}
	f.lose--
	if f.late {
		f.held = append(f.held, func() {
			_, _ = f.DynamoDBAPI.UpdateItem(context.WithoutCancel(ctx), in, opts...)
		})
		return nil, errCut
	}
	if _, err := f.DynamoDBAPI.UpdateItem(ctx, in, opts...); err != nil {
		return nil, err
	}
	if f.again {
		return f.DynamoDBAPI.UpdateItem(ctx, in, opts...)
	}
	if f.then != nil {
		f.then()
	}
	return nil, errCut
}

func (f *lossy) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	out, err := f.DynamoDBAPI.PutItem(ctx, in, opts...)
	if f.lose == 0 || err != nil {
		return out, err
	}
	f.lose--
	if f.again {
		return f.DynamoDBAPI.PutItem(ctx, in, opts...)
	}
	return nil, errCut
}

func lostAnswers(b *bench) {
	for _, again := range []bool{false, true} {
		net := &lossy{DynamoDBAPI: b.api, again: again}
		table := b.open(net, orders)
		for _, op := range []string{"take", "renew", "checkpoint", "release", "finish", "pass"} {
			net.lose = 1
			l, created, err := table.Create(b.ctx(), fresh("shardId-000000000000"))
			b.must(err)
			if !created {
				b.Fatalf("the creation was not recognised: %+v", l)
			}
			l = b.keep(table.Take(b.ctx(), l, lease.Claim{Worker: "w1"}))
			net.lose = 1
			got, err := holderWrites(b, table)[op](l)
			if err != nil || got.Counter != l.Counter+1 {
				b.Fatalf("%s (again: %v): %+v, %v", op, again, got, err)
			}
			b.stands(got)
			b.must(table.Delete(b.ctx(), got))
		}
	}
}

func lateWrite(b *bench) {
	for _, first := range []string{"renew", "checkpoint"} {
		for _, second := range []string{"renew", "checkpoint", "release", "finish", "pass"} {
			l := b.keep(b.table.Take(b.ctx(), b.create(fresh("shardId-000000000000")), lease.Claim{Worker: "w1"}))
			net := &lossy{DynamoDBAPI: b.api, lose: 1, late: true}
			writes := holderWrites(b, b.open(net, orders))
			if _, err := writes[first](l); !errors.Is(err, errCut) {
				b.Fatalf("%s: %v, want no answer", first, err)
			}
			got, err := writes[second](l) // the first call overtakes this one
			if err != nil || got.Counter < l.Counter+1 {
				b.Fatalf("%s after %s: %+v, %v", second, first, got, err)
			}
			b.stands(got)
			b.must(b.table.Delete(b.ctx(), got))

			// The same late write has no effect after another worker has taken the lease.
			l = b.keep(b.table.Take(b.ctx(), b.create(fresh("shardId-000000000000")), lease.Claim{Worker: "w1"}))
			net.lose = 1
			if _, err := writes[first](l); !errors.Is(err, errCut) {
				b.Fatalf("%s: %v, want no answer", first, err)
			}
			robbed := b.keep(b.table.Take(b.ctx(), l, lease.Claim{Worker: "w2"}))
			_, err = writes[second](l)
			b.lost(err)
			b.stands(robbed)
			b.must(b.table.Delete(b.ctx(), robbed))
		}
	}
}

func bindsStream(b *bench) {
	origin := runnel.FromLatest().Pin(orders.Created)
	net := &lossy{DynamoDBAPI: b.api, lose: 1}
	bound, err := b.open(net, orders).Bind(b.ctx(), origin)
	b.must(err)
	want := lease.Binding{Origin: runnel.FromLatest().Pin(orders.Created.UTC())}
	if bound.Origin.Word() != origin.Word() || !bound.Origin.Time().Equal(origin.Time()) ||
		bound.Synced || bound.Shared {
		b.Fatalf("bound %+v", bound)
	}
	b.must(b.table.MarkSynced(b.ctx(), bound))
	want.Synced = true
	// A second worker asks for another origin and gets the one that the first wrote.
	again, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if !reflect.DeepEqual(again, want) {
		b.Fatalf("bound again %+v, want %+v", again, want)
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

func sharedTable(b *bench) {
	b.put(item{
		"leaseKey": str("shardId-000000000000"), "leaseCounter": num("41"),
		"checkpoint": str("TRIM_HORIZON"), "leaseOwner": str("java"),
	})
	bound, err := b.table.Bind(b.ctx(), runnel.FromOldest())
	b.must(err)
	if !bound.Shared {
		b.Fatalf("bound %+v", bound)
	}
	b.must(b.table.MarkSynced(b.ctx(), bound))
	leases, skipped, err := b.table.List(b.ctx())
	b.must(err)
	if len(leases) != 1 || len(skipped) != 0 {
		b.Fatalf("%+v %v", leases, skipped)
	}
	_ = b.keep(b.table.Take(b.ctx(), leases[0], lease.Claim{Worker: "w1"})) // stamps the row
	other := lease.Stream{Name: "orders", Created: orders.Created.Add(1e9)}
	_, err = b.open(b.api, other).Bind(b.ctx(), runnel.FromOldest())
	if !errors.Is(err, lease.ErrOtherStream) {
		b.Fatalf("a recreated stream: %v", err)
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
}
