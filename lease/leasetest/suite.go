// Package leasetest is the conformance suite of a lease table. It runs against any DynamoDB
// endpoint. It also has a DynamoDB in memory, for tests that want a fault at one exact call.
package leasetest

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
)

// Run runs the suite as subtests. api returns a client of the endpoint under test. Tables are made
// under names of their own, "leasetest-…", and deleted if the client can delete tables.
func Run(t *testing.T, api func(t *testing.T) lease.DynamoDBAPI) {
	for _, c := range []struct {
		name string
		run  func(*bench)
	}{
		{"a lease is created once", createOnce},
		{"the life of a lease", life},
		{"a stale writer is refused", staleWriter},
		{"one of many takers wins", manyTakers},
		{"a lost answer is recognised", lostAnswers},
		{"a late write of one's own is no loss", lateWrite},
		{"a lease is asked for and passed", passes},
		{"an ask waits for another one", asksOnce},
		{"a pass that was adopted before its answer", passAdopted},
		{"workers announce themselves", cards},
		{"the index by owner", ownedLeases},
		{"a lease is rewound", rewinds},
		{"a row is paused", pausedRow},
		{"rows name a sink", sinkRow},
		{"rows name a failover time", failoverRow},
		{"states that are too large for a row", largeStates},
		{"unknown attributes survive every write", unknownAttributes},
		{"rows of other kinds are skipped", otherRows},
		{"a scan of several pages", manyPages},
		{"the table knows its stream", bindsStream},
		{"workers that begin at once have one origin", oneOrigin},
		{"workers that begin at once have one output", oneOutput},
		{"a row keeps its output", outputRow},
		{"an open row decides on the output", outputOfOpenRow},
		{"a beginning that is cut off", markCutOff},
		{"the table of an older version", oldTable},
		{"a mend that is cut off", mendCutOff},
		{"several mend at once", mendTogether},
		{"a Java table is shared", sharedTable},
		{"the table of several streams is refused", multiStreamTable},
		{"owners that are none", ownersThatAreNone},
		{"times in the rows of others", timesInRows},
		{"a take writes the time", takeWritesTime},
		{"a native KCL 3 table is refused", nativeTable},
		{"a compatible KCL 3 table is shared", compatibleTable},
		{"a table that is gone", goneTable},
		{"a row that cannot be read", unreadableRow},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{T: t, api: api(t), name: "leasetest-" + rand.Text()}
			b.table = b.open(b.api, orders)
			b.must(b.table.Ensure(b.ctx()))
			if d, ok := b.api.(deleter); ok {
				t.Cleanup(func() {
					_, err := d.DeleteTable(context.WithoutCancel(t.Context()),
						&dynamodb.DeleteTableInput{TableName: &b.name})
					if err != nil {
						t.Errorf("clean-up: %v", err)
					}
				})
			}
			c.run(b)
		})
	}
}

type deleter interface {
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.DeleteTableOutput, error)
}

var orders = lease.Stream{Name: "orders", Created: time.UnixMilli(1_700_000_000_123)}

// bench is the fixture of a case.
type bench struct {
	*testing.T
	api   lease.DynamoDBAPI
	name  string
	table *lease.Table
}

func (b *bench) ctx() context.Context { return b.Context() }

func (b *bench) open(api lease.DynamoDBAPI, stream lease.Stream) *lease.Table {
	b.Helper()
	table, err := lease.New(lease.Config{DynamoDB: api, Table: b.name, Stream: stream})
	b.must(err)
	return table
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) keep(l lease.Lease, err error) lease.Lease {
	b.Helper()
	b.must(err)
	return l
}

func (b *bench) stands(want lease.Lease) {
	b.Helper()
	got := b.keep(b.table.Get(b.ctx(), want.Key))
	if !reflect.DeepEqual(got, want) {
		b.Fatalf("the row is\n%+v, want\n%+v", got, want)
	}
}

func (b *bench) lost(err error) {
	b.Helper()
	if !errors.Is(err, lease.ErrLeaseLost) {
		b.Fatalf("got %v, want ErrLeaseLost", err)
	}
}

func fresh(id runnel.ShardID) lease.Lease {
	return lease.Lease{
		Key: id, Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
		Range: &keyspace.Range{Start: keyspace.Key{}, End: keyspace.Max()},
	}
}

func at(sequence string, sub int64) runnel.Position {
	return runnel.Position{Sequence: runnel.SequenceNumber(sequence), Sub: sub}
}

func (b *bench) create(l lease.Lease) lease.Lease {
	b.Helper()
	made, created, err := b.table.Create(b.ctx(), l)
	b.must(err)
	if !created {
		b.Fatalf("%s was there already", l.Key)
	}
	return made
}

func createOnce(b *bench) {
	l := fresh("shardId-000000000002")
	l.Parents = []runnel.ShardID{"shardId-000000000000", "shardId-000000000001"}
	l.From = time.UnixMilli(1_700_000_100_007).UTC()
	l.Checkpoint.Sequence = runnel.Latest
	made := b.create(l)
	if made.Counter != 0 || made.Stream != orders.String() {
		b.Fatalf("created %+v", made)
	}
	b.stands(made)
	other := fresh(l.Key)
	other.Owner = "w2"
	got, created, err := b.table.Create(b.ctx(), other)
	b.must(err)
	if created || !reflect.DeepEqual(got, made) {
		b.Fatalf("created again: %v, %+v", created, got)
	}
	b.stands(made)
}

func life(b *bench) {
	l := b.create(fresh("shardId-000000000000"))
	l = b.keep(b.table.Take(b.ctx(), l, by("w1")))
	if l.Counter != 1 || l.Owner != "w1" || l.OwnerSwitches != 0 {
		b.Fatalf("taken: %+v", l)
	}
	b.stands(l)
	l.Complete = time.UnixMilli(1_700_000_000_123).UTC()
	l = b.keep(b.table.Renew(b.ctx(), l))
	b.stands(l)
	l.Complete = l.Complete.Add(time.Minute)
	l = b.keep(b.table.Checkpoint(b.ctx(), l, lease.Mark{
		At: at("4959033827149025660855969253836157", 3), Token: "t1",
	}))
	if l.Counter != 3 {
		b.Fatalf("checkpointed: %+v", l)
	}
	b.stands(l)
	l = b.keep(b.table.Release(b.ctx(), l, lease.Mark{}))
	if l.Owner != "" || l.Counter != 4 {
		b.Fatalf("released: %+v", l)
	}
	b.stands(l)
	l = b.keep(b.table.Take(b.ctx(), l, by("w2")))
	l = b.keep(b.table.Take(b.ctx(), l, by("w3"))) // a steal
	if l.OwnerSwitches != 1 || l.Token != "t1" {
		b.Fatalf("stolen: %+v", l)
	}
	b.stands(l)
	children := []runnel.ShardID{"shardId-000000000001", "shardId-000000000002"}
	l = b.keep(b.table.Finish(b.ctx(), l, lease.Mark{Token: "t2"}, children))
	if !l.Ended() || l.Owner != "" || l.OwnerSwitches != 0 || l.Counter != 7 {
		b.Fatalf("finished: %+v", l)
	}
	b.stands(l)
	b.must(b.table.Delete(b.ctx(), l))
	b.must(b.table.Delete(b.ctx(), l))
	if _, err := b.table.Get(b.ctx(), l.Key); !errors.Is(err, lease.ErrLeaseNotFound) {
		b.Fatalf("deleted: %v", err)
	}
}

// goneTable checks that every call on a table that does not exist returns ErrTableNotFound.
func goneTable(b *bench) {
	gone := b.create(fresh("shardId-000000000000"))
	held := b.keep(b.table.Take(b.ctx(), gone, by("w1")))
	if there, err := b.table.Exists(b.ctx()); err != nil || !there {
		b.Fatalf("the table exists: %v, %v", there, err)
	}
	other, err := lease.New(lease.Config{
		DynamoDB: b.api, Table: b.name + "-missing", Stream: orders,
	})
	b.must(err)
	if there, err := other.Exists(b.ctx()); err != nil || there {
		b.Errorf("a missing table exists: %v, %v", there, err)
	}
	for name, call := range map[string]func() error{
		"list": func() error { _, _, err := other.List(b.ctx()); return err },
		"get":  func() error { _, err := other.Get(b.ctx(), held.Key); return err },
		"create": func() error {
			_, _, err := other.Create(b.ctx(), fresh("shardId-000000000001"))
			return err
		},
		"renew": func() error { _, err := other.Renew(b.ctx(), held); return err },
		"release": func() error {
			_, err := other.Release(b.ctx(), held, lease.Mark{})
			return err
		},
		"delete": func() error { return other.Delete(b.ctx(), held) },
	} {
		err := call()
		if !errors.Is(err, lease.ErrTableNotFound) || errors.Is(err, lease.ErrLeaseLost) {
			b.Errorf("%s in a missing table: %v, want ErrTableNotFound", name, err)
		}
	}
}

// unreadableRow checks that every call that reads a row reports it, and leaves the row unchanged.
func unreadableRow(b *bench) {
	l := fresh("shardId-000000000000")
	b.put(item{
		"leaseKey": str(string(l.Key)), "leaseCounter": num("1"),
		"checkpoint": str("of another program"),
	})
	leases, skipped, err := b.table.List(b.ctx())
	b.must(err)
	if len(leases) != 0 || len(skipped) != 1 || !errors.Is(skipped[0].Err, lease.ErrUnreadableRow) {
		b.Errorf("listed: %v, %v", leases, skipped)
	}
	if _, err := b.table.Get(b.ctx(), l.Key); !errors.Is(err, lease.ErrUnreadableRow) {
		b.Errorf("get: %v, want ErrUnreadableRow", err)
	}
	if _, _, err := b.table.Create(b.ctx(), fresh(l.Key)); !errors.Is(err, lease.ErrUnreadableRow) {
		b.Errorf("create: %v, want ErrUnreadableRow", err)
	}
}

// holderWrites are all writes of a holder.
func holderWrites(b *bench, table *lease.Table) map[string]func(lease.Lease) (lease.Lease, error) {
	return map[string]func(lease.Lease) (lease.Lease, error){
		"renew": func(l lease.Lease) (lease.Lease, error) { return table.Renew(b.ctx(), l) },
		"checkpoint": func(l lease.Lease) (lease.Lease, error) {
			return table.Checkpoint(b.ctx(), l, lease.Mark{At: at("77", 0), Token: "mine"})
		},
		"finish": func(l lease.Lease) (lease.Lease, error) {
			return table.Finish(b.ctx(), l, lease.Mark{Token: "mine"}, nil)
		},
		"release": func(l lease.Lease) (lease.Lease, error) {
			return table.Release(b.ctx(), l, lease.Mark{At: at("78", 1), Token: "last"})
		},
		"pass": func(l lease.Lease) (lease.Lease, error) {
			return table.Pass(b.ctx(), l, lease.Mark{At: at("79", 0)}, "w7", false)
		},
		"take": func(l lease.Lease) (lease.Lease, error) {
			return table.Take(b.ctx(), l, by("w9"))
		},
		"delete": func(l lease.Lease) (lease.Lease, error) {
			return l, table.Delete(b.ctx(), l)
		},
	}
}

func staleWriter(b *bench) {
	l := b.create(fresh("shardId-000000000000"))
	zombie := b.keep(b.table.Take(b.ctx(), l, by("w1")))
	for _, row := range []func(lease.Lease) (lease.Lease, error){
		func(l lease.Lease) (lease.Lease, error) { return b.table.Take(b.ctx(), l, by("w2")) },
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Release(b.ctx(), l, lease.Mark{})
		},
		// A worker of the same name, as two processes with one worker id.
		func(l lease.Lease) (lease.Lease, error) { return b.table.Take(b.ctx(), l, by("w1")) },
	} {
		l = b.keep(row(b.keep(b.table.Get(b.ctx(), l.Key))))
		for op, write := range holderWrites(b, b.table) {
			if _, err := write(zombie); !errors.Is(err, lease.ErrLeaseLost) {
				b.Errorf("%s on %+v: %v", op, l, err)
			}
		}
		b.stands(l)
	}
	b.must(b.table.Delete(b.ctx(), l))
	for op, write := range holderWrites(b, b.table) {
		if _, err := write(zombie); op != "delete" && !errors.Is(err, lease.ErrLeaseLost) {
			b.Errorf("%s on nothing: %v", op, err)
		}
	}
	if _, err := b.table.Get(b.ctx(), l.Key); !errors.Is(err, lease.ErrLeaseNotFound) {
		b.Fatalf("a stale write brought the row back: %v", err)
	}
}

func manyTakers(b *bench) {
	seen := b.create(fresh("shardId-000000000000"))
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		won   []lease.Lease
	)
	for _, name := range strings.Fields("a b c d e f g h") {
		group.Go(func() {
			l, err := b.table.Take(b.ctx(), seen, by(name))
			switch {
			case err == nil:
				mu.Lock()
				won = append(won, l)
				mu.Unlock()
			case !errors.Is(err, lease.ErrLeaseLost):
				b.Error(err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		b.Fatalf("%d takers won", len(won))
	}
	b.stands(won[0])
}

func otherRows(b *bench) {
	l := b.create(fresh("shardId-000000000000"))
	b.put(item{"leaseKey": str("Leader"), "entityType": str("LEADER"), "ownerName": str("j")})
	b.put(item{"leaseKey": str("broken"), "leaseCounter": str("x")})
	leases, skipped, err := b.table.List(b.ctx())
	b.must(err)
	if len(leases) != 1 || !reflect.DeepEqual(leases[0], l) {
		b.Errorf("leases: %+v", leases)
	}
	if len(skipped) != 1 || skipped[0].Key != "broken" {
		b.Errorf("skipped: %v", skipped)
	}
}

func manyPages(b *bench) {
	// A page of DynamoDB holds 1 MB.
	const rows, size = 50, 30 << 10
	var want []runnel.ShardID
	for i := range rows {
		l := fresh(runnel.ShardID("shardId-" + string(rune('A'+i/26)) + string(rune('A'+i%26))))
		l.Token = strings.Repeat("x", size)
		want = append(want, b.create(l).Key)
	}
	leases, _, err := b.table.List(b.ctx())
	b.must(err)
	var got []runnel.ShardID
	for _, l := range leases {
		got = append(got, l.Key)
	}
	if !slices.Equal(got, want) {
		b.Fatalf("listed %d leases: %v", len(got), got)
	}
}

func unknownAttributes(b *bench) {
	row := item{
		"leaseKey": str("shardId-000000000000"), "leaseCounter": num("41"),
		"checkpoint": str("TRIM_HORIZON"), "checkpointSubSequenceNumber": num("0"),
		"ownerSwitchesSinceCheckpoint": num("0"), "throughputKBps": num("12.500000"),
		"entityType": str("LEASE"), "childShardIds": &types.AttributeValueMemberSS{
			Value: []string{"shardId-000000000005"},
		},
	}
	b.put(row)
	l := b.keep(b.table.Get(b.ctx(), "shardId-000000000000"))
	l = b.keep(b.table.Take(b.ctx(), l, by("w1")))
	l = b.keep(b.table.Renew(b.ctx(), l))
	l = b.keep(b.table.Checkpoint(b.ctx(), l, lease.Mark{At: at("5", 0)}))
	l = b.keep(b.table.Finish(b.ctx(), l, lease.Mark{}, l.Children))
	b.stands(l)
	out, err := b.api.GetItem(b.ctx(), &dynamodb.GetItemInput{
		TableName: aws.String(b.name), Key: item{"leaseKey": str(string(l.Key))},
		ConsistentRead: aws.Bool(true),
	})
	b.must(err)
	if n, ok := out.Item["throughputKBps"].(*types.AttributeValueMemberN); !ok ||
		!strings.HasPrefix(n.Value, "12.5") {
		b.Fatalf("throughputKBps is %v", out.Item["throughputKBps"])
	}
	if l.Counter != 45 || !slices.Equal(l.Children, []runnel.ShardID{"shardId-000000000005"}) {
		b.Fatalf("ended as %+v", l)
	}
}

func (b *bench) put(row item) {
	b.Helper()
	b.must(b.tryPut(row))
}

func (b *bench) tryPut(row item) error {
	_, err := b.api.PutItem(b.ctx(), &dynamodb.PutItemInput{
		TableName: aws.String(b.name), Item: row,
		ConditionExpression:      aws.String("attribute_not_exists(#k)"),
		ExpressionAttributeNames: map[string]string{"#k": "leaseKey"},
	})
	return err
}

// by is the claim of a worker.
func by(worker string) lease.Claim { return lease.Claim{Worker: worker} }

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
