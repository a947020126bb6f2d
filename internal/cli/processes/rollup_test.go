//go:build linux

package processes_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/dynamolocaltest"
	"github.com/runnel-stream/runnel/internal/mongotest"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/producer"
)

const (
	rollupFailover = time.Second
	rollupChaos    = 15 * time.Second
	rollupRows     = 1867 // of the real events by type and minute
)

// TestRollupKills rolls the real events up by type and minute while workers are killed with -9, are
// stopped, also with records in hand, and lose the way to the database, to the lease table or to
// both, while PostgreSQL is stopped at once, and while shards split and merge. Every row must be
// the one that is made from the file. A copy of the SQL database is restored below the workers while
// records flow, and once more in the end: every row must be right again. A copy of a store of rows
// is restored with the workers ended, and the leases are reset.
//
// The soak has stores of rows as well: MongoDB, the DynamoDB of the stream's server, and DynamoDB
// Local. The last two have the leases beside the rows. make interop names the folders of the
// servers in Java, and so runs these stores in CI.
func TestRollupKills(t *testing.T) {
	events := realEvents(t)
	if underRace {
		t.Skip("the kill run is for the release build: it has races between processes alone")
	}
	kinds := []string{"postgres", "sqlite"}
	if soak() > 1 || os.Getenv(dynamolocaltest.Env) != "" {
		kinds = append(kinds, "dynamodb", "dynamolocal")
	}
	if soak() > 1 || os.Getenv(mongotest.Env) != "" {
		kinds = append(kinds, "mongodb")
	}
	for _, kind := range kinds {
		for seed := range uint64(soak()) {
			t.Run(fmt.Sprintf("%s,seed=%d", kind, seed+1), func(t *testing.T) {
				t.Parallel()
				newRollupRun(t, events, kind, seed+1).all()
			})
		}
	}
}

// rollupRun is one run of TestRollupKills.
type rollupRun struct {
	*killRun
	kind     string
	postgres *pgtest.Server          // of PostgreSQL
	mongo    *mongotest.Server       // of MongoDB
	local    *dynamolocaltest.Server // of DynamoDB Local
	db       *sql.DB                 // of both SQL databases
	tables   *dynamodb.Client        // of the leases, and of the rows in DynamoDB
	tablesAt string                  // the URL of tables
	client   *kinesis.Client
	want     map[string]string // the rows of the file: "count sum max" by "type minute"
	lines    [][2]string       // the file: repository and line
	reshards *rand.Rand

	server  *process
	workers [2]*rollupWorker
	kills   int
}

// rollupWorker is a worker with its own ways to the database and to the lease table.
type rollupWorker struct {
	*process
	toDB, toTable *way
}

func newRollupRun(t *testing.T, events, kind string, seed uint64) *rollupRun {
	r := &rollupRun{
		killRun: newKillRun(t, events, seed), kind: kind, want: map[string]string{},
		reshards: rand.New(rand.NewPCG(seed, 77)),
	}
	r.readEvents()
	r.server = r.serve("PutRecords:lose-answer%3")
	at := fmt.Sprintf("file:%s?_pragma=busy_timeout(20000)", r.file())
	driver, databaseHost, dynamoHost := "sqlite", "", strings.TrimPrefix(r.endpoint, "http://")
	switch kind {
	case "postgres":
		r.postgres = pgtest.New(t)
		driver, at, databaseHost = "pgx", r.postgres.URL, hostOf(t, r.postgres.URL)
	case "mongodb":
		r.mongo = mongotest.New(t)
		databaseHost = hostOf(t, r.mongo.URI)
	case "dynamolocal":
		r.local = dynamolocaltest.New(t)
		dynamoHost = r.local.Addr
	}
	r.tablesAt = "http://" + dynamoHost
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{ // with the keys of the workers
		Endpoint: r.endpoint, DynamoDBEndpoint: r.tablesAt,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.client, r.tables = kinesis.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	for i := range r.workers {
		w := &rollupWorker{toTable: newWay(t, dynamoHost)}
		if databaseHost != "" {
			w.toDB = newWay(t, databaseHost)
		}
		r.workers[i] = w
		r.startWorker(i)
	}
	if r.isSQL() {
		if r.db, err = sql.Open(driver, at); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.db.Close() })
	}
	clitest.Eventually(t, "the table is there", func() bool { return r.count() >= 0 })
	return r
}

func hostOf(t *testing.T, at string) string {
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}

func (r *rollupRun) isSQL() bool { return r.kind == "postgres" || r.kind == "sqlite" }

func (r *rollupRun) file() string { return filepath.Join(filepath.Dir(r.data), "rollup.db") }

func (r *rollupRun) startWorker(i int, more ...string) {
	w := r.workers[i]
	var to []string
	switch r.kind {
	case "postgres":
		to = []string{"--db", "postgres://postgres@" + w.toDB.addr() + "/postgres"}
	case "sqlite":
		to = []string{"--db", "sqlite:" + r.file()}
	case "dynamodb", "dynamolocal":
		to = []string{"--dynamodb", "by_minute"}
	default:
		to = []string{
			"--mongodb", "mongodb://" + w.toDB.addr() + "/test", "--collection", "by_minute",
		}
	}
	if r.isSQL() {
		to = append(to, "--table", "by_minute")
	}
	w.process = r.start(slices.Concat([]string{
		"rollup", "--endpoint", r.endpoint, "--dynamodb-endpoint", "http://" + w.toTable.addr(),
		"--stream", "events", "--key", "/type",
		"--bucket", "1m", "--time", "/created_at", "--count", "--sum", "/actor_id:int",
		"--max", "/actor_id:int", "--failover", rollupFailover.String(),
	}, to, more)...)
}

// readEvents reads the file, and makes the rows from it.
func (r *rollupRun) readEvents() {
	t := r.t
	file, err := os.Open(r.events)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ count, sum, most int64 }
	rows := map[string]*row{}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Type, Repo string
			CreatedAt  time.Time `json:"created_at"`
			ActorID    int64     `json:"actor_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		key := event.Type + " " + event.CreatedAt.Truncate(time.Minute).UTC().Format(time.RFC3339)
		if rows[key] == nil {
			rows[key] = &row{most: event.ActorID}
		}
		of := rows[key]
		of.count, of.sum, of.most = of.count+1, of.sum+event.ActorID, max(of.most, event.ActorID)
		r.lines = append(r.lines, [2]string{event.Repo, lines.Text()})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for key, of := range rows {
		r.want[key] = fmt.Sprint(of.count, of.sum, of.most)
	}
	if len(r.want) != rollupRows || len(r.lines) != eventsCount {
		t.Fatalf("%d rows of %d events", len(r.want), len(r.lines))
	}
}

// count returns the records in the table; -1 if it cannot be read.
func (r *rollupRun) count() (n int) {
	if !r.isSQL() {
		_, n = r.rowsOfStore()
		return n
	}
	err := r.db.QueryRowContext(r.t.Context(), "select coalesce(sum(count), 0) from by_minute").Scan(&n)
	if err != nil {
		return -1
	}
	return n
}

// rows reads the table as want has it.
func (r *rollupRun) rows() map[string]string {
	if !r.isSQL() {
		rows, _ := r.rowsOfStore()
		return rows
	}
	t := r.t
	found, err := r.db.QueryContext(t.Context(),
		"select type, bucket, count, sum_actor_id, max_actor_id from by_minute")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	rows := map[string]string{}
	for found.Next() {
		var of, text string
		var at time.Time
		var bucket any = &at
		if r.postgres == nil {
			bucket = &text
		}
		var count, sum, most int64
		if err := found.Scan(&of, bucket, &count, &sum, &most); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if at, err = time.Parse(time.RFC3339, text); err != nil {
				t.Fatal(err)
			}
		}
		rows[of+" "+at.UTC().Format(time.RFC3339)] = fmt.Sprint(count, sum, most)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// rowsOfStore reads the rows of DynamoDB or MongoDB as want has them, and the number of records in
// them; -1 if they cannot be read.
func (r *rollupRun) rowsOfStore() (map[string]string, int) {
	rows, records := map[string]string{}, 0
	add := func(of string, at time.Time, count, sum, most int64) {
		rows[of+" "+at.UTC().Format(time.RFC3339)] = fmt.Sprint(count, sum, most)
		records += int(count)
	}
	read := r.readDynamoDB
	if r.mongo != nil {
		read = r.readMongoDB
	}
	if err := read(add); err != nil {
		return rows, -1
	}
	return rows, records
}

type addRow func(of string, at time.Time, count, sum, most int64)

func (r *rollupRun) readMongoDB(add addRow) error {
	ctx := r.t.Context()
	client, err := mongo.Connect(options.Client().ApplyURI(r.mongo.URI))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(ctx) }()
	var documents []struct {
		Type   string
		Bucket time.Time
		Count  int64
		Sum    int64 `bson:"sum_actor_id"`
		Max    int64 `bson:"max_actor_id"`
	}
	isRow := bson.D{{Key: "version", Value: bson.D{{Key: "$exists", Value: true}}}}
	found, err := client.Database("test").Collection("by_minute").Find(ctx, isRow)
	if err == nil {
		err = found.All(ctx, &documents)
	}
	for _, d := range documents {
		add(d.Type, d.Bucket, d.Count, d.Sum, d.Max)
	}
	return err
}

func (r *rollupRun) readDynamoDB(add addRow) error {
	pages := dynamodb.NewScanPaginator(r.tables, &dynamodb.ScanInput{
		TableName: aws.String("by_minute"), ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.t.Context())
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			text := func(name string) string {
				if s, ok := item[name].(*dynamotypes.AttributeValueMemberS); ok {
					return s.Value
				}
				return ""
			}
			number := func(name string) (n int64) {
				_, _ = fmt.Sscan(item[name].(*dynamotypes.AttributeValueMemberN).Value, &n)
				return n
			}
			at, err := time.Parse(time.RFC3339, text("bucket"))
			if err != nil {
				continue // the table's setup
			}
			add(text("type"), at, number("count"), number("sum_actor_id"), number("max_actor_id"))
		}
	}
	return nil
}

// arrive waits until all records are in the table. It gives up when none has come for half a minute:
// DynamoDB Local takes its time.
func (r *rollupRun) arrive(when string) {
	r.t.Helper()
	most, since := -1, time.Now()
	for n := r.count(); n < len(r.lines); n = r.count() {
		if n > most {
			most, since = n, time.Now()
		}
		if time.Since(since) > 30*time.Second {
			r.t.Fatalf("%s: %d records of %d are in the table, and no more come", when, most,
				len(r.lines))
		}
		time.Sleep(100 * time.Millisecond) // until the next look
	}
}

// settle waits until all records are in the table, and a while longer: one that counts twice would
// come then.
func (r *rollupRun) settle(when string) {
	t := r.t
	t.Helper()
	r.arrive(when)
	time.Sleep(2 * rollupFailover) // for doubles
	got, wrong := r.rows(), 0
	for key, want := range r.want {
		if got[key] != want {
			if wrong++; wrong < 4 {
				t.Errorf("%s: row %s is %s, want %s", when, key, got[key], want)
			}
		}
	}
	if wrong > 0 || len(got) != len(r.want) {
		t.Fatalf("%s: %d rows of %d are wrong; %d rows are there; %d records of %d", when, wrong,
			len(r.want), len(got), r.count(), len(r.lines))
	}
}

// feed puts all events within the time of the chaos.
func (r *rollupRun) feed(ctx context.Context) error {
	p, err := producer.New(ctx, producer.Config{
		Stream: "events", Kinesis: r.client, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	const slices = 100
	for n, line := range r.lines {
		if n%(len(r.lines)/slices) == 0 {
			time.Sleep(rollupChaos / slices) // the events' own pace
		}
		_, err := p.Put(ctx, nouns.Record{PartitionKey: line[0], Data: []byte(line[1])})
		if err != nil {
			return err
		}
	}
	return p.Close(ctx)
}

// moment is an act that a run does once, after some time.
type moment struct {
	after time.Duration
	do    func()
}

func (r *rollupRun) all() {
	var feeding sync.WaitGroup
	feeding.Go(func() {
		if err := r.feed(r.t.Context()); err != nil {
			r.t.Error(err)
		}
	})
	var restore func()
	start := time.Now()
	due := []moment{
		{rollupChaos / 3, func() { restore = r.backup() }},
		{rollupChaos / 2, r.freeze},
		{rollupChaos * 2 / 3, func() { restore() }}, // while records flow
	}
	if !r.isSQL() {
		due = due[:2]
	}
	for since := time.Duration(0); since < rollupChaos; since = time.Since(start) {
		time.Sleep(r.between(100*time.Millisecond, 700*time.Millisecond)) // the misfortune's moment
		if len(due) > 0 && since > due[0].after {
			due[0].do()
			due = due[1:]
		} else {
			r.misfortune()
		}
		r.kills++
	}
	feeding.Wait()
	r.settle("after the run")
	restore()
	r.settle("after the restore")
	for _, w := range r.workers {
		w.stop()
	}
	r.startWorker(0, "--once")
	r.workers[0].want(0)
	r.settle("at the end")
	r.t.Logf("soak: 1 seeds, %d crashes", r.kills)
}

func (r *rollupRun) misfortune() {
	i := r.random.IntN(len(r.workers))
	w := r.workers[i]
	switch what := r.random.IntN(10); {
	case what < 2:
		w.kill()
		r.startWorker(i)
	case what == 2:
		w.pause(r.between(rollupFailover, 2*rollupFailover))
	case what < 6:
		r.reshard()
	case what == 6:
		r.cutOff(w.toDB)
	case what == 7:
		r.cutOff(w.toTable)
	case what == 8:
		r.cutOff(w.toDB, w.toTable)
	case r.hasServer():
		r.stopDatabase()
		time.Sleep(r.between(0, time.Second)) // the database's outage
		r.startDatabase()
	default: // the database is in the workers, or in the stream's server
		for i, w := range r.workers {
			w.kill()
			r.startWorker(i)
		}
	}
}

// hasServer reports whether the database is a process of its own.
func (r *rollupRun) hasServer() bool {
	return r.postgres != nil || r.mongo != nil || r.local != nil
}

func (r *rollupRun) stopDatabase() {
	switch {
	case r.postgres != nil:
		r.postgres.Kill()
	case r.mongo != nil:
		r.mongo.Kill()
	default:
		r.local.Pause() // it keeps its rows in memory
	}
}

func (r *rollupRun) startDatabase() {
	switch {
	case r.postgres != nil:
		r.postgres.Start()
	case r.mongo != nil:
		r.mongo.Start()
	default:
		r.local.Resume()
	}
}

// cutOff cuts ways for a while. In half of the cases the database is stopped meanwhile.
func (r *rollupRun) cutOff(ways ...*way) {
	for _, w := range ways {
		w.cut(true)
	}
	stops := r.hasServer() && r.random.IntN(2) == 0
	if stops {
		r.stopDatabase()
	}
	time.Sleep(r.between(rollupFailover/2, 2*rollupFailover)) // the cut's length
	if stops {
		r.startDatabase()
	}
	for _, w := range ways {
		w.cut(false)
	}
}

// reshard splits or merges a shard, if the stream is not busy with one.
func (r *rollupRun) reshard() { reshardEvents(r.t, r.client, r.reshards) }

func reshardEvents(t *testing.T, client *kinesis.Client, random *rand.Rand) {
	name := aws.String("events")
	listed, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: name})
	if err != nil {
		t.Fatal(err)
	}
	open := slices.DeleteFunc(listed.Shards, func(s types.Shard) bool {
		return s.SequenceNumberRange.EndingSequenceNumber != nil
	})
	low := func(s types.Shard) keyspace.Key {
		key, _ := keyspace.Parse(*s.HashKeyRange.StartingHashKey) // a server's number
		return key
	}
	high := func(s types.Shard) keyspace.Key {
		key, _ := keyspace.Parse(*s.HashKeyRange.EndingHashKey) // as above
		return key
	}
	slices.SortFunc(open, func(a, b types.Shard) int { return low(a).Compare(low(b)) })
	i := random.IntN(len(open))
	if i+1 < len(open) && random.IntN(2) == 0 {
		_, err = client.MergeShards(t.Context(), &kinesis.MergeShardsInput{
			StreamName: name, ShardToMerge: open[i].ShardId,
			AdjacentShardToMerge: open[i+1].ShardId,
		})
	} else {
		middle := keyspace.Range{Start: low(open[i]), End: high(open[i])}.Middle().String()
		_, err = client.SplitShard(t.Context(), &kinesis.SplitShardInput{
			StreamName: name, ShardToSplit: open[i].ShardId, NewStartingHashKey: &middle,
		})
	}
	if err != nil && !strings.Contains(err.Error(), "ResourceInUse") {
		t.Fatal(err)
	}
}

// way is a network's way to a server, which can be cut: connections then pass nothing on, and new
// ones get no answer.
type way struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	mend  chan struct{} // closed when the way is mended
}

func newWay(t *testing.T, to string) *way {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: listener, to: to, mend: make(chan struct{})}
	close(w.mend)
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		cancel()
		serving.Wait()
	})
	return w
}

func (w *way) addr() string { return w.listener.Addr().String() }

func (w *way) cut(on bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut == on {
		return
	}
	if w.isCut = on; on {
		w.mend = make(chan struct{})
		return
	}
	close(w.mend)
}

// mended waits until the way is not cut.
func (w *way) mended(ctx context.Context) error {
	w.mu.Lock()
	mend := w.mend
	w.mu.Unlock()
	select {
	case <-mend:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *way) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	if w.mended(ctx) != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(slow{ctx, w, to}, from)
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { pass(client, server) })
	pass(server, client)
	both.Wait()
}

// slow writes once the way is not cut.
type slow struct {
	ctx context.Context
	way *way
	to  net.Conn
}

func (s slow) Write(p []byte) (int, error) {
	if err := s.way.mended(s.ctx); err != nil {
		return 0, err
	}
	return s.to.Write(p)
}
