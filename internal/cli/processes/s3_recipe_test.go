package processes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/s3test"
)

// recipe is a well-known way to store records by the minute, as a control: the object of a batch's
// minute is named after the first and the last record in it. A worker that begins with a shard
// leaves out the records that an object of the minute has by its name, and stops to look when a
// batch has none. It is one worker of a fleet.
type recipe struct {
	client *s3.Client
	prefix string
	dead   atomic.Bool // no call of it arrives any more
	stop   context.CancelFunc
	ended  chan error

	mu    sync.Mutex
	fresh map[nouns.ShardID]bool // there is nothing more to leave out
}

// RoundTrip is the recipe's way to all servers.
func (w *recipe) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.dead.Load() {
		return nil, errors.New("the worker is dead")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// newRecipe starts a worker.
func (r *killRun) newRecipe(g *s3test.Gateway, id string) *recipe {
	ctx, cancel := context.WithCancel(r.t.Context())
	w := &recipe{
		prefix: fmt.Sprintf("recipe-%d/", r.seed), stop: cancel, ended: make(chan error, 1),
		fresh: map[nouns.ShardID]bool{},
	}
	of := func(endpoint string, keys aws.CredentialsProvider) aws.Config {
		return aws.Config{
			Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: keys,
			HTTPClient: awsclient.PlainBodies(&http.Client{Transport: w}),
		}
	}
	w.client = s3.NewFromConfig(of(g.URL, credentials.NewStaticCredentialsProvider(
		s3test.AccessKeyID, s3test.SecretAccessKey, "")), func(o *s3.Options) {
		o.UsePathStyle = true
	})
	server := of(r.endpoint, aws.AnonymousCredentials{})
	worker, err := consumer.New(consumer.Config{
		Stream: "events", App: "recipe", WorkerID: id, Failover: 2 * time.Second,
		Kinesis: awsclient.Kinesis(server), DynamoDB: awsclient.DynamoDB(server),
		Logger: slog.New(slog.DiscardHandler), Handler: w.handle,
		OnEvent: func(e consumer.Event) {
			if e.Kind == consumer.EventShardStarted {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.fresh[e.ShardID] = false
			}
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	go func() { w.ended <- worker.Run(ctx) }()
	return w
}

// kill ends the worker as -9 does: nothing that it sends arrives any more.
func (w *recipe) kill() {
	w.dead.Store(true)
	w.stop()
	<-w.ended
}

// numbers is a range of sequence numbers.
type numbers struct{ first, last *big.Int }

func (n numbers) has(at *big.Int) bool { return n.first.Cmp(at) <= 0 && at.Cmp(n.last) <= 0 }

func numberOf(r *nouns.Record) *big.Int {
	n, _ := new(big.Int).SetString(string(r.Position.Sequence), 10)
	return n
}

func (w *recipe) handle(ctx context.Context, batch *consumer.Batch) error {
	minutes := map[string][]nouns.Record{}
	for _, record := range batch.Records {
		minute := record.ArrivalTime.UTC().Format("2006/01/02/15/04/")
		minutes[minute] = append(minutes[minute], record)
	}
	for minute, records := range minutes {
		slices.SortStableFunc(records, func(a, b nouns.Record) int {
			return a.ArrivalTime.Compare(b.ArrivalTime)
		})
		of := numbers{numberOf(&records[0]), numberOf(&records[len(records)-1])}
		w.mu.Lock()
		fresh := w.fresh[batch.ShardID]
		w.mu.Unlock()
		if !fresh {
			left, err := w.leftOut(ctx, w.prefix+minute, of)
			if err != nil {
				return err
			}
			if len(left) == 0 {
				w.mu.Lock()
				w.fresh[batch.ShardID] = true
				w.mu.Unlock()
			}
			records = slices.DeleteFunc(records, func(r nouns.Record) bool {
				at := numberOf(&r)
				return slices.ContainsFunc(left, func(n numbers) bool { return n.has(at) })
			})
		}
		if err := w.save(ctx, fmt.Sprintf("%s%s%s-%s", w.prefix, minute, of.first, of.last),
			records); err != nil {
			return err
		}
	}
	return nil
}

// leftOut returns the ranges that the recipe takes for stored, in the order of a listing: up to the
// first one that lies before the batch's own.
func (w *recipe) leftOut(ctx context.Context, folder string, of numbers) ([]numbers, error) {
	out, err := w.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: aws.String(s3test.Bucket), Prefix: &folder,
	})
	if err != nil {
		return nil, err
	}
	var left []numbers
	for _, object := range out.Contents {
		var stored numbers
		first, last, _ := strings.Cut(strings.TrimPrefix(*object.Key, folder), "-")
		stored.first, _ = new(big.Int).SetString(first, 10)
		stored.last, _ = new(big.Int).SetString(last, 10)
		switch {
		case of.first.Cmp(stored.last) > 0:
			return left, nil
		case of.last.Cmp(stored.first) < 0:
			left = append(left, of)
		default:
			left = append(left, stored)
		}
	}
	return left, nil
}

func (w *recipe) save(ctx context.Context, key string, records []nouns.Record) error {
	var lines bytes.Buffer
	for _, record := range records {
		lines.Write(append(record.Data, '\n'))
	}
	_, err := w.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(s3test.Bucket), Key: &key, Body: bytes.NewReader(lines.Bytes()),
	})
	return err
}

// settle waits until the recipe has stored nothing new for longer than a take-over lasts.
func (w *recipe) settle(g *s3test.Gateway) {
	missing, doubled := -1, -1
	for since := time.Now(); time.Since(since) < 5*time.Second; time.Sleep(200 * time.Millisecond) {
		m, d, err := w.count(g)
		if err != nil || m != missing || d != doubled {
			missing, doubled, since = m, d, time.Now()
		}
	}
}

// count returns how many events the recipe has lost and how many it has stored more than once.
func (w *recipe) count(g *s3test.Gateway) (lost, doubled int, err error) {
	got := map[string]int{}
	err = filepath.WalkDir(filepath.Join(g.Data, w.prefix),
		func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			file, err := os.Open(name)
			if err != nil {
				return err
			}
			defer file.Close()
			for lines := json.NewDecoder(file); lines.More(); {
				var event struct{ ID string }
				if err := lines.Decode(&event); err != nil {
					return err
				}
				got[event.ID]++
			}
			return nil
		})
	for _, n := range got {
		doubled += n - 1
	}
	return eventsCount - len(got), doubled, err
}
