package awscbor

import (
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

// encodePut writes an input of PutRecords into one piece of memory of its size. It leaves DryRun
// out.
func encodePut(in *kinesis.PutRecordsInput) []byte {
	const heads = 64 // of a record: names and lengths
	size := 4 * heads
	for _, text := range []*string{in.StreamName, in.StreamARN, in.StreamId} {
		size += length(text)
	}
	for i := range in.Records {
		r := &in.Records[i]
		size += heads + len(r.Data) + length(r.PartitionKey) + length(r.ExplicitHashKey)
	}
	dst := cboritem.AppendHead(make([]byte, 0, size), cboritem.Map,
		present(in.StreamName)+present(in.StreamARN)+present(in.StreamId)+1)
	dst = appendMember(dst, "StreamName", in.StreamName)
	dst = appendMember(dst, "StreamARN", in.StreamARN)
	dst = appendMember(dst, "StreamId", in.StreamId)
	dst = cboritem.AppendString(dst, cboritem.Text, "Records")
	dst = cboritem.AppendHead(dst, cboritem.Array, uint64(len(in.Records)))
	for i := range in.Records {
		r := &in.Records[i]
		members := present(r.PartitionKey) + present(r.ExplicitHashKey)
		if r.Data != nil {
			members++
		}
		dst = cboritem.AppendHead(dst, cboritem.Map, members)
		if r.Data != nil {
			dst = cboritem.AppendString(dst, cboritem.Text, "Data")
			dst = cboritem.AppendString(dst, cboritem.Bytes, r.Data)
		}
		dst = appendMember(dst, "PartitionKey", r.PartitionKey)
		dst = appendMember(dst, "ExplicitHashKey", r.ExplicitHashKey)
	}
	return dst
}

func appendMember(dst []byte, name string, text *string) []byte {
	if text == nil {
		return dst
	}
	dst = cboritem.AppendString(dst, cboritem.Text, name)
	return cboritem.AppendString(dst, cboritem.Text, *text)
}

func present(text *string) uint64 {
	if text == nil {
		return 0
	}
	return 1
}

func length(text *string) int {
	if text == nil {
		return 0
	}
	return len(*text)
}
