package mongotest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/mongotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is a document under compare-and-swap.
type row struct {
	ID      string `bson:"_id"`
	Version int64  `bson:"version"`
	Writer  int    `bson:"writer"`
}

// patience is the driver's server selection timeout. It also bounds the time until a new connection
// has said hello, which took more than 2 s on a loaded machine.
const patience = 30 * time.Second

// connect returns a collection, for writes that a majority has in its journal.
func connect(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	durable := writeconcern.Majority()
	durable.Journal = new(true)
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetWriteConcern(durable).
		SetServerSelectionTimeout(patience).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return client.Database("test").Collection("rows")
}

// both runs two writers at once, each with a client of its own.
func both(t *testing.T, uri string, write func(writer int, rows *mongo.Collection) error) {
	t.Helper()
	var group sync.WaitGroup
	for writer := range 2 {
		rows := connect(t, uri)
		group.Go(func() {
			if err := write(writer, rows); err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		})
	}
	group.Wait()
}

func name(i int) string { return fmt.Sprintf("row-%03d", i) }

// fill inserts rows of version 1, with names from 0.
func fill(t *testing.T, rows *mongo.Collection, count int) {
	t.Helper()
	var documents []row
	for i := range count {
		documents = append(documents, row{ID: name(i), Version: 1})
	}
	if _, err := rows.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

// find returns the rows with these names, by name.
func find(ctx context.Context, rows *mongo.Collection, names []string) (map[string]row, error) {
	cursor, err := rows.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: names}}}})
	if err != nil {
		return nil, err
	}
	var found []row
	if err := cursor.All(ctx, &found); err != nil {
		return nil, err
	}
	byName := map[string]row{}
	for _, r := range found {
		byName[r.ID] = r
	}
	if len(byName) != len(found) {
		return nil, fmt.Errorf("%d rows have %d names", len(found), len(byName))
	}
	return byName, nil
}

func names(count int) []string {
	var all []string
	for i := range count {
		all = append(all, name(i))
	}
	return all
}

// at is the filter of a row that is still at a version.
func at(id string, version int64) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "version", Value: version}}
}

// TestInsert has two writers insert the same ids: each id has one winner, and the loser a duplicate
// key.
func TestInsert(t *testing.T) {
	const count = 200
	server := mongotest.New(t)
	var won [2]int
	both(t, server.URI, func(writer int, rows *mongo.Collection) error {
		for i := range count {
			_, err := rows.InsertOne(t.Context(), row{ID: name(i), Version: 1, Writer: writer})
			switch {
			case err == nil:
				won[writer]++
			case !mongo.IsDuplicateKeyError(err):
				return err
			}
		}
		return nil
	})
	found, err := find(t.Context(), connect(t, server.URI), names(count))
	if err != nil {
		t.Fatal(err)
	}
	var has [2]int
	for _, r := range found {
		has[r.Writer]++
	}
	if len(found) != count || has != won {
		t.Errorf("%d rows, of which the writers made %v; their inserts succeeded %v times",
			len(found), has, won)
	}
}

// TestFind reads many ids at once, some of them absent, while two writers insert.
func TestFind(t *testing.T) {
	const count = 1000
	server := mongotest.New(t)
	both(t, server.URI, func(writer int, rows *mongo.Collection) error {
		var mine []row
		for i := writer; i < count; i += 2 {
			mine = append(mine, row{ID: name(i), Version: 1, Writer: writer})
		}
		for len(mine) > 0 {
			if _, err := rows.InsertMany(t.Context(), mine[:50]); err != nil {
				return err
			}
			inserted := mine[0].ID
			mine = mine[50:]
			found, err := find(t.Context(), rows, append(names(count), "absent"))
			if err != nil {
				return err
			}
			if _, ok := found[inserted]; !ok {
				return fmt.Errorf("%s is not found after its insert", inserted)
			}
		}
		return nil
	})
	found, err := find(t.Context(), connect(t, server.URI), append(names(count), "absent"))
	if err != nil || len(found) != count {
		t.Errorf("%d rows of %d: %v", len(found), count, err)
	}
}

// TestReplace has two writers raise one row's version: a replacement of a version that another
// writer has replaced matches nothing.
func TestReplace(t *testing.T) {
	const each = 150
	server := mongotest.New(t)
	fill(t, connect(t, server.URI), 1)
	var lost [2]int
	both(t, server.URI, func(writer int, rows *mongo.Collection) error {
		for done := 0; done < each; {
			found, err := find(t.Context(), rows, names(1))
			if err != nil {
				return err
			}
			version := found[name(0)].Version
			result, err := rows.ReplaceOne(t.Context(), at(name(0), version),
				row{ID: name(0), Version: version + 1, Writer: writer})
			if err != nil {
				return err
			}
			done += int(result.MatchedCount)
			lost[writer] += 1 - int(result.MatchedCount)
		}
		return nil
	})
	found, err := find(t.Context(), connect(t, server.URI), names(1))
	if err != nil || found[name(0)].Version != 1+2*each {
		t.Errorf("version %d after %d replacements: %v", found[name(0)].Version, 2*each, err)
	}
	t.Logf("the writers lost %v races", lost)
	if lost[0]+lost[1] == 0 {
		t.Error("no race: the test shows nothing")
	}
}

// TestBulk has two writers replace the same rows in unordered bulks. The result has one count for
// the whole bulk and does not name the lost rows.
func TestBulk(t *testing.T) {
	const count, rounds = 50, 20
	server := mongotest.New(t)
	fill(t, connect(t, server.URI), count)
	var matched [2]int64
	both(t, server.URI, func(writer int, rows *mongo.Collection) error {
		for range rounds {
			found, err := find(t.Context(), rows, names(count))
			if err != nil {
				return err
			}
			var models []mongo.WriteModel
			for id, r := range found {
				models = append(models, mongo.NewReplaceOneModel().SetFilter(at(id, r.Version)).
					SetReplacement(row{ID: id, Version: r.Version + 1, Writer: writer}))
			}
			result, err := rows.BulkWrite(t.Context(), models,
				options.BulkWrite().SetOrdered(false))
			if err != nil {
				return err
			}
			matched[writer] += result.MatchedCount
		}
		return nil
	})
	found, err := find(t.Context(), connect(t, server.URI), names(count))
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, r := range found {
		sum += r.Version - 1
	}
	t.Logf("matched %v of %d each", matched, count*rounds)
	if sum != matched[0]+matched[1] {
		t.Errorf("the versions rose by %d, and %v replacements matched", sum, matched)
	}
	if sum == 2*count*rounds {
		t.Error("no race: the test shows nothing")
	}
}

// TestBulkUpsert has a bulk name its lost rows. With an upsert a replacement of another version
// becomes an insert of an existing id, and so a write error with its index.
func TestBulkUpsert(t *testing.T) {
	server := mongotest.New(t)
	rows := connect(t, server.URI)
	fill(t, rows, 4)
	if _, err := rows.ReplaceOne(t.Context(), at(name(1), 1),
		row{ID: name(1), Version: 2}); err != nil {
		t.Fatal(err)
	}
	var models []mongo.WriteModel
	for i := range 5 { // row 4 is new
		models = append(models, mongo.NewReplaceOneModel().SetUpsert(true).
			SetFilter(at(name(i), 1)).SetReplacement(row{ID: name(i), Version: 2, Writer: 1}))
	}
	result, err := rows.BulkWrite(t.Context(), models, options.BulkWrite().SetOrdered(false))
	var failed mongo.BulkWriteException
	if !errors.As(err, &failed) || !mongo.IsDuplicateKeyError(err) {
		t.Fatalf("not a duplicate key: %v", err)
	}
	if len(failed.WriteErrors) != 1 || failed.WriteErrors[0].Index != 1 {
		t.Errorf("failed: %+v", failed.WriteErrors)
	}
	if result.MatchedCount != 3 || result.UpsertedCount != 1 || result.UpsertedIDs[4] != name(4) {
		t.Errorf("result %+v", result)
	}
	found, err := find(t.Context(), rows, names(5))
	if err != nil || len(found) != 5 || found[name(1)].Writer != 0 {
		t.Errorf("%v: %v", found, err)
	}
}

// TestKill kills the server below two writers. Every write that it answered is there, and one that
// it did not answer is there at most.
func TestKill(t *testing.T) {
	const count, kills, between = 8, 3, 20
	server := mongotest.New(t)
	fill(t, connect(t, server.URI), 2*count)
	ended, progress := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for writer := range 2 {
		w := &replacer{t: t, rows: connect(t, server.URI), writer: writer, version: map[string]int64{}}
		for _, id := range names(2 * count)[writer*count : (writer+1)*count] {
			w.version[id] = 1
		}
		group.Go(func() { w.run(ended, progress) })
	}
	for kill := range kills + 1 {
		for range between {
			<-progress
		}
		if kill < kills {
			server.Kill()
			server.Start()
		}
	}
	close(ended)
	group.Wait()
	_, err := connect(t, server.URI).InsertOne(t.Context(), row{ID: name(0)})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("the index has lost an id: %v", err)
	}
}

// replacer replaces its own rows, all of them in each bulk.
type replacer struct {
	t       *testing.T
	rows    *mongo.Collection
	writer  int
	version map[string]int64 // by name, as the server answered

	answered, unknown, partly int // bulks
}

// run replaces until the end. It never waits for a reader of progress, so that a kill meets a bulk.
func (w *replacer) run(ended <-chan struct{}, progress chan<- struct{}) {
	for {
		select {
		case <-ended:
			w.t.Logf("writer %d: %d bulks answered, %d unknown, %d of them there in part",
				w.writer, w.answered, w.unknown, w.partly)
			return
		case progress <- struct{}{}:
		default:
		}
		if err := w.replace(); err != nil {
			w.unknown++
			w.look(err)
		}
	}
}

// replace makes a bulk.
func (w *replacer) replace() error {
	var models []mongo.WriteModel
	for id, version := range w.version {
		models = append(models, mongo.NewReplaceOneModel().SetFilter(at(id, version)).
			SetReplacement(row{ID: id, Version: version + 1, Writer: w.writer}))
	}
	result, err := w.rows.BulkWrite(w.t.Context(), models, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return err
	}
	if result.MatchedCount != int64(len(models)) {
		w.t.Errorf("matched %d rows of %d", result.MatchedCount, len(models))
	}
	for id := range w.version {
		w.version[id]++
	}
	w.answered++
	return nil
}

// look reads the rows after an error, until the server is there. Each has the version that was
// answered, or the next.
func (w *replacer) look(err error) {
	var found map[string]row
	for err != nil {
		if !away(err) {
			w.t.Errorf("not for the kill: %T: %v", err, err)
		}
		found, err = find(w.t.Context(), w.rows, slices.Collect(maps.Keys(w.version)))
	}
	risen := 0
	for id, version := range w.version {
		switch now := found[id].Version; now {
		case version:
		case version + 1:
			risen++
		default:
			w.t.Errorf("%s has version %d; %d was answered", id, now, version)
		}
		w.version[id] = found[id].Version
	}
	if risen > 0 && risen < len(w.version) {
		w.partly++
	}
}

// away reports whether a call failed because the server is away. After one call has lost its
// connection the driver fails calls that wait for a connection with an error that is neither of the
// network nor a timeout. Its type is not exported.
func away(err error) bool {
	var cleared interface {
		error
		Retryable() bool
	}
	return mongo.IsNetworkError(err) || mongo.IsTimeout(err) ||
		errors.As(err, &cleared) && cleared.Retryable()
}

// TestErrors shows how the driver classifies errors.
func TestErrors(t *testing.T) {
	server := mongotest.New(t)
	rows := connect(t, server.URI)
	fill(t, rows, 1)
	insert := func(ctx context.Context) error {
		_, err := rows.InsertOne(ctx, row{ID: name(0)})
		return err
	}
	check := func(what string, err error, timeout, network, duplicate bool) {
		t.Helper()
		t.Logf("%s: %T: %v", what, err, err)
		if mongo.IsTimeout(err) != timeout || mongo.IsNetworkError(err) != network ||
			mongo.IsDuplicateKeyError(err) != duplicate {
			t.Errorf("%s: timeout %v, network %v, duplicate key %v", what, mongo.IsTimeout(err),
				mongo.IsNetworkError(err), mongo.IsDuplicateKeyError(err))
		}
	}
	check("duplicate key", insert(t.Context()), false, false, true)

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err := insert(cancelled)
	check("cancelled", err, false, false, false)
	if !errors.Is(err, context.Canceled) {
		t.Error("a cancelled call does not say so")
	}

	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	err = insert(ctx)
	cancel()
	check("the context's end", err, true, true, false)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("a call past its deadline does not say so")
	}
	server.Resume()

	server.Kill()
	briefly := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return insert(ctx)
	}
	for err = briefly(); !mongo.IsTimeout(err); err = briefly() {
		if !away(err) { // until the driver knows, calls fail at once
			t.Fatalf("a call without a server: %T: %v", err, err)
		}
	}
	check("no server", err, true, false, false)
	server.Start()
	check("the server again", insert(t.Context()), false, false, true)
}

// TestTimeout has a client with a timeout of its own, which holds for a call without a deadline.
func TestTimeout(t *testing.T) {
	server := mongotest.New(t)
	rows := connect(t, server.URI+"/?timeoutMS=300")
	fill(t, rows, 1)
	server.Pause()
	began := time.Now()
	_, err := rows.InsertOne(t.Context(), row{ID: name(1)})
	if !mongo.IsTimeout(err) || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	server.Resume()
}

// TestSkip shows that a test without the stand-in names the remedy.
func TestSkip(t *testing.T) {
	t.Setenv(mongotest.Env, t.TempDir())
	skipped := &skipping{TB: t}
	func() {
		defer func() { _ = recover() }() // Skip does not return
		mongotest.New(skipped)
	}()
	if !strings.Contains(skipped.reason, "run interop/install") {
		t.Errorf("skipped with %q", skipped.reason)
	}
}

// skipping is a test that records why it was skipped.
type skipping struct {
	testing.TB
	reason string
}

func (s *skipping) Skipf(format string, args ...any) {
	s.reason = fmt.Sprintf(format, args...)
	panic(s.reason)
}
