package keytable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/runneltest"
)

// inTime runs a test with a server in virtual time.
func inTime(t *testing.T, run func(t *testing.T, server *runneltest.Server), options ...runneltest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		run(t, runneltest.NewServer(t, append(options, runneltest.InMemory())...))
	})
}

func open(t *testing.T, api DynamoDBAPI, change ...func(*Config)) *Table {
	t.Helper()
	cfg := Config{DynamoDB: api, Table: "keys"}
	for _, c := range change {
		c(&cfg)
	}
	table, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func small(cfg *Config) { cfg.Space, _ = allocate.NewSpace(keyspace.Key{Lo: 128}) }

// sameAsScanned checks that the state of a table equals the state of its rows.
func sameAsScanned(t *testing.T, table *Table) {
	t.Helper()
	if err := table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, table.cfg.DynamoDB, func(c *Config) { *c = table.cfg })
	if got, want := fmt.Sprint(describe(table)), fmt.Sprint(describe(fresh)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func describe(t *Table) (version int64, lines []string) {
	for _, a := range t.All() {
		line := fmt.Sprint(a.Name, "=", a.Key, "/", a.Rate)
		if a.To != nil {
			line += fmt.Sprint(">", *a.To)
		}
		lines = append(lines, line)
	}
	return t.version(), lines
}

// Names get the keys of one allocator, whichever process asks; a released key is given again.
func TestTable(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		ctx := t.Context()
		a, b := open(t, server.DynamoDB(), small), open(t, server.DynamoDB(), small)
		for i, want := range []uint64{64, 32, 96, 16} {
			table := []*Table{a, b}[i%2]
			key, err := table.Key(ctx, fmt.Sprint("n", i))
			if err != nil || key != (keyspace.Key{Lo: want}) {
				t.Fatalf("n%d: %v, %v; want %d", i, key, err, want)
			}
		}
		if key, err := a.Key(ctx, "n3"); err != nil || key != (keyspace.Key{Lo: 16}) {
			t.Errorf("n3: %v, %v", key, err)
		}
		if err := b.Release(ctx, "n0", "n3"); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(ctx, "n1", "n0"); !errors.Is(err, ErrUnknownName) || !strings.Contains(err.Error(), "n0") {
			t.Errorf("got %v", err)
		}
		if _, known := b.Lookup("n1"); !known {
			t.Error("n1 was released beside a fault")
		}
		got, err := a.Assign(ctx, 5, "n9", "n1", "n9")
		if err != nil || len(got) != 3 || got[0].Key.Lo != 64 || got[0].Rate != 5 || got[1].Key.Lo != 32 || got[1].Rate != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		sameAsScanned(t, a)
		sameAsScanned(t, b)
	})
}

// Invalid names and unusable tables are refused.
func TestRefusals(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		ctx := t.Context()
		two := func(c *Config) { c.Space, _ = allocate.NewSpace(keyspace.Key{Lo: 2}) }
		table := open(t, server.DynamoDB(), two)
		if _, err := table.Assign(ctx, 1, "a", "b", "c"); !errors.Is(err, allocate.ErrSpaceFull) ||
			!strings.Contains(err.Error(), `"c"`) || len(table.All()) > 0 {
			t.Errorf("got %v, %v", err, table.All())
		}
		for _, name := range []string{"", "\xff", strings.Repeat("é", 257)} {
			if _, err := table.Key(ctx, name); !errors.Is(err, ErrInvalidName) {
				t.Errorf("%q: %v", name, err)
			}
		}
		cfg := Config{DynamoDB: server.DynamoDB(), Table: "keys"}
		if _, err := Open(ctx, cfg); !errors.Is(err, ErrUnusableTable) || !strings.Contains(err.Error(), "space has 2 keys") {
			t.Errorf("another space: %v", err)
		}
		_, err := server.DynamoDB().UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("keys"), Key: primary(idHead, 0), UpdateExpression: aws.String("SET #f = :f"),
			ExpressionAttributeNames: map[string]string{"#f": attrFormat}, ExpressionAttributeValues: item{":f": num(2)},
		})
		if err != nil {
			t.Fatal(err)
		}
		two(&cfg)
		if _, err := Open(ctx, cfg); !errors.Is(err, ErrUnusableTable) || !strings.Contains(err.Error(), "use a newer runnel") {
			t.Errorf("a newer format: %v", err)
		}
		bad := Config{Interval: time.Hour, CallTimeout: -1, Expiry: time.Millisecond}
		if _, err := Open(ctx, bad); err == nil || strings.Count(err.Error(), "\n") != 4 {
			t.Errorf("got %v", err)
		}
	})
}

// Many processes at once, with a server that fails, throttles and loses answers: all come to the
// same names and keys, and each step is the one of a single allocator.
func TestProcessesAgree(t *testing.T) {
	for seed := range uint64(2 * soak) {
		inTime(t, func(t *testing.T, server *runneltest.Server) {
			open(t, server.DynamoDB(), small)
			if err := server.SetFaults(fmt.Sprintf("seed=%d,dynamodb.*:lose-answer%%10,dynamodb.*:error-500%%10", seed)); err != nil {
				t.Fatal(err)
			}
			var tables []*Table
			var group sync.WaitGroup
			var mu sync.Mutex
			for p := range 4 {
				group.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(p)))
					table, err := Open(t.Context(), Config{
						DynamoDB: server.DynamoDB(), Table: "keys", logRows: 5, Space: spaceOf128,
					})
					for again := 0; err != nil && again < 50; again++ {
						table, err = Open(t.Context(), Config{
							DynamoDB: server.DynamoDB(), Table: "keys", logRows: 5, Space: spaceOf128,
						})
					}
					if err != nil {
						t.Error(err)
						return
					}
					for range 25 {
						name := fmt.Sprint("n", random.IntN(20))
						if random.IntN(3) > 0 {
							if _, err := table.Key(t.Context(), name); err != nil && !errors.Is(err, ErrKeyChanged) {
								t.Errorf("seed %d: %v", seed, err)
							}
						} else if err := table.Release(t.Context(), name); err != nil && !errors.Is(err, ErrUnknownName) {
							t.Errorf("seed %d: %v", seed, err)
						}
						<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
					}
					mu.Lock()
					defer mu.Unlock()
					tables = append(tables, table)
				})
			}
			group.Wait()
			if err := server.SetFaults(""); err != nil {
				t.Fatal(err)
			}
			for _, table := range tables {
				sameAsScanned(t, table)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("soak: %d seeds, %d changes", 2*soak, 2*soak*100)
}

var spaceOf128, _ = allocate.NewSpace(keyspace.Key{Lo: 128})

// New names of many goroutines are written together, up to 90 at once. If the space is too small
// for a name, the error goes to its caller.
func TestTogether(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		var group sync.WaitGroup
		var full atomic.Int64
		if err := table.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			group.Go(func() {
				name := fmt.Sprint("n", i%150)
				switch key, err := table.Key(t.Context(), name); {
				case errors.Is(err, allocate.ErrSpaceFull):
					full.Add(1)
				case err != nil:
					t.Error(err)
				default:
					if a, _ := table.Lookup(name); a.Key != key {
						t.Errorf("%s: %s, %s", name, key, a.Key)
					}
				}
			})
		}
		synctest.Wait() // all wait for the turn
		table.give()
		group.Wait()
		if len(table.All()) != 128 || full.Load() != 44 || table.version() > 40 || len(table.mu.wanted) > 0 {
			t.Errorf("%d names in %d versions, %d found no room", len(table.All()), table.version(), full.Load())
		}
		sameAsScanned(t, table)
	})
}

// A process that is behind by more than the log has reads the table anew, with its uses.
func TestBehindTheLog(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		short := func(c *Config) { c.logRows = 3; c.Interval, c.Expiry = time.Hour, 100*time.Hour }
		a, b := open(t, server.DynamoDB(), small, short), open(t, server.DynamoDB(), small, short)
		s, err := b.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := s.Use(t.Context(), "used")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 9 {
			if _, err := a.Key(t.Context(), fmt.Sprint("n", i)); err != nil {
				t.Fatal(err)
			}
		}
		if rows, err := a.log(t.Context(), 0); err != nil || len(rows) != 3 {
			t.Errorf("the log has %d rows, %v", len(rows), err)
		}
		sameAsScanned(t, b)
		if err := b.Release(t.Context(), "used"); !errors.Is(err, ErrNameInUse) {
			t.Errorf("got %v", err)
		}
		done()
		if err := b.Release(t.Context(), "used"); err != nil {
			t.Error(err)
		}
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
