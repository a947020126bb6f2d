package archive_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

const (
	streamFolder = "orders@1700000000123"
	left         = runnel.ShardID("shardId-000000000001")
	right        = runnel.ShardID("shardId-000000000002")
	merged       = runnel.ShardID("shardId-000000000003")
)

// family makes an archive of four shards: one that splits, and its children that merge. Keys 0 and
// 2 go left, key 1 right. It has records 0 to 39 in this order.
func family(t *testing.T) (*place, *vfs.Mem) {
	disk := vfs.NewMem()
	p := &place{t, archive.NewDirStoreOn(disk, "to")}
	p.fill(parent, 0, 10, all)
	p.fill(left, 10, 25, func(n int) bool { return n%3 != 1 }, parent)
	p.fill(right, 10, 25, func(n int) bool { return n%3 == 1 }, parent)
	p.fill(merged, 25, 40, all, left, right)
	return p, disk
}

func all(int) bool { return true }

// fill writes the wanted records of a range, in links of three or so, and the end.
func (p *place) fill(
	id runnel.ShardID, lo, hi int, want func(int) bool, parents ...runnel.ShardID,
) {
	p.Helper()
	w := p.open(archive.Config{}, shardOf(id, parents...))
	written := 0
	for n := lo; n < hi; n++ {
		if !want(n) {
			continue
		}
		p.write(w, id, n, n+1)
		if written++; written%3 == 0 {
			p.flush(w)
		}
	}
	p.end(w)
}

func sourceLines(ids ...int) string {
	var text strings.Builder
	for _, n := range ids {
		fmt.Fprintf(&text, "{\"id\":\"%d\",\"key\":\"key-%d\"}\n", n, n%3)
	}
	return text.String()
}

func upTo(n int) []int {
	var ids []int
	for i := range n {
		ids = append(ids, i)
	}
	return ids
}

func (p *place) source(text string) archive.VerifyOptions {
	p.Helper()
	name := filepath.Join(p.TempDir(), "source")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return archive.VerifyOptions{Source: name, ID: "id", Key: "key"}
}

func (p *place) verify(options archive.VerifyOptions) *archive.Report {
	p.Helper()
	report, err := archive.NewReader(p.store).Verify(p.Context(), options)
	if err != nil {
		p.Fatal(err)
	}
	return report
}

// counts returns the findings that are not zero.
func counts(report *archive.Report) map[string]int64 {
	text, _ := json.Marshal(report)
	var tree map[string]any
	_ = json.Unmarshal(text, &tree)
	found := map[string]int64{}
	var collect func(map[string]any)
	collect = func(tree map[string]any) {
		for name, value := range tree {
			if inner, ok := value.(map[string]any); ok {
				if count, ok := inner["count"].(float64); ok && count > 0 {
					found[name] = int64(count)
				}
				collect(inner)
			}
		}
	}
	collect(tree)
	return found
}

func (p *place) wantCounts(report *archive.Report, want map[string]int64) {
	p.Helper()
	if got := counts(report); fmt.Sprint(got) != fmt.Sprint(want) {
		var text bytes.Buffer
		_ = report.WriteText(&text)
		p.Errorf("found %v, want %v\n%s", got, want, &text)
	}
}

func TestVerify(t *testing.T) {
	p, _ := family(t)
	report := p.verify(p.source(sourceLines(upTo(40)...)))
	p.wantCounts(report, map[string]int64{})
	if !report.OK() || report.Shards != 4 || report.Ended != 4 || report.Records != 40 ||
		report.Source.Keys != 3 || report.Source.Records != 40 {
		t.Errorf("%+v", report)
	}
	var first, second bytes.Buffer
	if err := errors.Join(report.WriteText(&first),
		p.verify(p.source(sourceLines(upTo(40)...))).WriteText(&second)); err != nil {
		t.Fatal(err)
	}
	strip := func(text string) string { // the source's path
		lines := strings.Split(text, "\n")
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "source")
		}), "\n")
	}
	if strip(first.String()) != strip(second.String()) {
		t.Errorf("two reports of one archive:\n%s\n%s", &first, &second)
	}
	for _, part := range []string{"40 records", "4 shards (4 ended)", "3 keys by key", "verdict"} {
		if !strings.Contains(first.String(), part) {
			t.Errorf("%q is not in\n%s", part, &first)
		}
	}
	t.Log("\n" + first.String())
}

// TestVerifySource plants faults that only a source can show.
func TestVerifySource(t *testing.T) {
	swap := func(a, b int) []int {
		ids := upTo(40)
		ids[a], ids[b] = ids[b], ids[a]
		return ids
	}
	for name, c := range map[string]struct {
		ids  []int
		want map[string]int64
	}{
		"missing":               {append(upTo(40), 99, 100), map[string]int64{"missing": 2}},
		"unknown":               {slices.Delete(upTo(40), 7, 9), map[string]int64{"unknown": 2}},
		"out of order":          {swap(3, 6), map[string]int64{"outOfOrder": 1}},
		"across a split":        {swap(8, 11), map[string]int64{"outOfOrder": 1}},
		"across a merge":        {swap(22, 25), map[string]int64{"outOfOrder": 1}},
		"keys are not compared": {swap(3, 4), map[string]int64{}},
		"far out of order":      {swap(3, 39), map[string]int64{"outOfOrder": 12}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := family(t)
			report := p.verify(p.source(sourceLines(c.ids...)))
			p.wantCounts(report, c.want)
			if report.OK() != (len(c.want) == 0) {
				t.Errorf("OK is %v", report.OK())
			}
		})
	}
	p, _ := family(t)
	options := p.source(sourceLines(upTo(30)...))
	options.Partial = true
	if report := p.verify(options); !report.OK() || report.Source.Unknown.Count != 10 {
		t.Errorf("a part of the source: %+v", report)
	}
	options = p.source(sourceLines(swap(3, 6)...))
	options.Key = ""
	if report := p.verify(options); !report.OK() || report.Source.Keys != 0 {
		t.Errorf("without order: %+v", report)
	}
}

// TestVerifyUnrelatedShards has one key in two shards, neither of which comes first.
func TestVerifyUnrelatedShards(t *testing.T) {
	p := inMemory(t)
	p.fill(parent, 0, 6, all)
	p.fill(left, 6, 9, all)
	p.wantCounts(p.verify(p.source(sourceLines(upTo(9)...))), map[string]int64{"outOfOrder": 3})
}

// TestVerifyDoubled has one id at two positions, as a lost acknowledgement leaves it.
func TestVerifyDoubled(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	records := numbered(parent, 0, 6)
	again := records[2]
	again.Position = at(6)
	records = append(records, again)
	if _, err := w.Write(t.Context(), sink.Batch{Records: records, Through: at(6)}); err != nil {
		t.Fatal(err)
	}
	p.end(w)
	report := p.verify(p.source(sourceLines(upTo(6)...)))
	p.wantCounts(report, map[string]int64{"doubledInStream": 1})
	if report.OK() {
		t.Error("a double is no violation")
	}
	options := p.source(sourceLines(upTo(6)...))
	options.AllowDoubles = true
	report = p.verify(options)
	p.wantCounts(report, map[string]int64{"doubledInStream": 1})
	if !report.OK() {
		t.Error("a double that is allowed is a violation")
	}
}

// TestVerifyRepeatedIDs shows that an id of two records is refused: the double of one of them would
// hide the loss of the other.
func TestVerifyRepeatedIDs(t *testing.T) {
	p, _ := family(t)
	reader := archive.NewReader(p.store)
	options := p.source("\n" + sourceLines(0, 1) + "\n\n" + sourceLines(2, 1, 3))
	for _, options.Partial = range []bool{false, true} {
		_, err := reader.Verify(t.Context(), options)
		if !errors.Is(err, archive.ErrUnusableSource) ||
			!strings.Contains(err.Error(), "line 7: the id 1 is on line 3 as well") {
			t.Errorf("partial %v: %v", options.Partial, err)
		}
	}
	options = archive.VerifyOptions{ID: "id", Records: sourceOf("0", "1", "2", "1")}
	_, err := reader.Verify(t.Context(), options)
	if !errors.Is(err, archive.ErrUnusableSource) ||
		!strings.Contains(err.Error(), "record 4: the id 1 is on record 2 as well") {
		t.Errorf("of a program: %v", err)
	}
	options.Records = sourceOf()
	if _, err := reader.Verify(t.Context(), options); !errors.Is(err, archive.ErrUnusableSource) {
		t.Errorf("a source without records: %v", err)
	}
}

func sourceOf(ids ...string) iter.Seq2[archive.SourceRecord, error] {
	return func(yield func(archive.SourceRecord, error) bool) {
		for _, id := range ids {
			if !yield(archive.SourceRecord{ID: id}, nil) {
				return
			}
		}
	}
}

// TestVerifyFaults plants faults in the files.
func TestVerifyFaults(t *testing.T) {
	file := func(id runnel.ShardID, previous runnel.Position) string {
		return fmt.Sprintf("to/%s/%s/%s.ndjson.gz", streamFolder, id, previous.SortText())
	}
	second, third := file(parent, at(2)), file(parent, at(5))
	for name, c := range map[string]struct {
		plant func(p *place, disk *vfs.Mem)
		want  map[string]int64
	}{
		"a link is missing": {func(p *place, disk *vfs.Mem) {
			p.must(disk.Remove(second))
		}, map[string]int64{"missingLinks": 1, "missing": 3}},
		"the first link is missing": {func(p *place, disk *vfs.Mem) {
			p.must(disk.Remove(file(parent, runnel.Start())))
		}, map[string]int64{"missingLinks": 1, "missing": 3}},
		"a parent's end is missing": {func(p *place, disk *vfs.Mem) {
			p.must(disk.Remove(file(parent, at(8))))
		}, map[string]int64{"parents": 2, "missing": 1}},
		"a parent is missing": {func(p *place, disk *vfs.Mem) {
			names, err := disk.List("to/" + streamFolder + "/" + string(right))
			p.must(err)
			for _, name := range names {
				p.must(disk.Remove("to/" + streamFolder + "/" + string(right) + "/" + name))
			}
			// No record between the two parts of key 1 shows their order.
		}, map[string]int64{"parents": 1, "missing": 5}},
		"the tip is cut": {func(p *place, disk *vfs.Mem) {
			data := p.read(disk, third)
			p.replace(disk, third, data[:len(data)-9])
		}, map[string]int64{"damaged": 1}},
		"a bit of the records is flipped": {func(p *place, disk *vfs.Mem) {
			data := p.read(disk, third)
			data[len(data)-3] ^= 1 // the length in gzip's trailer
			p.replace(disk, third, data)
		}, map[string]int64{"damaged": 1}},
		"the records are others": {func(p *place, disk *vfs.Mem) {
			p.repack(disk, third, func(lines string) string {
				return strings.Replace(lines, `"data":{"id":"7"`, `"data":{"id":"8"`, 1)
			})
		}, map[string]int64{"damaged": 1, "missing": 1, "doubledInStream": 1}},
		"a record is gone": {func(p *place, disk *vfs.Mem) {
			p.repack(disk, third, func(lines string) string {
				return lines[strings.Index(lines, "\n")+1:]
			})
		}, map[string]int64{"damaged": 1, "missing": 1}},
		"a record is there twice": {func(p *place, disk *vfs.Mem) {
			p.repack(disk, third, func(lines string) string {
				return lines[:strings.Index(lines, "\n")+1] + lines
			})
		}, map[string]int64{"damaged": 1, "archivedTwice": 1}},
		"records are swapped": {func(p *place, disk *vfs.Mem) {
			p.repack(disk, third, func(lines string) string {
				split := strings.SplitAfter(lines, "\n")
				return split[1] + split[0] + split[2]
			})
		}, map[string]int64{"damaged": 1, "disorder": 1}},
		"the link is damaged": {func(p *place, disk *vfs.Mem) {
			data := p.read(disk, second)
			data[40] ^= 1
			p.replace(disk, second, data)
		}, map[string]int64{"damaged": 1, "missing": 3}},
		"a link stands in another shard": {func(p *place, disk *vfs.Mem) {
			p.replace(disk, file(right, at(2)), p.read(disk, second))
		}, map[string]int64{"damaged": 1}},
		"a link stands under another name": {func(p *place, disk *vfs.Mem) {
			p.replace(disk, file(parent, at(3)), p.read(disk, second))
		}, map[string]int64{"damaged": 1}},
		"two chains overlap": {func(p *place, disk *vfs.Mem) {
			p.overlap(disk, file(parent, at(3)))
		}, map[string]int64{"overlappingLinks": 1, "archivedTwice": 2}},
		"stray objects": {func(p *place, disk *vfs.Mem) {
			p.replace(disk, "to/copy.ndjson.gz", p.read(disk, second))
			p.replace(disk, "to/"+streamFolder+"/"+string(left)+"/copy.ndjson.gz", []byte("x"))
		}, map[string]int64{"stray": 2}},
		"other files": {func(p *place, disk *vfs.Mem) {
			p.replace(disk, "to/README", nil)
			p.replace(disk, "to/"+streamFolder+"/notes", nil)
			p.replace(disk, "to/"+streamFolder+"/"+string(left)+"/.x.tmp", nil) // a put under way
			p.must(disk.MkdirAll("to/lost+found"))
		}, map[string]int64{"otherFiles": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			p, disk := family(t)
			c.plant(p, disk)
			report := p.verify(p.source(sourceLines(upTo(40)...)))
			p.wantCounts(report, c.want)
			if report.OK() != (name == "other files") {
				t.Errorf("OK is %v", report.OK())
			}
		})
	}
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) read(disk *vfs.Mem, name string) []byte {
	p.Helper()
	file, err := disk.Open(name)
	p.must(err)
	size, err := file.Size()
	p.must(err)
	data := make([]byte, size)
	_, err = file.ReadAt(data, 0)
	p.must(err)
	p.must(file.Close())
	return data
}

func (p *place) replace(disk *vfs.Mem, name string, data []byte) {
	p.Helper()
	file, err := disk.Create(name)
	p.must(err)
	_, err = file.WriteAt(data, 0)
	p.must(err)
	p.must(file.Close())
}

// repack changes an object's records and leaves its link as it is.
func (p *place) repack(disk *vfs.Mem, name string, change func(lines string) string) {
	p.Helper()
	data := p.read(disk, name)
	second := bytes.LastIndex(data, []byte{0x1f, 0x8b, 8})
	zcat, err := stdgzip.NewReader(bytes.NewReader(data[second:]))
	p.must(err)
	var lines, packed bytes.Buffer
	_, err = lines.ReadFrom(zcat)
	p.must(err)
	writer := stdgzip.NewWriter(&packed)
	_, err = writer.Write([]byte(change(lines.String())))
	p.must(err)
	p.must(writer.Close())
	p.replace(disk, name, append(data[:second:second], packed.Bytes()...))
}

// overlap makes a link of records 4 and 5 that goes on after record 3. A writer would make it if it
// did not know the link that has them.
func (p *place) overlap(disk *vfs.Mem, name string) {
	p.Helper()
	elsewhere := vfs.NewMem()
	other := &place{p.T, archive.NewDirStoreOn(elsewhere, "to")}
	w := other.open(archive.Config{}, shardOf(parent))
	other.write(w, parent, 0, 4)
	other.flush(w)
	other.write(w, parent, 4, 6)
	other.flush(w)
	p.replace(disk, name, p.read(elsewhere, name))
}

func TestVerifyInputs(t *testing.T) {
	p, _ := family(t)
	plain := sourceLines(upTo(40)...)
	var zipped bytes.Buffer
	gz := stdgzip.NewWriter(&zipped)
	_, err := gz.Write([]byte(strings.ReplaceAll(plain, "\n", "\r\n\n")))
	p.must(errors.Join(err, gz.Close()))
	encoder, err := zstd.NewWriter(nil)
	p.must(err)
	packed := encoder.EncodeAll([]byte(plain), nil)
	p.must(encoder.Close())
	for _, text := range []string{plain, strings.TrimSuffix(plain, "\n"), zipped.String(), string(packed)} {
		p.wantCounts(p.verify(p.source(text)), map[string]int64{})
	}
	for name, text := range map[string]string{
		"line 2: the record has no id: not JSON": "{\"id\":1,\"key\":1}\nx\n",
		"line 1: the record has no id":           `{"key":1}`,
		"line 1: the record has no key":          `{"id":1,"key":null}`,
	} {
		_, err := archive.NewReader(p.store).Verify(t.Context(), p.source(text))
		if !errors.Is(err, archive.ErrUnusableSource) || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
	options := archive.VerifyOptions{Source: "nowhere", ID: "id"}
	if _, err := archive.NewReader(p.store).Verify(t.Context(), options); !errors.Is(err, archive.ErrUnusableSource) {
		t.Errorf("no file: %v", err)
	}
	options = archive.VerifyOptions{Stream: "x"}
	if _, err := archive.NewReader(p.store).Verify(t.Context(), options); !errors.Is(err, archive.ErrStreamNotFound) {
		t.Errorf("no such stream: %v", err)
	}
	if err := (archive.VerifyOptions{ID: "id"}).Validate(); err == nil {
		t.Error("an id without a source is taken")
	}
	err = archive.VerifyOptions{Source: "a", Key: "/~", Examples: -1}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not every fault is named: %v", err)
	}
}

// TestVerifyRecords compares with records that a program yields.
func TestVerifyRecords(t *testing.T) {
	p, _ := family(t)
	options := archive.VerifyOptions{
		Records: func(yield func(archive.SourceRecord, error) bool) {
			for n := range 40 {
				if !yield(archive.SourceRecord{ID: fmt.Sprint(1000 + n), Key: fmt.Sprint(n % 3)}, nil) {
					return
				}
			}
		},
		Ordered:  true,
		Identify: func(r *runnel.Record) (string, bool) { return string(r.Position.Sequence), true },
	}
	p.wantCounts(p.verify(options), map[string]int64{})
}

// TestVerifyStreams shows that a source is compared with one stream.
func TestVerifyStreams(t *testing.T) {
	p, _ := family(t)
	shard := shardOf(parent)
	shard.Created = created.Add(1e9) // created again
	w := p.open(archive.Config{}, shard)
	p.write(w, parent, 0, 3)
	p.flush(w)
	if report := p.verify(archive.VerifyOptions{}); !report.OK() || len(report.Streams) != 2 {
		t.Errorf("%+v", report)
	}
	options := p.source(sourceLines(upTo(3)...))
	if _, err := archive.NewReader(p.store).Verify(t.Context(), options); !errors.Is(err, archive.ErrUnusableSource) {
		t.Errorf("two streams: %v", err)
	}
	options.Stream = "orders@1700000001123"
	p.wantCounts(p.verify(options), map[string]int64{})
	empty := inMemory(t)
	report := empty.verify(archive.VerifyOptions{})
	if report.OK() || report.Nothing.Count != 1 {
		t.Errorf("an empty archive: %+v", report)
	}
}

// TestVerifyHollowStream has a second stream without a link.
func TestVerifyHollowStream(t *testing.T) {
	p, disk := family(t)
	p.must(disk.MkdirAll("to/orders@1700000000999/" + string(parent)))
	p.wantCounts(p.verify(archive.VerifyOptions{}), map[string]int64{"nothingThere": 1})
	report := p.verify(archive.VerifyOptions{Stream: streamFolder})
	if !report.OK() {
		t.Errorf("the other stream: %+v", report)
	}
}

// TestVerifyDanglingLink has a name in a shard's folder without a file behind it: that is damage,
// and no failure of the check.
func TestVerifyDanglingLink(t *testing.T) {
	dir := t.TempDir()
	store, err := archive.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t, store}
	p.fill(parent, 0, 9, all)
	links, err := filepath.Glob(filepath.Join(dir, streamFolder, string(parent), "*.gz"))
	if err != nil || len(links) != 4 {
		t.Fatalf("%q, %v", links, err)
	}
	p.must(os.Remove(links[1]))
	p.must(os.Symlink("nowhere", links[1]))
	report, err := archive.Verify(t.Context(), dir, archive.VerifyOptions{})
	if err != nil || report.Damaged.Count != 1 || report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}
