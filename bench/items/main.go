// Command items measures the cost of many items in a server: the rate of stream puts beside them,
// the time of a small write, the end by SIGTERM, the next start, the memory and the disk. It
// prints Markdown. `make bench-items` runs it, and bench/README.md has its output.
//
// Every number of items has a server of its own. The servers live side by side, and the rounds of
// puts alternate between them, so that the machine's other work hits all alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/figures"
	"github.com/runnel-stream/runnel/bench/internal/process"
)

// Config has the settings of a measurement.
type Config struct {
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Items are the numbers of items, of 1 KB each. Default 0, 200,000 and 1,000,000.
	Items figures.Numbers
	// Rounds of puts of each server, and the time of each. Default 15 of 1 s.
	Rounds int
	Round  time.Duration
	// Renew writes as many items a second during the puts, 1 KB each. Default 200.
	Renew int
}

func main() {
	process.Main("items", "", func(context.Context, []string, io.Reader, io.Writer) error {
		return nil
	}, run)
}

func run(ctx context.Context, args []string, w io.Writer) error {
	cfg := Config{Items: figures.Numbers{0, 200_000, 1_000_000}}
	flags := flag.NewFlagSet("items", flag.ExitOnError)
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.Var(&cfg.Items, "items", "the numbers of items")
	flags.IntVar(&cfg.Rounds, "rounds", 15, "rounds of puts")
	flags.DurationVar(&cfg.Round, "round", time.Second, "the time of a round")
	flags.IntVar(&cfg.Renew, "renew", 200, "items a second that are written during the puts")
	_ = flags.Parse(args) // it exits
	return cfg.measure(ctx, w)
}

// subject is a server with items.
type subject struct {
	*process.Server
	items  int
	client *http.Client
	rates  []float64       // MB/s of each round
	took   []time.Duration // of UpdateItem, over all rounds
	wal    int64           // the most bytes
	files  int64           // of items, the most bytes
	memory float64         // MB, after the fill
}

func (cfg Config) measure(ctx context.Context, w io.Writer) error {
	var subjects []*subject
	defer func() {
		for _, s := range subjects {
			_ = s.End()
		}
	}()
	for _, n := range cfg.Items {
		server, err := process.Serve(ctx, cfg.Runnel, "--stream", "bench:16")
		if err != nil {
			return err
		}
		s := &subject{Server: server, items: n, client: newClient()}
		subjects = append(subjects, s)
		begin := time.Now()
		filling, end := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			s.watch(filling)
		}()
		err = s.fill(ctx)
		end()
		<-watched
		if err != nil {
			return err
		}
		s.memory = s.Memory("VmRSS")
		fmt.Fprintf(os.Stderr, "%d items in %v\n", n, time.Since(begin).Round(time.Second))
	}
	for round := range cfg.Rounds {
		for _, s := range subjects {
			if err := s.round(ctx, cfg); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d, %d items: %.0f MB/s\n", round+1, s.items,
				s.rates[round])
		}
	}
	_, _ = fmt.Fprint(w, "| items of 1 KB | puts, MB/s | of those without items | "+
		"UpdateItem, ms: p50, p99, most | SIGTERM, s | start, s | memory, MB: filled, started | "+
		"wal/, MiB | items/, MiB |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range subjects {
		if err := s.report(ctx, w, subjects[0]); err != nil {
			return err
		}
	}
	return nil
}

// report stops the server, starts it again, and writes a row.
func (s *subject) report(ctx context.Context, w io.Writer, first *subject) error {
	begin := time.Now()
	failed := ""
	if err := s.Stop(); err != nil { // it gave up
		failed = ", failed"
	}
	stop := time.Since(begin)
	begin = time.Now()
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.call(ctx, "ListStreams", []byte("{}")); err != nil {
		return err
	}
	start := time.Since(begin)
	ratios := make([]float64, len(s.rates))
	for i := range ratios {
		ratios[i] = s.rates[i] / first.rates[i]
	}
	slices.Sort(s.took)
	at := func(part float64) float64 {
		n := min(len(s.took)-1, int(part*float64(len(s.took))))
		return s.took[n].Seconds() * 1000
	}
	_, err := fmt.Fprintf(w, "| %d | %.0f | %.2f | %.1f, %.0f, %.0f | %.2f%s | %.2f | "+
		"%.0f, %.0f | %d | %d |\n", s.items, figures.Median(s.rates),
		figures.Median(ratios), at(0.5), at(0.99),
		at(1), stop.Seconds(), failed, start.Seconds(), s.memory, s.Memory("VmRSS"), s.wal>>20,
		s.files>>20)
	return err
}

const inFlight = 8

// round puts records for a while, and measures the write of an item beside.
func (s *subject) round(ctx context.Context, cfg Config) error {
	ctx, end := context.WithTimeout(ctx, cfg.Round)
	defer end()
	var group sync.WaitGroup
	var records atomic.Int64
	var failed atomic.Pointer[error]
	begin := time.Now()
	for i := range inFlight {
		group.Go(func() {
			body := putRecords(i)
			for ctx.Err() == nil {
				err := s.call(context.WithoutCancel(ctx), "PutRecords", body)
				if err != nil {
					failed.Store(&err)
					return
				}
				records.Add(batch)
			}
		})
	}
	group.Go(func() {
		if err := s.renew(ctx, cfg.Renew); err != nil {
			failed.Store(&err)
		}
	})
	s.watch(ctx)
	group.Wait()
	s.rates = append(s.rates, float64(records.Load())*1024/1e6/time.Since(begin).Seconds())
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// watch notes the size of folders until the context ends.
func (s *subject) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.wal = max(s.wal, folderSize(filepath.Join(s.Dir, "wal")))
		s.files = max(s.files, folderSize(filepath.Join(s.Dir, "items")))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// renew writes items one after the other, and notes how long each took.
func (s *subject) renew(ctx context.Context, rate int) error {
	pace := time.NewTicker(time.Second / time.Duration(rate))
	defer pace.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		begin := time.Now()
		err := s.call(context.WithoutCancel(ctx), "UpdateItem",
			update(n*7919%max(s.items, 100), n))
		if err != nil {
			return err
		}
		s.took = append(s.took, time.Since(begin))
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	return nil
}

func folderSize(dir string) (size int64) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}
