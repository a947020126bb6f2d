package kinesis

import (
	"encoding/base64"
	"strconv"

	"github.com/runnel-stream/runnel/internal/cboritem"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// childDescription is the model's ChildShard.
type childDescription struct {
	ShardID      string `json:"ShardId"`
	ParentShards []string
	HashKeyRange hashKeyRange
}

// describeChildren describes the shards that follow a closed one.
func describeChildren(children []*catalogue.Shard) []childDescription {
	described := make([]childDescription, len(children))
	for i, child := range children {
		described[i] = childDescription{child.ID(), nil, describeRange(child.Range)}
		for _, parent := range child.Parents {
			described[i].ParentShards = append(described[i].ParentShards, shardid.Of(parent))
		}
	}
	return described
}

// encode writes the answer of GetRecords. Call it once: it gives the records' memory back.
func (r *reading) encode(call *wire.Call) (body []byte, err error) {
	defer r.lent.Release()
	defer wire.TakeTurn(payloadSize(r.records))()
	var children []byte
	if r.children != nil {
		if children, err = encodeDocument(call.Format, describeChildren(r.children)); err != nil {
			return nil, err
		}
	}
	if call.Format == wire.CBOR {
		return r.appendCBOR(call, children), nil
	}
	return r.appendJSON(call, children), nil
}

func (r *reading) appendJSON(call *wire.Call, children []byte) []byte {
	size := 512 + len(children) + recordsSizeJSON(r.records)
	dst := append(call.Room(size), `{"MillisBehindLatest":`...)
	dst = strconv.AppendInt(dst, r.behind, 10)
	if r.iterator != "" {
		dst = append(dst, `,"NextShardIterator":`...)
		dst = appendString(dst, r.iterator)
	}
	dst = append(dst, `,"Records":`...)
	dst = appendRecordsOf(dst, r.settings, r.shard, r.records)
	if children != nil {
		dst = append(append(dst, `,"ChildShards":`...), children...)
	}
	return append(dst, '}')
}

// recordsSizeJSON estimates the length of appendRecordsOf's output, rather too high.
func recordsSizeJSON(records []shardlog.Record) int {
	size := 2
	for i := range records {
		record := &records[i]
		size += 192 + len(record.PartitionKey) + base64.StdEncoding.EncodedLen(len(record.Data))
	}
	return size
}

// appendRecordsOf appends a shard's records as the JSON array of the model's Record. It is written
// by hand for speed. The stream's settings decide which records count as encrypted; the others have
// no EncryptionType (LocalStack's snapshots of AWS).
func appendRecordsOf(
	dst []byte, of *catalogue.Settings, sh *catalogue.Shard, records []shardlog.Record,
) []byte {
	dst = append(dst, '[')
	for i := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		record := &records[i]
		dst = append(dst, `{"ApproximateArrivalTimestamp":`...)
		dst = appendSeconds(dst, record.Arrival)
		dst = append(dst, `,"Data":`...)
		dst = appendBlob(dst, record.Data)
		if of.Encrypts(record.Arrival) {
			dst = append(dst, `,"EncryptionType":"KMS"`...)
		}
		dst = append(dst, `,"PartitionKey":`...)
		dst = appendString(dst, record.PartitionKey)
		dst = append(dst, `,"SequenceNumber":"`...)
		dst = numberOf(sh, record.Number).appendText(dst)
		dst = append(dst, `"}`...)
	}
	return append(dst, ']')
}

func (r *reading) appendCBOR(call *wire.Call, children []byte) []byte {
	size := 512 + len(children)
	for i := range r.records {
		size += 192 + len(r.records[i].PartitionKey) + len(r.records[i].Data)
	}
	members := 2 // MillisBehindLatest and Records
	if r.iterator != "" {
		members++
	}
	if children != nil {
		members++
	}
	dst := appendCBORHead(call.Room(size), cboritem.Map, members)
	dst = appendCBORInt(appendCBORText(dst, "MillisBehindLatest"), r.behind)
	if r.iterator != "" {
		dst = appendCBORText(appendCBORText(dst, "NextShardIterator"), r.iterator)
	}
	dst = appendCBORHead(appendCBORText(dst, "Records"), cboritem.Array, len(r.records))
	for i := range r.records {
		dst = r.appendRecordCBOR(dst, &r.records[i])
	}
	if children != nil {
		dst = append(appendCBORText(dst, "ChildShards"), children...)
	}
	return dst
}

func (r *reading) appendRecordCBOR(dst []byte, record *shardlog.Record) []byte {
	var number [64]byte
	members, encrypted := 4, r.settings.Encrypts(record.Arrival)
	if encrypted {
		members++
	}
	dst = appendCBORHead(dst, cboritem.Map, members)
	dst = appendCBORTime(appendCBORText(dst, "ApproximateArrivalTimestamp"), record.Arrival)
	dst = cboritem.AppendString(appendCBORText(dst, "Data"), cboritem.Bytes, record.Data)
	if encrypted {
		dst = appendCBORText(appendCBORText(dst, "EncryptionType"), catalogue.EncryptionKMS)
	}
	dst = appendCBORText(appendCBORText(dst, "PartitionKey"), record.PartitionKey)
	return cboritem.AppendString(appendCBORText(dst, "SequenceNumber"), cboritem.Text,
		numberOf(r.shard, record.Number).appendText(number[:0]))
}
