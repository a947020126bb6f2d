package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/reshard"
)

// seenLoad is a load that was seen: in a stream, or in files.
type seenLoad struct {
	load           *keyspace.Load
	skew           *keyspace.Skew
	took           time.Duration
	records, bytes uint64
}

// How many cells of the key space, and how many keys, are counted: some 10 MiB.
const (
	loadCells    = 1 << 17
	loadCounters = 4096
)

func (a *app) seeLoad(
	ctx context.Context, client *kinesis.Client, of *shardsOf, f *planFlags, files []string,
	shards []reshard.Shard,
) (*seenLoad, error) {
	skew, err := keyspace.NewSkew(reshard.Open(shards), loadCounters)
	if err != nil {
		return nil, outsideError(err)
	}
	seen := &seenLoad{load: keyspace.NewLoad(loadCells), skew: skew, took: f.over}
	if len(files) > 0 {
		return seen, seen.readFiles(f, files)
	}
	window := reshard.Window{For: f.sample, Last: f.last, Parallel: f.parallel}
	if f.last == 0 {
		a.say("watching stream %s for %s", of.stream, f.sample)
	}
	observed, err := reshard.Observe(ctx, client, of.stream, window, func(s reshard.Seen) {
		seen.add(f, s.Hash, s.Key, s.Bytes, s.Of)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errInterrupt
	case err != nil:
		return nil, outsideError(hint(err, of.stream))
	}
	seen.took, seen.records, seen.bytes = observed.Took, observed.Records, observed.Bytes
	if observed.Records == 0 {
		a.say("no record was seen in %s: there is nothing to plan for", observed.Took)
	}
	if observed.Guessed > 0 {
		a.say("%.1f%% of the load was put with explicit hash keys, which readers are not told: "+
			"where in its shard it falls is a guess",
			100*float64(observed.Guessed)/float64(observed.Bytes))
	}
	return seen, nil
}

// readFiles reads the lines of files as the records that they would be.
func (s *seenLoad) readFiles(f *planFlags, files []string) error {
	format, err := newInputFormat(f.format, f.key)
	if err != nil {
		return err
	}
	return format.read(files, func(key string, line []byte, _ string) error {
		s.records++
		s.bytes += uint64(len(key) + len(line))
		s.add(f, keyspace.Of(key), key, len(key)+len(line), 1)
		return nil
	})
}

// add adds a user record, one of so many that share a Kinesis record.
func (s *seenLoad) add(f *planFlags, hash keyspace.Key, key string, bytes, of int) {
	weight := uint64(bytes)
	if f.by == "records" {
		weight = max(1, 1000/uint64(of))
	}
	s.skew.Add(hash, key, weight)
	s.load.Add(hash, weight)
}

// told is the load as it is printed.
func (s *seenLoad) told(f *planFlags, goal keyspace.Goal, shards []reshard.Shard) *planLoad {
	report := s.skew.Report(goal.Target, f.top)
	l := &planLoad{
		Unit: "bytes", Seconds: s.took.Seconds(), Target: goal.Target, Records: s.records,
		Bytes: s.bytes, PeakToMean: report.PeakToMean, Gini: report.Gini, report: report,
		text: func(load uint64) string { return f.perSecond(load, s.took) },
	}
	if f.by == "records" {
		l.Unit = "records/1000"
	}
	names := shardNames(shards)
	for _, hot := range report.Hot {
		key := hotKey{Key: hot.Name, Alone: hot.Alone}
		key.Share = float64(hot.AtLeast()) / float64(max(1, report.Total))
		key.Shard = string(names[report.Shards[hot.Shard].Range])
		l.Hot = append(l.Hot, key)
	}
	return l
}
