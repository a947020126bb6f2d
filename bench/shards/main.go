// Command shards measures stream puts over many shards beside few: the same records, one server
// for each number of shards, in turns. It prints Markdown. `make bench-shards` runs it, and
// bench/README.md has its output.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/call"
	"github.com/runnel-stream/runnel/bench/internal/figures"
	"github.com/runnel-stream/runnel/bench/internal/process"
)

const (
	batch    = 500 // records a call, of 1 KiB
	inFlight = 8   // calls
	bodies   = 64  // prepared, each with keys of its own
)

// Config has the settings of a measurement.
type Config struct {
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Shards are the numbers of shards. Default 16 and 4,000.
	Shards figures.Numbers
	// Rounds of each server, and the time of each. Default 10 of 5 s.
	Rounds int
	Round  time.Duration
}

func main() {
	process.Main("shards", "", func(context.Context, []string, io.Reader, io.Writer) error {
		return nil
	}, run)
}

func run(ctx context.Context, args []string, w io.Writer) error {
	cfg := Config{Shards: figures.Numbers{16, 4_000}}
	flags := flag.NewFlagSet("shards", flag.ExitOnError)
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.Var(&cfg.Shards, "shards", "the numbers of shards")
	flags.IntVar(&cfg.Rounds, "rounds", 10, "rounds of puts")
	flags.DurationVar(&cfg.Round, "round", 5*time.Second, "the time of a round")
	_ = flags.Parse(args) // it exits
	return cfg.measure(ctx, w)
}

// subject is a server with a stream of so many shards.
type subject struct {
	*process.Server
	shards int
	client *http.Client
	rates  []float64 // MB/s of each round
	costs  []float64 // of each round: the server's processor time, ms for a MB
}

func (cfg Config) measure(ctx context.Context, w io.Writer) error {
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			_ = s.End()
		}
	}()
	for _, n := range cfg.Shards {
		server, err := process.Serve(ctx, cfg.Runnel, "--stream", fmt.Sprintf("bench:%d", n))
		if err != nil {
			return err
		}
		subjects = append(subjects, &subject{Server: server, shards: n, client: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: inFlight},
		}})
	}
	prepared := prepare()
	for range cfg.Rounds {
		for _, s := range subjects {
			if err := s.round(ctx, cfg.Round, prepared); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%d shards: %.0f MB/s, %.1f ms of processor time a MB\n",
				s.shards, s.rates[len(s.rates)-1], s.costs[len(s.costs)-1])
		}
	}
	_, _ = fmt.Fprint(w, "| shards | MB/s | of the first row | server's processor time, ms a MB | "+
		"memory, MB |\n|---|---|---|---|---|\n")
	for _, s := range subjects {
		ratios := make([]float64, len(s.rates))
		for i := range ratios {
			ratios[i] = s.rates[i] / subjects[0].rates[i]
		}
		if _, err := fmt.Fprintf(w, "| %d | %.0f | %.2f | %.1f | %.0f |\n", s.shards,
			figures.Median(s.rates), figures.Median(ratios), figures.Median(s.costs),
			s.Memory("VmHWM")); err != nil {
			return err
		}
	}
	return nil
}

// prepare returns bodies of PutRecords whose keys fall on all shards alike.
func prepare() [][]byte {
	type entry struct{ Data, PartitionKey string }
	prepared := make([][]byte, bodies)
	for i := range prepared {
		records := make([]entry, batch)
		for j := range records {
			data := make([]byte, 1024)
			_, _ = rand.Read(data) // it never fails
			records[j] = entry{
				base64.StdEncoding.EncodeToString(data), fmt.Sprintf("key-%d-%d", i, j),
			}
		}
		prepared[i], _ = json.Marshal(struct { // strings alone
			StreamName string
			Records    []entry
		}{"bench", records})
	}
	return prepared
}

// round puts records for a while, and notes the rate.
func (s *subject) round(ctx context.Context, long time.Duration, prepared [][]byte) error {
	end := time.Now().Add(long)
	var group sync.WaitGroup
	var records atomic.Int64
	var failed atomic.Pointer[error]
	begin, cpu := time.Now(), s.CPU()
	for range inFlight {
		group.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				answer, err := call.Send(ctx, s.client, s.Address, "PutRecords",
					prepared[mathrand.IntN(bodies)])
				if err == nil && !bytes.Contains(answer, []byte(`"FailedRecordCount":0`)) {
					err = fmt.Errorf("refused records: %.300s", answer)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				records.Add(batch)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	size := float64(records.Load()) * 1024 / 1e6
	s.rates = append(s.rates, size/time.Since(begin).Seconds())
	s.costs = append(s.costs, (s.CPU()-cpu).Seconds()*1000/size)
	return nil
}
