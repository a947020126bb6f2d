package lease

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// The attributes of a row, as DynamoDBLeaseSerializer names them, and our own.
const (
	attrKey           = "leaseKey"
	attrOwner         = "leaseOwner"
	attrCounter       = "leaseCounter"
	attrCheckpoint    = "checkpoint"
	attrSub           = "checkpointSubSequenceNumber"
	attrSwitches      = "ownerSwitchesSinceCheckpoint"
	attrParents       = "parentShardId"
	attrChildren      = "childShardIds"
	attrPending       = "pendingCheckpoint"
	attrPendingSub    = "pendingCheckpointSubSequenceNumber"
	attrPendingState  = "pendingCheckpointState"
	attrStartingHash  = "startingHashKey"
	attrEndingHash    = "endingHashKey"
	attrStreamName    = "streamName"      // multi-stream rows of the KCL only
	attrCheckpointOwn = "checkpointOwner" // KCL 3.x, a hand-over in progress
	attrEntity        = "entityType"      // KCL 3.5 and later; absent means LEASE
	attrThroughput    = "throughputKBps"  // KCL 3.x

	attrToken    = "runnelToken"
	attrFrom     = "runnelFrom"
	attrComplete = "runnelComplete"
	attrStream   = "runnelStream"
	attrHold     = "runnelHold"
	attrHolder   = "runnelHolder"
	attrMax      = "runnelMax"
	attrAsk      = "runnelAsk"
	attrPin      = "runnelPin"
	attrEnder    = "runnelEnder"
	attrStatic   = "runnelStatic"
	attrPaused   = "runnelPaused"
	attrSink     = "runnelSink"
	attrOutput   = "runnelOutput"
	attrFailover = "runnelFailover"

	attrOrigin    = "runnelOrigin"
	attrOriginAt  = "runnelOriginTime"
	attrBeginning = "runnelBeginning"
	attrState     = "runnelState"
	attrStateAt   = "runnelStateAt"
	attrStats     = "runnelStats"
)

const entityLease = "LEASE"

// errForeign is the decoder's error for a row that is no lease.
var errForeign = errors.New("not a lease")

type item = map[string]types.AttributeValue

// ErrUnreadableRow is returned for a row that this package cannot read as a lease: another program
// made it, or a person edited it. Nothing is written to it.
var ErrUnreadableRow = errors.New("the row cannot be read as a lease")

// decode reads a row. Attributes that it does not know are left alone.
func decode(row item) (Lease, error) {
	if entity := text(row, attrEntity); entity != "" && entity != entityLease {
		return Lease{}, errForeign
	}
	if isMultiStream(text(row, attrKey)) {
		return Lease{}, ErrMultiStream
	}
	r := reader{row: row}
	l := Lease{
		Key:           runnel.ShardID(r.must(attrKey)),
		Owner:         r.owner(),
		Counter:       r.number(attrCounter, true),
		Checkpoint:    r.position(attrCheckpoint, attrSub),
		OwnerSwitches: r.number(attrSwitches, false),
		Parents:       r.shards(attrParents),
		Children:      r.shards(attrChildren),
		Token:         r.text(attrToken),
		Stream:        r.text(attrStream),
		Hold:          r.text(attrHold),
		Holder:        r.text(attrHolder),
		MaxLeases:     int(r.number(attrMax, false)),
		Pin:           r.text(attrPin),
		Ender:         r.text(attrEnder),
		Output:        r.text(attrOutput),
		Cards:         readCards(row),
	}
	l.Ask, l.askText = readAsk(row)
	l.Static = parseStatic(text(row, attrStatic))
	if _, there := row[attrPending]; there {
		l.Pending = r.position(attrPending, attrPendingSub)
	}
	if state, ok := row[attrPendingState].(*types.AttributeValueMemberB); ok {
		l.PendingState = slices.Clone(state.Value)
	}
	if _, there := row[attrFrom]; there {
		l.From = time.UnixMilli(r.number(attrFrom, true)).UTC()
	} else if l.Checkpoint.Sequence == runnel.AtTimestamp {
		l.From = r.rustTime()
	}
	if _, there := row[attrComplete]; there {
		l.Complete = time.UnixMilli(r.number(attrComplete, true)).UTC()
	}
	l.Range = r.hashRange()
	if _, there := row[attrOrigin]; there {
		origin := r.origin(attrOriginAt)
		l.Origin = &origin
	}
	_, l.Beginning = row[attrBeginning]
	_, l.Paused = row[attrPaused]
	_, l.Sink = row[attrSink]
	l.Failover = readFailover(row)
	l.State, l.StateAt = readState(row)
	l.Stats, l.ThroughputKBps = parseStats(text(row, attrStats)), readThroughput(row)
	if name := r.text(attrStreamName); name != "" {
		r.fail(attrStreamName, "%q: the row is of an application that reads several streams", name)
	}
	if r.err != nil {
		return l, fmt.Errorf("%w: %w", ErrUnreadableRow, r.err)
	}
	return l, nil
}

// readState reads the filter's state and its position. A state without a position that can be read
// is none: the reader makes another one. A position without a state points to States.
func readState(row item) ([]byte, runnel.Position) {
	at, ok := parseStateAt(text(row, attrStateAt))
	if !ok {
		return nil, runnel.Position{}
	}
	if row[attrState] == nil {
		return nil, at
	}
	state, binary := row[attrState].(*types.AttributeValueMemberB)
	if !binary || len(state.Value) == 0 {
		return nil, runnel.Position{}
	}
	return slices.Clone(state.Value), at
}

// parseStateAt reads the text of a state's position: Position.String of a record's position, or of
// the shard's end. Position.SortText is longer, and rows are read and written often.
func parseStateAt(text string) (at runnel.Position, ok bool) {
	if text == runnel.End().String() {
		return runnel.End(), true
	}
	sequence, after, _ := strings.Cut(text, "/")
	at.Sequence = runnel.SequenceNumber(sequence)
	at.Sub, _ = strconv.ParseInt(after, 10, 64) // 0 if there is none
	return at, at.Sequence.IsNumber() && at.String() == text
}

// reader reads attributes and keeps the first fault.
type reader struct {
	row item
	err error
}

func (r *reader) fail(attribute, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", attribute, fmt.Sprintf(format, args...))
	}
}

func (r *reader) must(attribute string) string {
	value := text(r.row, attribute)
	if value == "" {
		r.fail(attribute, "is missing")
	}
	return value
}

// text reads an attribute that may be missing.
func (r *reader) text(attribute string) string {
	value, there := r.row[attribute]
	if _, ok := value.(*types.AttributeValueMemberS); there && !ok {
		r.fail(attribute, "is not a string")
	}
	return text(r.row, attribute)
}

// owner reads the owner. Other programs and people write a lease without an owner in three ways:
// without the attribute, as the KCL does, with NULL, and with an empty string.
func (r *reader) owner() string {
	if null, ok := r.row[attrOwner].(*types.AttributeValueMemberNULL); ok && null.Value {
		return ""
	}
	return r.text(attrOwner)
}

// rustTime reads the time of AT_TIMESTAMP as a Rust library for the KCL's table writes it: in
// milliseconds, as the checkpoint's sub-sequence number. The zero time means that there is none:
// Java writes 0, since it keeps the time in its configuration.
func (r *reader) rustTime() time.Time {
	ms := r.number(attrSub, false)
	if ms < plausibleTime {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// plausibleTime is a time in ms before every stream, of the year 2001, and above every number of
// records in an aggregate.
const plausibleTime = 1_000_000_000_000

func (r *reader) number(attribute string, required bool) int64 {
	value, ok := r.row[attribute].(*types.AttributeValueMemberN)
	if !ok {
		if _, there := r.row[attribute]; there || required {
			r.fail(attribute, "is not a number")
		}
		return 0
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		r.fail(attribute, "is not an integer: %q", value.Value)
	}
	return n
}

func (r *reader) position(attribute, sub string) runnel.Position {
	p := runnel.Position{
		Sequence: runnel.SequenceNumber(r.must(attribute)),
		Sub:      r.number(sub, false),
	}
	switch p.Sequence {
	case runnel.TrimHorizon, runnel.Latest, runnel.AtTimestamp, runnel.ShardEnd:
		p.Sub = 0 // unused beside a word; other programs keep things of their own there
	default:
		if !p.Sequence.IsNumber() || p.Sub < 0 {
			r.fail(attribute, "is not a checkpoint: %q, %d", string(p.Sequence), p.Sub)
		}
	}
	return p
}

func (r *reader) hashRange() *keyspace.Range {
	low, high := r.text(attrStartingHash), r.text(attrEndingHash)
	if low == "" && high == "" {
		return nil
	}
	start, err := keyspace.Parse(low)
	if err != nil {
		r.fail(attrStartingHash, "%v", err)
	}
	end, err := keyspace.Parse(high)
	if err != nil {
		r.fail(attrEndingHash, "%v", err)
	}
	return &keyspace.Range{Start: start, End: end}
}

func text(row item, attribute string) string {
	if value, ok := row[attribute].(*types.AttributeValueMemberS); ok {
		return value.Value
	}
	return ""
}

func (r *reader) shards(attribute string) []runnel.ShardID {
	value, there := r.row[attribute]
	if !there {
		return nil
	}
	set, ok := value.(*types.AttributeValueMemberSS)
	if !ok {
		r.fail(attribute, "is not a set of strings")
		return nil
	}
	ids := make([]runnel.ShardID, len(set.Value))
	for i, id := range set.Value {
		ids[i] = runnel.ShardID(id)
	}
	slices.Sort(ids)
	return ids
}

// encode makes the row of a new lease.
func encode(l Lease) item {
	row := item{
		attrKey:        str(string(l.Key)),
		attrCounter:    num(l.Counter),
		attrCheckpoint: str(string(l.Checkpoint.Sequence)),
		attrSub:        num(l.Checkpoint.Sub),
		attrSwitches:   num(l.OwnerSwitches),
	}
	optional := func(attribute, value string) {
		if value != "" {
			row[attribute] = str(value)
		}
	}
	optional(attrOwner, l.Owner)
	optional(attrToken, l.Token)
	optional(attrStream, l.Stream)
	optional(attrHold, l.Hold)
	optional(attrHolder, l.Holder)
	optional(attrOutput, l.Output)
	if l.Origin != nil {
		row[attrOrigin] = str(string(l.Origin.Word()))
		if at := l.Origin.Time(); !at.IsZero() {
			row[attrOriginAt] = num(at.UnixMilli())
		}
	}
	if l.Beginning {
		row[attrBeginning] = num(1)
	}
	if l.Paused {
		row[attrPaused] = num(1)
	}
	if l.Sink {
		row[attrSink] = num(1)
	}
	if l.Failover > 0 {
		row[attrFailover] = num(l.Failover.Milliseconds())
	}
	if l.MaxLeases > 0 {
		row[attrMax] = num(int64(l.MaxLeases))
	}
	if l.Static != (Static{}) {
		row[attrStatic] = str(l.Static.String())
	}
	if len(l.Parents) > 0 { // DynamoDB has no empty sets
		row[attrParents] = set(l.Parents)
	}
	if len(l.Children) > 0 {
		row[attrChildren] = set(l.Children)
	}
	if l.Range != nil {
		row[attrStartingHash] = str(l.Range.Start.String())
		row[attrEndingHash] = str(l.Range.End.String())
	}
	if !l.From.IsZero() {
		row[attrFrom] = num(l.From.UnixMilli())
	}
	if !l.Complete.IsZero() {
		row[attrComplete] = num(l.Complete.UnixMilli())
	}
	return row
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func set(ids []runnel.ShardID) types.AttributeValue {
	values := make([]string, len(ids))
	for i, id := range ids {
		values[i] = string(id)
	}
	slices.Sort(values)
	return &types.AttributeValueMemberSS{Value: slices.Compact(values)}
}
