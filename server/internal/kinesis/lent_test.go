package kinesis

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
)

// Reads of large records at the same time do not see each other's records, although they take turns
// with the memory: see shardlog.Chunks.
func TestGetRecordsAtOnce(t *testing.T) {
	n := newNode(t)
	n.create("large", 1)
	const records, size = 12, 600 << 10 // a segment and a chunk each
	for i := range records {
		n.put("large", strconv.Itoa(i), string(bytes.Repeat([]byte{byte(i)}, size)))
	}
	n.stop()
	n = startNode(t, n.fs)
	oldest := n.iterator("large", shardid.Of(0), "TRIM_HORIZON")
	get := func() {
		answer, err := n.Serve(n.ctx, &wire.Call{
			Service: "kinesis", Operation: "GetRecords", World: n.world,
			Body: []byte(`{"ShardIterator":"` + oldest + `"}`),
		})
		if err != nil {
			t.Error(err)
			return
		}
		var out got
		if err := json.Unmarshal(answer.Body, &out); err != nil || len(out.Records) != records {
			t.Errorf("%d records, %v", len(out.Records), err)
		}
		for i, r := range out.Records {
			if len(r.Data) != size || bytes.Count(r.Data, []byte{byte(i)}) != size {
				t.Errorf("record %d is not as it was put", i)
			}
		}
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 2 {
				get()
			}
		})
	}
	all.Wait()
}
