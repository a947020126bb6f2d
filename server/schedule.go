package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
)

// schedule runs the goroutines that reshard streams by the faults' reshard rules. They make a
// client's API calls, so that the stream's states and limits hold for them, too. Faults do not
// affect these calls, and the metrics do not count them.
type schedule struct {
	faults  *fault.Injector
	kinesis *kinesis.Service
	log     *slog.Logger
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// The pause before a busy stream is tried again begins at firstRetry and doubles each time.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Second
)

// start begins to follow the faults' rules, also later ones, until stop. Without an injector of
// faults it starts no goroutine.
func (s *schedule) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if s.faults != nil {
		s.done.Go(func() { s.run(ctx) })
	}
}

// stop ends the goroutines. It may be called without start.
func (s *schedule) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.done.Wait()
}

func (s *schedule) run(ctx context.Context) {
	for ctx.Err() == nil {
		rules, replaced := s.faults.Schedule()
		following, end := context.WithCancel(ctx)
		var followers sync.WaitGroup
		for _, rule := range rules {
			followers.Go(func() { s.follow(following, rule) })
		}
		select {
		case <-replaced:
		case <-ctx.Done():
		}
		end()
		followers.Wait()
	}
}

// follow carries out every stream's due turn of one rule; turns of busy streams come later.
func (s *schedule) follow(ctx context.Context, rule *fault.Reshards) {
	ticker := time.NewTicker(rule.Every)
	defer ticker.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	due, wait := map[string]kinesis.Listed{}, firstRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.fall(due, rule)
			wait = firstRetry
		case <-retry.C:
			wait = min(2*wait, lastRetry)
		}
		for _, id := range slices.Sorted(maps.Keys(due)) {
			if s.turn(ctx, rule, id, due[id]) {
				delete(due, id)
			}
		}
		retry.Stop()
		if len(due) > 0 {
			retry.Reset(wait)
		}
	}
}

// fall marks every stream of the rule as due, by its id.
func (s *schedule) fall(due map[string]kinesis.Listed, rule *fault.Reshards) {
	clear(due)
	for _, stream := range s.kinesis.Inventory() {
		if rule.About(stream.Name) {
			due[stream.World.Account+":"+stream.World.Region+":"+stream.Name] = stream
		}
	}
	rule.Keep(func(id string) bool {
		_, there := due[id]
		return there
	})
}

// turn carries out a stream's turn, and reports whether it is over; it is not while the stream is
// busy.
func (s *schedule) turn(
	ctx context.Context, rule *fault.Reshards, id string, stream kinesis.Listed,
) (over bool) {
	open, err := s.openShards(ctx, stream)
	if err != nil {
		return s.settled(ctx, stream, err)
	}
	turn := rule.Next(id, stream.Name, len(open))
	next := stepOf(turn, open)
	if turn.Skip || next.operation == "" {
		rule.Done(id, "")
		return true
	}
	if _, err := s.call(ctx, stream, next.operation, next.request); err == nil {
		rule.Done(id, next.operation)
		return true
	} else if !s.settled(ctx, stream, err) {
		return false
	}
	rule.Done(id, "")
	return true
}

// settled reports whether a failed call is not to be tried again for the same turn. It logs the
// failure at debug level: the stream may be gone, or its mode ON_DEMAND.
func (s *schedule) settled(ctx context.Context, stream kinesis.Listed, err error) bool {
	var refused *wire.Error
	if errors.As(err, &refused) {
		switch refused.Code {
		case "ResourceInUseException", "LimitExceededException":
			return false
		}
	}
	if ctx.Err() == nil {
		s.log.DebugContext(ctx, "a reshard on schedule was not done", "stream", stream.Name,
			"error", err)
	}
	return true
}

// openShards returns a stream's open shards in the order of their ranges.
func (s *schedule) openShards(
	ctx context.Context, stream kinesis.Listed,
) (open []openShard, err error) {
	request := map[string]any{"ShardFilter": map[string]any{"Type": "AT_LATEST"}}
	for {
		answer, err := s.call(ctx, stream, "ListShards", request)
		if err != nil {
			return nil, err
		}
		var page struct {
			Shards []struct {
				ShardID      string `json:"ShardId"`
				HashKeyRange struct{ StartingHashKey, EndingHashKey string }
			}
			NextToken *string
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, fmt.Errorf("list the shards of stream %s: %w", stream.Name, err)
		}
		for _, sh := range page.Shards {
			start, err := keyspace.Parse(sh.HashKeyRange.StartingHashKey)
			end, endErr := keyspace.Parse(sh.HashKeyRange.EndingHashKey)
			if err := errors.Join(err, endErr); err != nil {
				return nil, fmt.Errorf("list the shards of stream %s: %w", stream.Name, err)
			}
			open = append(open, openShard{sh.ShardID, keyspace.Range{Start: start, End: end}})
		}
		if page.NextToken == nil {
			break
		}
		request = map[string]any{"NextToken": *page.NextToken}
	}
	slices.SortFunc(open, func(a, b openShard) int {
		return a.owned.Start.Compare(b.owned.Start)
	})
	return open, nil
}

// call makes an API call about a stream. A request with a NextToken has no stream name.
func (s *schedule) call(
	ctx context.Context, stream kinesis.Listed, operation string, request map[string]any,
) ([]byte, error) {
	if _, goesOn := request["NextToken"]; !goesOn {
		request["StreamName"] = stream.Name
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("%s of stream %s: %w", operation, stream.Name, err)
	}
	answer, err := s.kinesis.Serve(ctx, &wire.Call{
		Service: wire.Kinesis, Operation: operation, Body: body, World: stream.World,
	})
	if err != nil {
		return nil, fmt.Errorf("%s of stream %s: %w", operation, stream.Name, err)
	}
	return answer.Body, nil
}
