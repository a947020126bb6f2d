package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// opener is a program of another language that opens Kinesis records. A line of its input is one
// Kinesis record: KEY DATA START END. START and END are the hash key range of the record's shard. A
// line of its output has the user records: KEY:HASHKEY:DATA KEY:HASHKEY:DATA … Keys and data are in
// base64; a minus means no explicit hash key.
type opener struct {
	client  string
	command []string
	java    bool // the program is the KCL: see check
}

// packer packs a line of KEY:HASHKEY:DATA … into one aggregate, in base64.
type packer struct {
	client  string
	command []string
}

func openers(t *testing.T) []opener {
	tools, python, script := aggregators(t)
	var all []opener
	for _, version := range []string{"3.5.1", "2.7.2"} {
		dir := filepath.Join(tools, "kcl", version)
		all = append(all, opener{"KCL " + version, []string{
			"java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp",
			filepath.Join(dir, "lib", "*") + ":" + filepath.Join(dir, "classes"), "Deaggregate",
		}, true})
	}
	return append(all,
		opener{"python", []string{python, "python/aggregates.py", "open"}, false},
		opener{"javascript", []string{"node", script, "open"}, false})
}

func packers(t *testing.T) []packer {
	_, python, script := aggregators(t)
	return []packer{
		{"python", []string{python, "python/aggregates.py", "pack"}},
		{"javascript", []string{"node", script, "pack"}},
	}
}

func aggregators(t *testing.T) (tools, python, script string) {
	tools, err := filepath.Abs("../.tools/interop")
	if err != nil {
		t.Fatal(err)
	}
	return tools, filepath.Join(tools, "python", "bin", "python"),
		filepath.Join(tools, "javascript", "aggregates.mjs")
}

// TestAggregates checks that the KCL and awslabs' deaggregators open runnel's aggregates, that
// runnel opens those of awslabs' packers, and that the KCL and runnel agree on damaged ones.
func TestAggregates(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the deaggregators and runs this")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := drawer{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // a test
	sound := []stored{{data: aggregate.Empty(), shard: keyspace.All()}}
	var damaged []stored
	var batches [][]aggregate.Record
	total := 0
	for range 300 * soak() {
		batch := draw.batch()
		batches = append(batches, batch)
		total += len(batch)
		record := stored{data: pack(t, batch), shard: draw.shard(), users: batch}
		sound = append(sound, record)
		for range 5 {
			damaged = append(damaged, stored{data: draw.damage(record.data), shard: record.shard},
				stored{data: sealed(draw.odd()), shard: record.shard})
		}
	}
	for _, o := range openers(t) {
		t.Run(o.client+" "+opens, func(t *testing.T) {
			if o.java {
				got := o.open(t, slices.Concat(sound, damaged))
				o.check(t, sound, got[:len(sound)])
				o.checkDamaged(t, damaged, got[len(sound):])
			} else { // each of the others reads damaged messages in another way
				o.check(t, sound, o.open(t, sound))
			}
			report(t, o.client, opens, row{records: total})
		})
	}
	for _, p := range packers(t) {
		t.Run(p.client+" "+packs, func(t *testing.T) {
			p.check(t, batches)
			report(t, p.client, packs, row{records: total})
		})
	}
}

// stored is a Kinesis record with the range of its shard.
type stored struct {
	data  []byte
	shard keyspace.Range
	users []aggregate.Record // the packed user records
}

// check compares the opener's output with the packed user records, and with those that runnel
// opens.
func (o *opener) check(t *testing.T, records []stored, opened []string) {
	void := 0
	for i, got := range opened {
		var decoder aggregate.Decoder
		if !decoder.Open(records[i].data) {
			t.Fatalf("%x is no aggregate to runnel", records[i].data)
		}
		want := users(records[i].users)
		if ours := users(decoder.AppendRecords(nil)); ours != want {
			t.Fatalf("runnel opens %s\nwant %s", ours, want)
		}
		if o.java && decoder.Check(records[i].shard) != nil {
			void++
			want = "" // dropped as a whole
		}
		if !o.java {
			want = users(withFirstHashKey(records[i].users))
		}
		if got != want {
			t.Fatalf("%s opens %x as\n%s\nwant\n%s", o.client, records[i].data, got, want)
		}
	}
	if o.java && (void == 0 || void == len(records)) {
		t.Errorf("%d of %d aggregates are void: want some void and some not", void, len(records))
	}
}

// withFirstHashKey repeats an error of both deaggregators of awslabs: they give the first explicit
// hash key of an aggregate to every record without one.
func withFirstHashKey(records []aggregate.Record) []aggregate.Record {
	records = slices.Clone(records)
	first := slices.IndexFunc(records, func(r aggregate.Record) bool {
		return r.ExplicitHashKey != ""
	})
	if first < 0 {
		return records
	}
	hashKey := records[first].ExplicitHashKey
	for i := range records {
		if records[i].ExplicitHashKey == "" {
			records[i].ExplicitHashKey = hashKey
		}
	}
	return records
}

// checkDamaged compares the KCL's records of damaged messages with runnel's.
func (o *opener) checkDamaged(t *testing.T, records []stored, got []string) {
	opened, ordinary, lost := 0, 0, 0
	for i, got := range got {
		record := records[i]
		var decoder aggregate.Decoder
		want := users([]aggregate.Record{{PartitionKey: outerKey, Data: record.data}})
		switch {
		case !decoder.Open(record.data):
			ordinary++
			if got == "LOST" { // the KCL loses records here, and runnel does not: see Decoder.Open
				lost++
				continue
			}
		case decoder.Check(record.shard) != nil:
			want = ""
		default:
			opened++
			want = users(decoder.AppendRecords(nil))
		}
		if got != want {
			t.Fatalf("%s makes of %x, in %s,\n%s\nwant\n%s", o.client, record.data, record.shard, got, want)
		}
	}
	t.Logf("of %d, %d are opened, %d are ordinary; of these the KCL loses records of %d",
		len(records), opened, ordinary, lost)
	if opened == 0 || ordinary == 0 {
		t.Error("want some opened and some ordinary records")
	}
}

func (o *opener) open(t *testing.T, records []stored) []string {
	var lines strings.Builder
	for _, r := range records {
		fmt.Fprintln(&lines, base64.StdEncoding.EncodeToString([]byte(outerKey)),
			base64.StdEncoding.EncodeToString(r.data), r.shard.Start, r.shard.End)
	}
	return run(t, o.command, lines.String(), len(records))
}

// check compares the packer's aggregates with the given records, and with runnel's aggregates.
func (p *packer) check(t *testing.T, batches [][]aggregate.Record) {
	var lines strings.Builder
	for _, batch := range batches {
		lines.WriteString(users(batch) + "\n")
	}
	for i, line := range run(t, p.command, lines.String(), len(batches)) {
		data, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		records, ok := aggregate.Decode(nil, data)
		if !ok || users(records) != users(batches[i]) {
			t.Fatalf("runnel opens %x (%v) as\n%s\nwant\n%s", data, ok, users(records), users(batches[i]))
		}
		if ours := pack(t, untagged(batches[i])); !bytes.Equal(data, ours) {
			t.Fatalf("%s packs %x\nrunnel %x", p.client, data, ours)
		}
	}
}

// run runs a program with that input and returns the lines of its output.
func run(t *testing.T, command []string, input string, lines int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), journeyTime)
	defer cancel()
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Stdin = strings.NewReader(input)
	var messages bytes.Buffer
	program.Stderr = &messages
	out, err := program.Output()
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(got) != lines {
		t.Fatalf("%s: %v, %d lines, want %d\n%s", command[0], err, len(got), lines, &messages)
	}
	return got
}

// users writes records in the programs' form. It leaves out tags, which no client shows.
func users(records []aggregate.Record) string {
	texts := make([]string, 0, len(records))
	for _, r := range records {
		hashKey := r.ExplicitHashKey
		if hashKey == "" {
			hashKey = "-"
		}
		texts = append(texts, base64.StdEncoding.EncodeToString([]byte(r.PartitionKey))+":"+
			hashKey+":"+base64.StdEncoding.EncodeToString(r.Data))
	}
	return strings.Join(texts, " ")
}
