package leasetest

import (
	"bytes"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

func largeStates(b *bench) {
	states := b.table.States()
	stored := func(key runnel.ShardID, want []byte, wantAt runnel.Position) {
		b.Helper()
		got, at, err := states.Get(b.ctx(), key)
		b.must(err)
		if !bytes.Equal(got, want) || at != wantAt {
			b.Fatalf("the table has %d bytes at %s, want %d at %s", len(got), at, len(want), wantAt)
		}
	}
	first, second := bytes.Repeat([]byte{1}, lease.MaxStoredState), []byte{2}
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	stored(held.Key, nil, runnel.Start()) // without a table
	b.must(states.Delete(b.ctx(), held))

	b.must(states.Ensure(b.ctx()))
	b.must(states.Ensure(b.ctx()))
	stored(held.Key, nil, runnel.Start())
	b.must(states.Delete(b.ctx(), held))
	b.must(states.Put(b.ctx(), held, at("5", 0), first))
	stored(held.Key, first, at("5", 0))
	b.must(states.Put(b.ctx(), held, at("6", 2), second)) // nothing was written in between
	stored(held.Key, second, at("6", 2))
	err := states.Put(b.ctx(), held, at("7", 0), append(first, 1))
	if !errors.Is(err, lease.ErrStateTooLarge) {
		b.Fatalf("a state of %d bytes: %v", len(first)+1, err)
	}

	// The row points to the state until a checkpoint has a small one.
	held = b.keep(b.table.Checkpoint(b.ctx(), held, lease.Mark{At: at("6", 2), State: []byte{9}}))
	if held.StateApart() {
		b.Fatalf("a small state: %+v", held)
	}
	mark := lease.Mark{At: at("8", 0), Apart: at("6", 2)}
	held = b.keep(b.table.Checkpoint(b.ctx(), held, mark))
	b.stands(held)
	if !held.StateApart() || held.StateAt != at("6", 2) || held.Checkpoint != at("8", 0) {
		b.Fatalf("the row is %+v", held)
	}
	held = b.keep(b.table.Checkpoint(b.ctx(), held, lease.Mark{At: at("9", 0)}))
	if b.stands(held); held.StateAt != at("6", 2) {
		b.Fatalf("a checkpoint without a state: %+v", held)
	}

	// The former holder can neither replace nor delete the next one's state.
	robber := b.keep(b.table.Take(b.ctx(), held, by("w2")))
	b.must(states.Put(b.ctx(), robber, at("10", 0), first))
	b.lost(states.Put(b.ctx(), held, at("11", 0), second))
	b.must(states.Delete(b.ctx(), held))
	stored(held.Key, first, at("10", 0))

	// A Java worker leaves our attributes on the row that it takes.
	_, err = b.api.UpdateItem(b.ctx(), &dynamodb.UpdateItemInput{
		TableName: &b.name, Key: item{"leaseKey": str(shard0)},
		UpdateExpression:          aws.String("SET #owner = :java"),
		ConditionExpression:       aws.String("attribute_exists(#owner)"),
		ExpressionAttributeNames:  map[string]string{"#owner": "leaseOwner"},
		ExpressionAttributeValues: item{":java": str("java")},
	})
	b.must(err)
	late := robber
	late.Counter-- // the state that is there is a newer one
	b.lost(states.Put(b.ctx(), late, at("11", 0), second))
	stored(held.Key, first, at("10", 0))
	robber = b.keep(b.table.Get(b.ctx(), held.Key))

	// The counters of a row that is made again begin anew.
	b.must(b.table.Delete(b.ctx(), robber))
	b.lost(states.Put(b.ctx(), held, at("11", 0), second))
	again := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	b.must(states.Put(b.ctx(), again, at("12", 0), second))
	stored(again.Key, second, at("12", 0))
	b.must(states.Delete(b.ctx(), again))
	stored(again.Key, nil, runnel.Start())

	_, err = b.api.PutItem(b.ctx(), &dynamodb.PutItemInput{
		TableName: aws.String(states.Name()), Item: item{
			"leaseKey": str(shard0), "leaseCounter": str("no number"),
		},
		ConditionExpression:      aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames: map[string]string{"#key": "leaseKey"},
	})
	b.must(err)
	stored(again.Key, nil, runnel.Start())
	b.must(states.Put(b.ctx(), again, at("13", 0), second))
	stored(again.Key, second, at("13", 0))
}

func rewinds(b *bench) {
	for _, to := range []runnel.Position{runnel.Start(), at("3", 4)} {
		l := fresh(shard0)
		l.From, l.Checkpoint.Sequence = time.UnixMilli(1_700_000_000_000), runnel.AtTimestamp
		held := b.keep(b.table.Take(b.ctx(), b.create(l), by("w1")))
		held.Complete = time.UnixMilli(1_700_000_001_000)
		held.Stats = lease.Stats{At: time.UnixMilli(1_700_000_002_000), Rate: 7}
		mark := lease.Mark{At: at("9", 0), Token: "t", State: []byte{1}}
		held = b.keep(b.table.Checkpoint(b.ctx(), held, mark))
		_, err := b.table.Rewind(b.ctx(), held, runnel.End())
		if !errors.Is(err, runnel.ErrPositionSyntax) {
			b.Fatalf("rewound to the end: %v", err)
		}
		held.Complete, held.Stats = time.Time{}, lease.Stats{}
		rewound := b.keep(b.table.Rewind(b.ctx(), held, to))
		b.stands(rewound)
		if rewound.Processed() != to || rewound.Token != "" || len(rewound.State) > 0 ||
			rewound.StateAt != runnel.Start() || !rewound.From.IsZero() ||
			!rewound.Complete.IsZero() || !rewound.Stats.At.IsZero() || rewound.Owner != "w1" {
			b.Fatalf("rewound to %s as %+v", to, rewound)
		}
		// A shard that had ended is read again, and its children come anew.
		ended := b.keep(b.table.Finish(b.ctx(), rewound, lease.Mark{}, []runnel.ShardID{"child"}))
		held = b.keep(b.table.Take(b.ctx(), ended, by("w2")))
		rewound = b.keep(b.table.Rewind(b.ctx(), held, to))
		if b.stands(rewound); rewound.Ended() || len(rewound.Children) > 0 || rewound.Ender != "" {
			b.Fatalf("rewound from the end as %+v", rewound)
		}
		free := b.keep(b.table.Release(b.ctx(), rewound, lease.Mark{}))
		if _, err := b.table.Rewind(b.ctx(), free, to); err == nil {
			b.Fatal("a lease was rewound that is not held")
		}
		b.must(b.table.Delete(b.ctx(), free))
	}
}
