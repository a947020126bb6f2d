package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestKeepCalling(t *testing.T) {
	var by [3]atomic.Int64
	call := func(_ context.Context, worker int) error { by[worker].Add(1); return nil }
	calls, _, err := keepCalling(t.Context(), 3, 0, call)
	if err != nil || calls != 3 || by[0].Load() != 1 || by[1].Load() != 1 || by[2].Load() != 1 {
		t.Errorf("without time each worker calls once: %d calls, %v", calls, err)
	}
	broken := errors.New("broken")
	_, _, err = keepCalling(t.Context(), 2, time.Hour, func(ctx context.Context, worker int) error {
		if worker == 0 {
			return broken
		}
		<-ctx.Done() // the other worker's error ends this one
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v, want the first one", err)
	}
}

// shelf is a client of shards with a given number of records, which it reads in pages.
type shelf struct {
	client
	records, page int
	reads         atomic.Int64
	fault         error
}

func (s *shelf) iterator(_ context.Context, shard int) (string, error) {
	return fmt.Sprintf("%d/0", shard), nil
}

func (s *shelf) read(_ context.Context, iterator string) (int, string, error) {
	s.reads.Add(1)
	var shard, at int
	if _, err := fmt.Sscanf(iterator, "%d/%d", &shard, &at); err != nil {
		return 0, "", err
	}
	if shard == 7 && s.fault != nil {
		return 0, "", s.fault
	}
	n := min(s.page, s.records-at)
	return n, fmt.Sprintf("%d/%d", shard, at+n), nil
}

func TestDrain(t *testing.T) {
	full := &shelf{records: 95, page: 10}
	got, err := drain(t.Context(), full, time.Hour)
	if err != nil || !got.ended || got.records != shards*95 {
		t.Errorf("%+v, %v", got, err)
	}
	late := &shelf{records: 95, page: 10}
	got, err = drain(t.Context(), late, -1)
	if err != nil || got.ended || got.records != inFlight*10 || late.reads.Load() != inFlight {
		t.Errorf("without time each worker reads once: %+v, %d reads, %v", got,
			late.reads.Load(), err)
	}
	got, err = drain(t.Context(), &shelf{}, -1)
	if err != nil || got.ended {
		t.Errorf("the end of half of the shards is taken for that of all: %+v, %v", got, err)
	}
	broken := errors.New("broken")
	_, err = drain(t.Context(), &shelf{records: 95, page: 10, fault: broken}, time.Hour)
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestOrder(t *testing.T) {
	quick := &server{name: "quick", groups: append(kinesisGroups(), groupUpdates)}
	slow := &server{name: "slow", groups: kinesisGroups(), slow: true}
	all := []*server{quick, slow}
	first, second := order(all, 0), order(all, 1)
	if len(first) != 7 || len(second) != 4 {
		t.Fatalf("%d turns and then %d, want 7 and 4", len(first), len(second))
	}
	if first[0].server != quick || first[1].server != slow || first[0].group != first[1].group {
		t.Errorf("the first round begins with %v", first[:2])
	}
	groups := func(turns []turn) (all []group) {
		for _, t := range turns {
			if t.server == quick {
				all = append(all, t.group)
			}
		}
		return all
	}
	backwards := groups(second)
	slices.Reverse(backwards)
	if !slices.Equal(groups(first), backwards) {
		t.Errorf("%v and then %v", groups(first), groups(second))
	}
}
