package awscbor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// hostile makes a page with one list, of n elements of a byte each.
func hostile(name string, n int, element byte) []byte {
	document := append([]byte{0xa1, 0x60 | byte(len(name))}, name...)
	document = binary.BigEndian.AppendUint32(append(document, 0x9a), uint32(n))
	return append(document, bytes.Repeat([]byte{element}, n)...)
}

func allocated(of func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	of()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Lengths in a page, and many small items, allocate little.
func TestPagesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		document []byte
		want     error
	}{
		"records":  {hostile("Records", 5_000_000, 0xa0), errLength},
		"children": {hostile("ChildShards", 5_000_000, 0xa0), errLength},
		"length":   {append(hostile("Records", 0, 0)[:9], "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"...), io.ErrUnexpectedEOF},
		"text":     {[]byte("\xa1\x71NextShardIterator\x7b\x7f\xff\xff\xff\xff\xff\xff\xff"), io.ErrUnexpectedEOF},
		"UTF-8":    {[]byte("\xa1\x71NextShardIterator\x61\xff"), errText},
		"number":   {[]byte("\xa1\x72MillisBehindLatest\xf9\x3e\x00"), errNumber},
		"large":    {[]byte("\xa1\x72MillisBehindLatest\xfb\x7f\x00\x00\x00\x00\x00\x00\x00"), errNumber},
		"no time":  {[]byte("\xa1\x67Records\x81\xa1\x78\x1bApproximateArrivalTimestamp\xc1\xf9\x7e\x00"), errNumber},
	} {
		var err error
		if n := allocated(func() { _, err = readPage(c.document) }); !errors.Is(err, c.want) || n > 64<<20 {
			t.Errorf("%s: %v, and %d bytes allocated", name, err, n)
		}
	}
	if out, err := readPage(hostile("Records", maxRecords, 0xa0)); err != nil || len(out.Records) != maxRecords {
		t.Errorf("%d records, %v", len(out.Records), err)
	}
}

// A record that is kept keeps little memory of its page.
func TestKeptRecords(t *testing.T) {
	document := append([]byte{0xa1, 0x67}, "Records\x9f"...)
	for range 10_000 {
		document = append(append(document, "\xa1\x64Data\x58\x64"...), make([]byte, 100)...)
	}
	document = append(document, 0xff)
	heap := func() uint64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.GC() // pools keep their memory over one
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	before := heap()
	var kept [][]byte
	for range 20 {
		out, err := readPage(document)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, out.Records[5000].Data)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d records keep %d bytes", len(kept), after-before)
	}
	runtime.KeepAlive(kept)
}

// endless is a body that has no end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

// A body is read up to its limit, whatever its header says. A header allocates little by itself.
func TestBodiesAreBounded(t *testing.T) {
	response := func(length int64, body io.Reader) *smithyhttp.Response {
		return &smithyhttp.Response{Response: &http.Response{ContentLength: length, Body: io.NopCloser(body)}}
	}
	for _, length := range []int64{-1, maxBody, 1 << 62} {
		body := &endless{}
		if _, err := readBody(response(length, body)); !errors.Is(err, errLarge) || body.read > 3*maxBody {
			t.Errorf("%d: %v after %d bytes", length, err, body.read)
		}
	}
	n := allocated(func() {
		if _, err := readBody(response(maxBody, strings.NewReader("abc"))); err != nil {
			t.Error(err)
		}
	})
	if n > 2*trusted {
		t.Errorf("%d bytes allocated for three", n)
	}
	for _, length := range []int64{-1, 0, 2, 3, 4} {
		for _, whole := range []string{"", "abc", strings.Repeat("abc", 100_000)} {
			b, err := readBody(response(length, io.MultiReader(strings.NewReader(whole), eof{})))
			if err != nil || string(*b) != whole {
				t.Errorf("%d: %d bytes of %d, %v", length, len(*b), len(whole), err)
			}
			b.free()
		}
	}
	long := response(0, io.MultiReader(strings.NewReader("\xa1\x61a\x9f"), &endless{}))
	if err := toJSON(long); err == nil {
		t.Error("an error without end is read")
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// FuzzReadPage reads any document: the page has no more data than the document, and the document is
// not changed.
func FuzzReadPage(f *testing.F) {
	f.Add([]byte("\xa1\x67Records\x81\xa2\x64Data\x42ab\x6cPartitionKey\x61k"))
	f.Add([]byte("\xbf\x67Records\x9f\xbf\x64Data\x5f\x41a\xff\xff\xff\x72MillisBehindLatest\x18\x64\xff"))
	f.Add([]byte("\xa1\x67Records\x81\xa1\x78\x1bApproximateArrivalTimestamp\xc1\x1b\x00\x00\x01\xa0\x13\xac\xcc\x38"))
	f.Add([]byte("\xa1\x6bChildShards\x81\xa2\x67ShardId\x61a\x6cHashKeyRange\xa1\x6fStartingHashKey\x610"))
	f.Add([]byte("\xa1\x6bChildShards\x81\xa1\x6cParentShards\x82\x61a\x61b"))
	f.Add([]byte("\xa2\x71NextShardIterator\x61n\x61x\xc1\xf9\x3e\x00"))
	f.Add(hostile("Records", 50, 0xa0))
	f.Add(append([]byte("\xa1\x67Records\x81\xa1\x64Data\x59\x03\xe8"), bytes.Repeat([]byte("x"), 1000)...))
	f.Fuzz(func(t *testing.T, document []byte) {
		before := bytes.Clone(document)
		out, err := readPage(document)
		if size := pageSize(&out); size > len(document) {
			t.Errorf("%d bytes of %d", size, len(document))
		}
		if !bytes.Equal(before, document) {
			t.Error("the document has changed")
		}
		clear(document) // the page must not depend on it
		again, err2 := readPage(before)
		if (err == nil) != (err2 == nil) || pageSize(&again) != pageSize(&out) {
			t.Errorf("%v, and then %v", err, err2)
		}
		for i := range out.Records {
			if !bytes.Equal(out.Records[i].Data, again.Records[i].Data) {
				t.Errorf("record %d depends on the document", i)
			}
		}
	})
}

func pageSize(out *kinesis.GetRecordsOutput) (n int) {
	for i := range out.Records {
		r := &out.Records[i]
		n += len(r.Data) + len(r.EncryptionType)
		for _, text := range []*string{r.PartitionKey, r.SequenceNumber} {
			if text != nil {
				n += len(*text)
			}
		}
	}
	return n
}
