package leasetest

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
			l = b.keep(table.Take(b.ctx(), l, by("w1")))
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
			l := b.keep(b.table.Take(b.ctx(), b.create(fresh("shardId-000000000000")), by("w1")))
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
			l = b.keep(b.table.Take(b.ctx(), b.create(fresh("shardId-000000000000")), by("w1")))
			net.lose = 1
			if _, err := writes[first](l); !errors.Is(err, errCut) {
				b.Fatalf("%s: %v, want no answer", first, err)
			}
			robbed := b.keep(b.table.Take(b.ctx(), l, by("w2")))
			_, err = writes[second](l)
			b.lost(err)
			b.stands(robbed)
			b.must(b.table.Delete(b.ctx(), robbed))
		}
	}
}
