package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"pgregory.net/rapid"
)

// The model-based test's operations on whole streams.

// create: "you receive a ResourceInUseException when you try to create a stream" with an existing
// name (AWS, "CreateStream").
func (m *machine) create() {
	name, shards := m.anyName(), rapid.IntRange(1, 4).Draw(m.T, "shards")
	if m.state(name) == "" || m.seldom() {
		m.make(name, shards)
	}
}

func (m *machine) make(name string, shards int) {
	_, err := m.client.CreateStream(m.ctx, &kinesis.CreateStreamInput{
		StreamName: aws.String(name), ShardCount: aws.Int32(int32(shards)),
	})
	want := ""
	if m.state(name) != "" {
		want = inUse
	}
	if !m.expect("create "+name, err, want) {
		return
	}
	st := &modelStream{
		name: name, created: m.now, retention: 24 * time.Hour, tags: map[string]string{},
		creating: m.now.Add(delay), shards: ranges(uniform(shards)),
	}
	for _, sh := range st.shards {
		sh.opened = m.now
	}
	m.streams[name] = st
}

func (m *machine) remove() {
	name := m.anyName()
	if !m.seldom() {
		return
	}
	_, err := m.client.DeleteStream(m.ctx, &kinesis.DeleteStreamInput{
		StreamName: aws.String(name),
	})
	codes := map[string][]string{
		"": {notFound}, "CREATING": {""}, "ACTIVE": {""}, "DELETING": {inUse, notFound},
	}[m.state(name)]
	if codes == nil {
		codes = []string{inUse}
	}
	if m.expect("delete "+name, err, codes...) {
		m.streams[name].deleting = m.now.Add(delay)
	}
	if rapid.Bool().Draw(m.T, "again") {
		m.pass(delay)
		m.make(name, rapid.IntRange(1, 4).Draw(m.T, "shards"))
	}
}

// writable are the answers to a write that has no fault of its own. A stream that is being
// deleted may take it or not (AWS, "DeleteStream").
func (m *machine) writable(name string) []string {
	switch m.state(name) {
	case "", "CREATING":
		return []string{notFound}
	case "DELETING":
		return []string{"", notFound}
	default:
		return []string{""}
	}
}

// settings are the answers to a change of a stream, which must be ACTIVE for it.
func (m *machine) settings(name string) []string {
	switch m.state(name) {
	case "":
		return []string{notFound}
	case "ACTIVE":
		return []string{""}
	case "DELETING":
		return []string{inUse, notFound}
	default:
		return []string{inUse}
	}
}

// retain changes the retention period.
func (m *machine) retain() {
	name := m.anyName()
	hours := rapid.SampledFrom([]int32{23, 24, 25, 48, 100, 8760, 8761}).Draw(m.T, "hours")
	longer := rapid.Bool().Draw(m.T, "longer")
	var err error
	if longer {
		_, err = m.client.IncreaseStreamRetentionPeriod(m.ctx,
			&kinesis.IncreaseStreamRetentionPeriodInput{
				StreamName: aws.String(name), RetentionPeriodHours: aws.Int32(hours),
			})
	} else {
		_, err = m.client.DecreaseStreamRetentionPeriod(m.ctx,
			&kinesis.DecreaseStreamRetentionPeriodInput{
				StreamName: aws.String(name), RetentionPeriodHours: aws.Int32(hours),
			})
	}
	codes, st := m.settings(name), m.streams[name]
	period := time.Duration(hours) * time.Hour
	switch {
	case hours < 24 || hours > 8760:
		codes = append(slices.DeleteFunc(codes, isOK), invalid)
	case st != nil && ((longer && period < st.retention) || (!longer && period > st.retention)):
		codes = append(slices.DeleteFunc(codes, isOK), invalid)
	}
	if m.expect(fmt.Sprintf("retain %s for %d h, longer %v", name, hours, longer), err, codes...) {
		st.retention = period
		st.pass(m.now)
	}
}

func isOK(code string) bool { return code == "" }

// tag adds, removes and lists tags, which are a map (AWS, "AddTagsToStream").
func (m *machine) tag() {
	name := m.anyName()
	key := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(m.T, "key")
	add := rapid.Bool().Draw(m.T, "add")
	value := strconv.Itoa(rapid.IntRange(0, 9).Draw(m.T, "value"))
	var err error
	if add {
		_, err = m.client.AddTagsToStream(m.ctx, &kinesis.AddTagsToStreamInput{
			StreamName: aws.String(name), Tags: map[string]string{key: value},
		})
	} else {
		_, err = m.client.RemoveTagsFromStream(m.ctx, &kinesis.RemoveTagsFromStreamInput{
			StreamName: aws.String(name), TagKeys: []string{key},
		})
	}
	codes := m.settings(name)
	if codes[0] == inUse { // some say that tags want an ACTIVE stream, and some do not
		codes = []string{"", inUse, notFound}
	}
	if m.expect(fmt.Sprintf("tag %s %s=%s, add %v", name, key, value, add), err, codes...) {
		if add {
			m.streams[name].tags[key] = value
		} else {
			delete(m.streams[name].tags, key)
		}
	}
	if m.state(name) != "ACTIVE" && m.state(name) != "UPDATING" {
		return
	}
	got, err := m.client.ListTagsForStream(m.ctx, &kinesis.ListTagsForStreamInput{
		StreamName: aws.String(name),
	})
	m.expect("list tags of "+name, err, "")
	tags := map[string]string{}
	for _, tag := range got.Tags {
		tags[*tag.Key] = aws.ToString(tag.Value)
	}
	if !maps.Equal(tags, m.streams[name].tags) || *got.HasMoreTags {
		m.Fatalf("the tags of %s are %v, want %v", name, tags, m.streams[name].tags)
	}
}

// describe compares the server's descriptions of streams with the model.
func (m *machine) describe() {
	listed, err := m.client.ListStreams(m.ctx, &kinesis.ListStreamsInput{})
	m.expect("list streams", err, "")
	names := slices.Sorted(maps.Keys(m.streams))
	if !slices.Equal(listed.StreamNames, names) {
		m.Fatalf("the streams are %q, want %q", listed.StreamNames, names)
	}
	name := m.anyName()
	got, err := m.client.DescribeStreamSummary(m.ctx, &kinesis.DescribeStreamSummaryInput{
		StreamName: aws.String(name),
	})
	st := m.streams[name]
	if st == nil {
		m.expect("describe "+name, err, notFound)
		return
	}
	m.expect("describe "+name, err, "")
	told := got.StreamDescriptionSummary
	hours := int32(st.retention / time.Hour)
	open := int32(len(st.open()))
	if st.status(m.now) == "CREATING" { // its shards are not shown yet
		open = *told.OpenShardCount
	}
	if string(told.StreamStatus) != st.status(m.now) || *told.RetentionPeriodHours != hours ||
		*told.OpenShardCount != open || !told.StreamCreationTimestamp.Equal(st.created) {
		m.Fatalf("%s is %s since %v, keeps for %d h, has %d open shards; want %s, %v, %d, %d", name,
			told.StreamStatus, told.StreamCreationTimestamp, *told.RetentionPeriodHours,
			*told.OpenShardCount, st.status(m.now), st.created, hours, open)
	}
	if told.StreamModeDetails.StreamMode != types.StreamModeProvisioned {
		m.Fatalf("%s is in the mode %s", name, told.StreamModeDetails.StreamMode)
	}
}
