package keytable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/runneltest"
)

func join(t *testing.T, table *Table) *Session {
	t.Helper()
	s, err := table.Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// within returns a context that limits the time of a call.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// reads runs a worker of an application until the test ends, with a handler that does nothing.
func reads(t *testing.T, server *runneltest.Server, app string) {
	t.Helper()
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: app, Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Handler: func(context.Context, *consumer.Batch) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-time.After(5 * time.Second) // the leases are there
}

// use begins a use of a name, with a time-out.
func use(t *testing.T, s *Session, name string) (hash string, done func()) {
	t.Helper()
	hash, done, err := s.Use(within(t, time.Minute), name)
	if err != nil {
		t.Fatal(err)
	}
	return hash, done
}

func keyOf(n uint64) keyspace.Key { return keyspace.Key{Lo: n} }

// A move waits for the records in flight in every session, and no Use begins meanwhile.
func TestMoveDrains(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		a, b := open(t, server.DynamoDB(), small), open(t, server.DynamoDB(), small)
		sa, sb := join(t, a), join(t, b)
		if _, err := a.Assign(t.Context(), 1, "x", "y"); err != nil {
			t.Fatal(err)
		}
		hash, doneA := use(t, sa, "x")
		if hash != "64" {
			t.Errorf("x has %s", hash)
		}
		_, doneB := use(t, sb, "x")
		began, ended := make(chan struct{}), make(chan error, 1)
		var steps []string
		cfg := MoveConfig{
			Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true,
			OnProgress: func(p Progress) {
				step := fmt.Sprint(p.Stage, " ", p.Left)
				if steps = append(steps, step); len(steps) == 1 {
					close(began)
				}
				steps = slices.Compact(steps)
			},
		}
		mover := open(t, server.DynamoDB(), small, func(c *Config) { c.Interval = 100 * time.Millisecond })
		go func() {
			ended <- mover.Move(t.Context(), cfg, []Move{{Name: "x", From: keyOf(64), To: keyOf(5)}})
		}()
		<-began
		<-time.After(10 * time.Second)
		for _, s := range []*Session{sa, sb} {
			if _, _, err := s.Use(within(t, 5*time.Second), "x"); !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "its key was moved") {
				t.Errorf("got %v", err)
			}
			_, done := use(t, s, "y")
			done()
		}
		if err := a.Release(t.Context(), "x"); !errors.Is(err, ErrNameMoving) {
			t.Errorf("got %v", err)
		}
		doneA()
		<-time.After(time.Minute) // longer than a session may be silent
		if len(ended) > 0 {
			t.Error("moved while a record was in flight")
		}
		drained := time.Now()
		doneB()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(drained); took > 200*time.Millisecond {
			t.Errorf("the session told after %s", took)
		}
		for _, s := range []*Session{sa, sb} {
			hash, done := use(t, s, "x")
			if done(); hash != "5" {
				t.Errorf("x has %s", hash)
			}
		}
		want := []string{"moving 0", "draining 2", "draining 1", "draining 0", "moved 0"}
		if !slices.Equal(steps, want) {
			t.Errorf("%v, want %v", steps, want)
		}
		sameAsScanned(t, a)
		if key, err := a.Key(t.Context(), "z"); err != nil || key != keyOf(64) {
			t.Errorf("the old key is not free: %v, %v", key, err)
		}
	}, runneltest.WithStream("orders", 1))
}

// A session that cannot renew returns no keys well before a move declares it dead. Later it begins
// again, with the changes of the others.
func TestSessionExpires(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		cut := &dying{Client: server.DynamoDB(), die: func() {}, lives: 1 << 40}
		a, b := open(t, cut, small), open(t, server.DynamoDB(), small)
		s := join(t, a)
		_, done := use(t, s, "x")
		set := func(lives int) {
			cut.mu.Lock()
			cut.lives = lives
			cut.mu.Unlock()
		}
		first := s.number
		set(0)
		began := time.Now()
		var silent, moved time.Duration
		ended := make(chan error, 1)
		go func() {
			err := b.Refresh(t.Context())
			if err == nil {
				err = b.Move(t.Context(), MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true},
					[]Move{{Name: "x", From: keyOf(64), To: keyOf(5)}})
			}
			moved = time.Since(began)
			ended <- err
		}()
		for silent == 0 && time.Since(began) < time.Minute {
			hash, again, err := s.Use(within(t, 100*time.Millisecond), "x")
			switch {
			case err == nil && hash == "64":
				again()
			case errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "the process is dead"):
				silent = time.Since(began)
			default:
				t.Fatalf("%s, %v", hash, err)
			}
			<-time.After(100 * time.Millisecond)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if silent < 13*time.Second || silent > 16*time.Second || moved < 29*time.Second || moved > 35*time.Second {
			t.Errorf("silent after %s, moved after %s", silent, moved)
		}
		set(1 << 40)
		done()
		hash, again := use(t, s, "x")
		if again(); hash != "5" {
			t.Errorf("x has %s", hash)
		}
		rows, err := b.query(t.Context(), idSession, 0)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d sessions, %v", len(rows), err)
		}
		if now, _ := number(rows[0], attrN); now == first {
			t.Error("the session does not know that it was taken for dead")
		}
	}, runneltest.WithStream("orders", 1))
}

// A session without its row returns no keys until it has a new row, because a move would not wait
// for it.
func TestSessionGone(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small, func(c *Config) { c.Interval, c.Expiry = 10*time.Second, 100*time.Second })
		s := join(t, table)
		if err := table.delete(t.Context(), primary(idSession, s.number), nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(10500 * time.Millisecond) // a renewal has failed
		if _, _, err := s.Use(within(t, time.Second), "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		_, done := use(t, s, "x")
		done()
	})
}

// A table has one session at a time; a closed one gives out nothing and leaves no row, but for
// records in flight.
func TestSessionLife(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		s, err := table.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Join(t.Context()); !errors.Is(err, ErrAlreadyJoined) {
			t.Errorf("got %v", err)
		}
		_, done := use(t, s, "x")
		if err := s.Close(t.Context()); !errors.Is(err, ErrNameInUse) {
			t.Errorf("got %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("got %v", err)
		}
		done()
		if _, _, err := s.Use(t.Context(), "x"); !errors.Is(err, ErrSessionClosed) {
			t.Errorf("got %v", err)
		}
		if rows, err := table.query(t.Context(), idSession, 0); err != nil || len(rows) != 1 {
			t.Errorf("%d sessions, %v", len(rows), err)
		}
		next, err := table.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, done = use(t, next, "x")
		done()
		if err := next.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if rows, err := table.query(t.Context(), idSession, 0); err != nil || len(rows) != 1 {
			t.Errorf("%d sessions, %v", len(rows), err)
		}
	})
}

// An invalid move is refused and leaves no trace.
func TestMoveRefuses(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if _, err := table.Assign(t.Context(), 1, "x", "y", "w"); err != nil {
			t.Fatal(err)
		}
		cfg := MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true}
		fine := Move{Name: "y", From: keyOf(32), To: keyOf(7)}
		for _, c := range []struct {
			move Move
			want error
		}{
			{Move{Name: "z", From: keyOf(1), To: keyOf(2)}, ErrUnknownName},
			{Move{Name: "x", From: keyOf(1), To: keyOf(2)}, ErrKeyChanged},
			{Move{Name: "x", From: keyOf(64), To: keyOf(96)}, ErrKeyChanged},
		} {
			if err := table.Move(t.Context(), cfg, []Move{fine, c.move}); !errors.Is(err, c.want) {
				t.Errorf("%v: %v", c.move, err)
			}
		}
		if err := table.begin(t.Context(), []Move{{Name: "x", From: keyOf(64), To: keyOf(9)}}); err != nil {
			t.Fatal(err)
		}
		err := table.Move(t.Context(), cfg, []Move{fine, {Name: "x", From: keyOf(64), To: keyOf(10)}})
		if !errors.Is(err, ErrNameMoving) || !slices.Equal(table.Moving(), []string{"x"}) {
			t.Errorf("%v, and %v are moving", err, table.Moving())
		}
		if _, err := table.Plan(allocate.Rebalance); !errors.Is(err, ErrNameMoving) {
			t.Errorf("got %v", err)
		}
		if err := table.Abort(t.Context(), "x", "y", "z"); err != nil || len(table.Moving()) > 0 {
			t.Errorf("%v, %v", err, table.Moving())
		}
		for _, bad := range []MoveConfig{
			{Stream: "orders", WithoutApps: true},
			{Kinesis: cfg.Kinesis, WithoutApps: true},
			{Kinesis: cfg.Kinesis, Stream: "orders"},
			{Kinesis: cfg.Kinesis, Stream: "orders", WithoutApps: true, Apps: []string{"a"}},
			{Kinesis: cfg.Kinesis, Stream: "none", WithoutApps: true},
			{Kinesis: cfg.Kinesis, Stream: "orders", Apps: []string{"no-such-app"}},
		} {
			if err := table.Move(t.Context(), bad, []Move{fine}); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
		sameAsScanned(t, table)
		if _, lines := describe(table); fmt.Sprint(lines) != "[w=96/1 x=64/1 y=32/1]" {
			t.Errorf("got %v", lines)
		}
	}, runneltest.WithStream("orders", 1))
}

// Keys that are to change places are moved over a spare one.
func TestMoveInARing(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if _, err := table.Assign(t.Context(), 1, "light"); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Assign(t.Context(), 9, "heavy"); err != nil {
			t.Fatal(err)
		}
		moves, err := table.Plan(allocate.RebalanceScratch)
		if err != nil || len(moves) != 3 {
			t.Fatalf("%v, %v", moves, err)
		}
		cfg := MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true}
		if err := table.Move(t.Context(), cfg, moves); err != nil {
			t.Fatal(err)
		}
		if _, lines := describe(table); fmt.Sprint(lines) != "[heavy=64/9 light=32/1]" {
			t.Errorf("got %v", lines)
		}
	}, runneltest.WithStream("orders", 1))
}

// A process dies at any call of a move. Another one finishes it: every name has its old key or
// its new one, no key is lost or taken twice, and sessions go on.
func TestMoveDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n, finished := 1, false; !finished; n++ {
			inTime(t, func(t *testing.T, server *runneltest.Server) {
				ctx, die := context.WithCancel(t.Context())
				defer die()
				table := open(t, server.DynamoDB(), small)
				if _, err := table.Assign(ctx, 1, "x", "y", "z"); err != nil {
					t.Fatal(err)
				}
				s := join(t, table)
				reads(t, server, "app")
				d := &dying{Client: server.DynamoDB(), kinesis: server.Kinesis(), after: after, die: die, lives: 1 << 40}
				doomed := open(t, d, small)
				d.lives = n
				cfg := MoveConfig{Kinesis: dyingStream{d}, Stream: "orders", Apps: []string{"app"}}
				err := doomed.Move(ctx, cfg, []Move{
					{Name: "x", From: keyOf(64), To: keyOf(5)}, {Name: "y", From: keyOf(32), To: keyOf(6)},
				})
				if finished = err == nil; !finished && !errors.Is(err, errDead) && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				heir := open(t, server.DynamoDB(), small)
				cfg.Kinesis = server.Kinesis()
				if _, err := heir.Resume(within(t, time.Minute), cfg); err != nil {
					t.Fatal(err)
				}
				_, lines := describe(heir)
				if got := fmt.Sprint(lines); got != "[x=5/1 y=6/1 z=96/1]" &&
					(finished || got != "[x=64/1 y=32/1 z=96/1]") {
					t.Errorf("got %v", lines)
				}
				for _, name := range []string{"x", "y", "z"} {
					hash, done := use(t, s, name)
					done()
					if a, _ := heir.Lookup(name); hash != a.Key.String() {
						t.Errorf("%s has %s, want %s", name, hash, a.Key)
					}
				}
				sameAsScanned(t, table)
			}, runneltest.WithStream("orders", 2))
			if t.Failed() || n > 100 {
				t.Fatalf("at call %d, after it: %v", n, after)
			}
			if finished {
				t.Logf("%d calls", n-1)
			}
		}
	}
}

// An interrupted move reverts its changes.
func TestMoveInterrupted(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		s := join(t, table)
		_, done := use(t, s, "x")
		cfg := MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true}
		err := table.Move(within(t, 10*time.Second), cfg, []Move{{Name: "x", From: keyOf(64), To: keyOf(5)}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		done()
		hash, done := use(t, s, "x")
		if done(); hash != "64" {
			t.Errorf("x has %s", hash)
		}
		sameAsScanned(t, table)
	}, runneltest.WithStream("orders", 1))
}

// An application passes a shard without new records, though no checkpoint ever comes. It does not
// pass a shard with unread records.
func TestPassIdle(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if _, err := table.Key(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		stuck := make(chan struct{})
		w, err := consumer.New(consumer.Config{
			Stream: "orders", App: "stuck", Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
			ShutdownTimeout: time.Second,
			Handler: func(ctx context.Context, _ *consumer.Batch) error {
				select {
				case <-stuck:
				case <-ctx.Done():
				}
				return ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-time.After(5 * time.Second)
		cfg := MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", Apps: []string{"stuck"}}
		for i, to := range []uint64{5, 6} { // the second over the first one's mark
			from := []uint64{64, 5}[i]
			if err := table.Move(within(t, 30*time.Second), cfg, []Move{{Name: "x", From: keyOf(from), To: keyOf(to)}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("x"), Data: []byte("x"),
			ExplicitHashKey: aws.String("6"),
		})
		if err != nil {
			t.Fatal(err)
		}
		err = table.Move(within(t, time.Minute), cfg, []Move{{Name: "x", From: keyOf(6), To: keyOf(7)}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "application stuck to pass 1 shards") {
			t.Errorf("got %v", err)
		}
		close(stuck)
		if err := table.Move(within(t, time.Minute), cfg, []Move{{Name: "x", From: keyOf(6), To: keyOf(7)}}); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}, runneltest.WithStream("orders", 1))
}

// A move that is interrupted at any call leaves no name moving. It reverts its changes, also after
// a lost answer.
func TestMoveInterruptedAnywhere(t *testing.T) {
	for n, finished := 1, false; !finished; n++ {
		inTime(t, func(t *testing.T, server *runneltest.Server) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			d := &dying{Client: server.DynamoDB(), kinesis: server.Kinesis(), after: true, lives: 1 << 40}
			d.die = func() {
				interrupt()
				d.mu.Lock()
				d.lives = 1 << 40
				d.mu.Unlock()
			}
			table := open(t, d, small)
			if _, err := table.Key(ctx, "x"); err != nil {
				t.Fatal(err)
			}
			reads(t, server, "app")
			d.lives = n
			err := table.Move(ctx, MoveConfig{Kinesis: dyingStream{d}, Stream: "orders", Apps: []string{"app"}},
				[]Move{{Name: "x", From: keyOf(64), To: keyOf(5)}})
			if finished = err == nil && ctx.Err() == nil; !finished && err != nil && !errors.Is(err, errDead) && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			d.lives = 1 << 40
			heir := open(t, server.DynamoDB(), small)
			_, lines := describe(heir)
			if got := fmt.Sprint(lines); got != "[x=5/1]" && (finished || got != "[x=64/1]") {
				t.Errorf("got %v", lines)
			}
			sameAsScanned(t, table)
		}, runneltest.WithStream("orders", 1))
		if t.Failed() || n > 100 {
			t.Fatalf("at call %d", n)
		}
	}
}

// A move that another process took back, and began anew to another key, is not ended by the first.
func TestMoveOvertaken(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if _, err := table.Key(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		begin := func(to uint64) map[string]row {
			if err := table.begin(t.Context(), []Move{{Name: "x", From: keyOf(64), To: keyOf(to)}}); err != nil {
				t.Fatal(err)
			}
			return map[string]row{"x": *table.mu.state.row("x")}
		}
		first := begin(5)
		if err := table.Abort(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		second := begin(6)
		if err := table.end(t.Context(), first); !errors.Is(err, ErrKeyChanged) {
			t.Errorf("got %v", err)
		}
		for range 2 { // the second time it is done already
			if err := table.end(t.Context(), second); err != nil {
				t.Error(err)
			}
		}
		if _, lines := describe(table); fmt.Sprint(lines) != "[x=6/1]" {
			t.Errorf("got %v", lines)
		}
	})
}
