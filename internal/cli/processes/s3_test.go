package processes_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/ndjson"
	"github.com/runnel-stream/runnel/internal/s3test"
)

// TestS3Kills archives real events into S3, with two workers of eight shards. One is killed with
// -9, the store is gone for ten seconds, the stream's server is killed with -9, and shards split.
// Nothing may be missing, doubled or out of order, also for a reader of files that knows nothing of
// runnel, and the other worker lives all the time. Then the archive is restored into another
// stream, amid kills.
func TestS3Kills(t *testing.T) {
	g := s3test.New(t)
	events := realEvents(t)
	for seed := range uint64(soak()) {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			r := newKillRun(t, events, seed+1)
			place := fmt.Sprintf("archive-%d", seed+1)
			r.archive = "s3://" + s3test.Bucket + "/" + place
			r.env = []string{
				"AWS_ACCESS_KEY_ID=" + s3test.AccessKeyID,
				"AWS_SECRET_ACCESS_KEY=" + s3test.SecretAccessKey, "AWS_ENDPOINT_URL_S3=" + g.URL,
			}
			r.table = []string{"--table", "minutes", "--layout", "minute"}
			s3Kills(r, g)
			plainOrder(t, filepath.Join(g.Data, place), events)
			plainMinutes(t, filepath.Join(g.Data, place, "tables", "minutes"))
		})
	}
	t.Logf("soak: %d seeds, %d crashes", soak(), 2*soak())
}

func s3Kills(r *killRun, g *s3test.Gateway) {
	serve := func() *process {
		return r.serveWith("serve", "--addr", r.addr, "--data", r.data, "--stream", "events:8",
			"--limits", "write-bytes=192KiB", "--chaos",
			fmt.Sprintf("seed=%d PutRecords:lose-answer%%5", r.seed))
	}
	server := serve()
	first, second := r.archiver(), r.archiver()
	lost, kept := r.newRecipe(g, "first"), r.newRecipe(g, "second")
	put := r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo",
		"--output", "json", r.events)
	split := func(shard int) {
		r.start("shards", "split", fmt.Sprintf("shardId-%012d", shard), "--stream", "events",
			"--endpoint", r.endpoint, "--yes").want(0)
	}
	time.Sleep(r.between(500*time.Millisecond, 1500*time.Millisecond)) // the kill's moment
	split(r.random.IntN(4))
	first.kill()
	lost.kill()
	time.Sleep(r.between(0, time.Second)) // the outage's moment
	g.Kill()
	split(4 + r.random.IntN(4))
	time.Sleep(r.between(0, time.Second)) // the kill's moment
	server.kill()
	server = serve()
	time.Sleep(10 * time.Second) // the outage's length
	g.Start()
	r.beforeEnd = func() {
		kept.settle(g)
		kept.stop()
		if err := <-kept.ended; err != nil {
			r.t.Errorf("the recipe's worker: %v", err)
		}
		missing, doubled, err := kept.count(g)
		if err != nil {
			r.t.Error(err)
		}
		r.t.Logf("the recipe: %d missing, %d doubled", missing, doubled)
		if missing+doubled == 0 {
			r.t.Error("the control has lost and doubled nothing: the run is too gentle")
		}
	}
	_, _ = r.finish(server, put, second)
	r.start("verify", r.archive, "--table", "minutes", "--complete").want(0)
	place := r.archive
	r.restoreAfterKills()
	var got verdict
	r.start("verify", r.archive, "--source", r.events, "--id", "id", "--key", "repo",
		"--output", "json").wantJSON(&got)
	if !got.OK || got.Records != eventsCount {
		r.t.Errorf("the copy's archive has %d records, ok: %v", got.Records, got.OK)
	}
	r.archive = place
	if !strings.Contains(second.stderr.String(), "the archive cannot be reached") {
		r.t.Error("the store was gone, and the worker did not say so")
	}
}

// plainMinutes reads a table as files of gzipped JSON: each event is there once, in the folder of
// its minute.
func plainMinutes(t *testing.T, root string) {
	t.Helper()
	got := map[string]int{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".ndjson.gz") {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for lines := json.NewDecoder(unzipped); lines.More(); {
			var record struct {
				ArrivalTime time.Time
				Data        struct{ ID string }
			}
			if err := lines.Decode(&record); err != nil {
				return err
			}
			got[record.Data.ID]++
			if at := record.ArrivalTime.UTC().Format("2006/01/02/15/04"); at != folder {
				t.Errorf("a record of %s is in %s", at, folder)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for _, n := range got {
		records += n
	}
	if len(got) != eventsCount || records != eventsCount {
		t.Errorf("the table has %d records of %d events, want %d", records, len(got), eventsCount)
	}
}

// plainOrder reads an archive as files of gzipped JSON, shard by shard in the order of their
// numbers, and compares each key's records with the events.
func plainOrder(t *testing.T, dir, events string) {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "tables" {
			return filepath.SkipDir
		}
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".ndjson.gz") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	type event struct {
		ID   string `json:"id"`
		Repo string `json:"repo"`
	}
	got, want := map[string][]string{}, map[string][]string{}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		for lines := json.NewDecoder(unzipped); lines.More(); {
			var record struct {
				Data event `json:"data"`
			}
			if err := lines.Decode(&record); err != nil {
				t.Fatal(err)
			}
			got[record.Data.Repo] = append(got[record.Data.Repo], record.Data.ID)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	source, err := ndjson.OpenFile(events)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	for {
		line, err := source.Next()
		if err != nil {
			break
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		want[e.Repo] = append(want[e.Repo], e.ID)
	}
	if len(want) != eventsKeys {
		t.Fatalf("%d repositories in the events", len(want))
	}
	bad := 0
	for repo, ids := range want {
		if !slices.Equal(got[repo], ids) {
			bad++
		}
	}
	if bad > 0 || len(got) != len(want) {
		t.Errorf("%d of %d repositories differ, %d in the files", bad, len(want), len(got))
	}
}
