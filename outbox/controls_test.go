package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/outbox"
)

// controlFor is how long the writers of a control write.
const controlFor = 3 * time.Second

// writeFor lets 16 writers commit rows for a while, each the next number of its key. Their commits
// are delayed at random.
func (b *box) writeFor(keys int) {
	b.t.Helper()
	b.exec("create table counter (key text primary key, n int not null)")
	for key := range keys {
		b.exec(fmt.Sprintf("insert into counter values ('key%d', 0)", key))
	}
	pool := b.pool(b.url + "?pool_max_conns=16")
	end := time.Now().Add(controlFor)
	var writers sync.WaitGroup
	for w := range 16 {
		random := rand.New(rand.NewPCG(uint64(w), 3))
		writers.Go(func() {
			for time.Now().Before(end) {
				err := pgx.BeginFunc(b.t.Context(), pool, func(tx pgx.Tx) error {
					key := fmt.Sprint("key", random.IntN(keys))
					n, err := numbered(b.t.Context(), tx, key)
					if err != nil {
						return err
					}
					row := outbox.Row{Key: key, Data: fmt.Append(nil, n)}
					err = b.table.Insert(b.t.Context(), outbox.PGX(tx), row)
					time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond) // the delay
					return err
				})
				if err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// faultsOf counts what is wrong with the numbers of each key, of which there should be 1 to total.
func (b *box) faultsOf(got map[string][]string) (rows, lost, doubled, disordered int) {
	b.t.Helper()
	found, err := b.sql.QueryContext(b.t.Context(), "select key, n from counter")
	b.must(err)
	defer found.Close()
	for found.Next() {
		var key string
		var total int
		b.must(found.Scan(&key, &total))
		seen, last := map[int]bool{}, 0
		for _, text := range got[key] {
			n, err := strconv.Atoi(text)
			b.must(err)
			switch {
			case seen[n]:
				doubled++
			case n < last:
				disordered++
			}
			seen[n], last = true, max(last, n)
		}
		rows, lost = rows+total, lost+total-len(seen)
	}
	b.must(found.Err())
	return rows, lost, doubled, disordered
}

// The usual cursor, "id > last", loses the rows whose transaction commits after that of a higher
// id. It is the first control.
func TestControlCursor(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	got := map[string][]string{}
	written := make(chan struct{})
	go func() {
		b.writeFor(100)
		close(written)
	}()
	pool := b.pool(b.url)
	last := int64(0)
	for done := false; ; {
		rows, err := pool.Query(t.Context(), "select id, partition_key, record_data::text "+
			"from outbox where id > $1 order by id limit 1000", last)
		b.must(err)
		var key, data string
		n, err := pgx.ForEachRow(rows, []any{&last, &key, &data}, func() error {
			got[key] = append(got[key], data)
			return nil
		})
		b.must(err)
		if done && n.RowsAffected() == 0 {
			break
		}
		select {
		case <-written:
			done = true
		case <-time.After(2 * time.Millisecond):
		}
	}
	rows, lost, doubled, disordered := b.faultsOf(got)
	t.Logf("id > last: of %d rows %d are lost, %d doubled, %d out of order", rows, lost, doubled,
		disordered)
	if lost == 0 {
		t.Error("the control has lost nothing: the writers do not overlap")
	}
}

// The article's query puts the first row of each key, and deletes what was acknowledged. An answer
// that was lost, and a crash before the deletion, double rows. It is the second control.
func TestControlHeads(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.must(b.server.SetFaults("seed=3 PutRecords:lose-answer%5 PutRecords:commit-late=50ms%5 " +
		"PutRecords:fail-record%5"))
	written := make(chan struct{})
	go func() {
		b.writeFor(100)
		close(written)
	}()
	random := rand.New(rand.NewPCG(1, 4))
	client := b.server.Kinesis()
	for done := false; ; {
		n := b.putHeads(client, random.IntN(20) == 0)
		if done && n == 0 {
			break
		}
		select {
		case <-written:
			done = true
		default:
		}
	}
	b.must(b.server.SetFaults(""))
	time.Sleep(100 * time.Millisecond) // the last late calls
	rows, lost, doubled, disordered := b.faultsOf(b.records())
	t.Logf("the article's query: of %d rows %d are lost, %d doubled, %d out of order", rows, lost,
		doubled, disordered)
	if doubled == 0 {
		t.Error("the control has doubled nothing: the faults did not happen")
	}
}

// putHeads puts the first row of each key, and deletes those that were acknowledged, unless it
// crashes before.
func (b *box) putHeads(client *kinesis.Client, crash bool) (n int) {
	b.t.Helper()
	found, err := b.sql.QueryContext(b.t.Context(), `select id, partition_key, record_data
		from outbox where id in (select min(id) from outbox group by partition_key)
		order by id limit 500`)
	b.must(err)
	defer found.Close()
	var ids []int64
	in := &kinesis.PutRecordsInput{StreamName: new("orders")}
	for found.Next() {
		var id int64
		var key string
		var data []byte
		b.must(found.Scan(&id, &key, &data))
		ids = append(ids, id)
		in.Records = append(in.Records, types.PutRecordsRequestEntry{PartitionKey: &key, Data: data})
	}
	b.must(found.Err())
	if len(ids) == 0 {
		return 0
	}
	once := func(o *kinesis.Options) { o.RetryMaxAttempts = 1 }
	out, err := client.PutRecords(context.WithoutCancel(b.t.Context()), in, once)
	if err != nil || crash {
		return len(ids) // the next round puts them again
	}
	for i := range out.Records {
		if out.Records[i].ErrorCode == nil {
			b.exec("delete from outbox where id = $1", ids[i])
		}
	}
	return len(ids)
}
