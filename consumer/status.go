package consumer

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// Status describes a worker at one moment. Its JSON has the names of the metrics that CloudWatch
// gets; see CloudWatch.
type Status struct {
	Time   time.Time `json:"time"`   // of the Status
	Stream string    `json:"stream"` // the stream's name
	App    string    `json:"app"`    // the application's name
	Worker string    `json:"worker"` // the worker's name in the lease table
	// Running is false before Run and after it.
	Running bool `json:"running"`

	// These three describe the fleet, as of Looked, when the worker last looked at the whole
	// table; zero if it has not looked yet. The watchers look every quarter of Failover (see
	// Watching), the others seldom.
	//
	// TotalLeases counts the leases of shards that have not been processed to their end.
	// TotalShards adds the shards of the stream that should have such a lease and have none. So the
	// two differ exactly if there is such a shard, and no worker reads its records. A child needs
	// no lease until a parent has ended. UnclaimedLeases counts the leases that could be read now
	// and that have no live owner. Rows that cannot be read count as leases, and as unclaimed.
	TotalLeases     int       `json:"total_leases"`
	TotalShards     int       `json:"total_shards"`
	UnclaimedLeases int       `json:"unclaimed_leases"`
	Looked          time.Time `json:"looked,omitzero"`
	// Watching is set if this worker is one of the two that watch the table for all.
	Watching bool `json:"watching"`
	// RetentionHours is the stream's retention period; 0 if it is not known yet.
	RetentionHours int `json:"retention_hours"`

	// WorkerLeases is the number of leases that the worker holds: that of Shards.
	WorkerLeases int `json:"worker_leases"`
	// MillisBehindLatest is the largest of Shards.
	MillisBehindLatest int64 `json:"millis_behind_latest"`
	// These count since the start of Run, for all shards that the worker ever held. Records are
	// user records that the handler has processed or the sink has taken, and Bytes are of their
	// data. Retries are failed attempts of the handler or the sink. Throttles are calls that
	// Kinesis refused, or DynamoDB after the client's own retries, for coming too fast.
	Records   int64 `json:"records"`
	Bytes     int64 `json:"bytes"`
	Retries   int64 `json:"retries"`
	Throttles int64 `json:"throttles"`

	// Shards are the shards that the worker holds, in the order of their ids.
	Shards []ShardStatus `json:"shards"`
}

// ShardState is the state of a shard that a worker holds.
type ShardState string

// The states of a held shard.
const (
	// ShardWaiting means that a parent has not been processed to its end.
	ShardWaiting ShardState = "waiting"
	// ShardReading means that the shard is read, or is about to be.
	ShardReading ShardState = "reading"
	// ShardPaused means that Worker.Pause, or lease.Table.Pause, has paused it.
	ShardPaused ShardState = "paused"
	// ShardStopped means that Config.OnError has stopped it, for ShardStatus.Err.
	ShardStopped ShardState = "stopped"
	// ShardHandingOver means that the worker stops reading it, for another worker or for its own
	// end.
	ShardHandingOver ShardState = "handing-over"
)

// ShardStatus is the status of a shard that a worker holds. Its numbers count since the worker took
// the lease.
type ShardStatus struct {
	Shard runnel.ShardID // the shard's id
	State ShardState     // its state
	Err   error          // of ShardStopped
	// Position is that up to which the handler has processed the shard, or the sink has committed
	// it; runnel.Start if there is none.
	Position runnel.Position
	// MillisBehindLatest is the distance of the last processed read from the tip. If that read is
	// older than two seconds and twice Config.PollInterval, its age is added: so a handler that
	// does not return, a pause, or an outage shows in it.
	MillisBehindLatest int64
	// Checkpoint is the position in the lease row. CheckpointAge is the time since it was written,
	// or since the worker took the lease.
	Checkpoint    runnel.Position
	CheckpointAge time.Duration
	// HandlerTime is the time in calls of the handler, or of the sink's Write, those that run
	// included; with Config.Parallel it may pass faster than the time. HandlerSince is when the
	// oldest call that still runs began; zero if none runs.
	HandlerTime  time.Duration
	HandlerSince time.Time

	Records, Bytes, Retries, Throttles int64 // as in Status

	hold int64 // the number of the holding
}

// MarshalJSON gives the fields names as those of Status, and times in milliseconds.
func (s ShardStatus) MarshalJSON() ([]byte, error) {
	text := ""
	if s.Err != nil {
		text = s.Err.Error()
	}
	return json.Marshal(struct {
		Shard              runnel.ShardID `json:"shard"`
		State              ShardState     `json:"state"`
		Error              string         `json:"error,omitempty"`
		Position           string         `json:"position"`
		MillisBehindLatest int64          `json:"millis_behind_latest"`
		Checkpoint         string         `json:"checkpoint"`
		CheckpointAge      int64          `json:"checkpoint_age_millis"`
		HandlerTime        int64          `json:"handler_millis"`
		HandlerSince       time.Time      `json:"handler_since,omitzero"`
		Records            int64          `json:"records"`
		Bytes              int64          `json:"bytes"`
		Retries            int64          `json:"retries"`
		Throttles          int64          `json:"throttles"`
	}{
		s.Shard, s.State, text, s.Position.String(), s.MillisBehindLatest, s.Checkpoint.String(),
		s.CheckpointAge.Milliseconds(), s.HandlerTime.Milliseconds(), s.HandlerSince,
		s.Records, s.Bytes, s.Retries, s.Throttles,
	})
}

// Status returns the worker's status. It makes no call, and waits for no call and no handler. So a
// handler and Config.OnEvent may call it, and it works before Run and after it.
func (w *Worker) Status() Status {
	now := time.Now()
	s := Status{
		Time: now, Stream: w.cfg.Stream, App: w.cfg.App, Worker: w.cfg.WorkerID,
		Shards: []ShardStatus{},
	}
	r := w.current.Load()
	if r == nil {
		return s
	}
	fleet, totals, ended := r.figures.state()
	s.Running = !ended
	s.TotalLeases, s.TotalShards, s.UnclaimedLeases = fleet.leases, fleet.shards, fleet.unclaimed
	s.Looked, s.Watching = fleet.at, fleet.watching
	s.RetentionHours = int(time.Duration(r.kept.Load()) / time.Hour)
	s.Records, s.Bytes = totals.records, totals.bytes
	s.Retries, s.Throttles = totals.retries, totals.throttles
	for _, h := range r.holdings.some(nil) {
		shard := h.status(now)
		s.MillisBehindLatest = max(s.MillisBehindLatest, shard.MillisBehindLatest)
		s.Shards = append(s.Shards, shard)
	}
	slices.SortFunc(s.Shards, func(a, b ShardStatus) int { return cmp.Compare(a.Shard, b.Shard) })
	s.WorkerLeases = len(s.Shards)
	return s
}

func (h *holding) status(now time.Time) ShardStatus {
	s := ShardStatus{
		hold: h.number, Shard: h.first.Key, Retries: h.retries.Load(),
		MillisBehindLatest: h.behind(now).Milliseconds(),
	}
	s.HandlerSince, s.HandlerTime = h.calls.state()
	m := &h.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Position, s.Checkpoint, s.CheckpointAge = m.position, m.checkpoint, now.Sub(m.saved)
	s.Records, s.Bytes, s.Throttles = m.records, m.bytes, m.throttles
	paused, halted := h.control.state()
	switch {
	case h.isStopping():
		s.State = ShardHandingOver
	case halted != nil:
		s.State, s.Err = ShardStopped, halted
	case paused:
		s.State = ShardPaused
	case m.began.IsZero():
		s.State = ShardWaiting
	default:
		s.State = ShardReading
	}
	return s
}

func (h *holding) behind(now time.Time) time.Duration {
	return h.meter.behind(now, h.run.cfg.freshFor())
}
