package kinesis

import (
	"strconv"

	"github.com/runnel-stream/runnel/internal/cboritem"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// putRecordOutput is the answer of PutRecord.
type putRecordOutput struct{ result putResult }

// encode implements encoded.
func (out *putRecordOutput) encode(format wire.Format) []byte {
	dst := make([]byte, 0, 192)
	if format == wire.CBOR {
		return out.result.appendCBOR(dst, out.result.encrypted)
	}
	return out.result.appendJSON(dst, out.result.encrypted)
}

// putRecordsOutput is the answer of PutRecords.
type putRecordsOutput struct{ results []putResult }

// encode implements encoded. It is written by hand for speed.
func (out *putRecordsOutput) encode(format wire.Format) []byte {
	failed, encrypted := 0, false
	for i := range out.results {
		if out.results[i].code != "" {
			failed++
		}
		encrypted = encrypted || out.results[i].encrypted
	}
	dst := make([]byte, 0, 96+128*len(out.results))
	if format == wire.CBOR {
		return out.appendCBOR(dst, failed, encrypted)
	}
	return out.appendJSON(dst, failed, encrypted)
}

func (out *putRecordsOutput) appendJSON(dst []byte, failed int, encrypted bool) []byte {
	dst = append(dst, '{')
	if encrypted {
		dst = append(dst, `"EncryptionType":"KMS",`...)
	}
	dst = append(dst, `"FailedRecordCount":`...)
	dst = strconv.AppendInt(dst, int64(failed), 10)
	dst = append(dst, `,"Records":[`...)
	for i := range out.results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = out.results[i].appendJSON(dst, false)
	}
	return append(dst, `]}`...)
}

func (out *putRecordsOutput) appendCBOR(dst []byte, failed int, encrypted bool) []byte {
	members := 2
	if encrypted {
		members++
	}
	dst = appendCBORHead(dst, cboritem.Map, members)
	if encrypted {
		dst = appendCBORText(appendCBORText(dst, "EncryptionType"), catalogue.EncryptionKMS)
	}
	dst = appendCBORInt(appendCBORText(dst, "FailedRecordCount"), int64(failed))
	dst = appendCBORHead(appendCBORText(dst, "Records"), cboritem.Array, len(out.results))
	for i := range out.results {
		dst = out.results[i].appendCBOR(dst, false)
	}
	return dst
}

// appendJSON appends the result of one record. Only error messages need escaping.
func (r *putResult) appendJSON(dst []byte, encrypted bool) []byte {
	if r.code != "" {
		dst = appendString(append(dst, `{"ErrorCode":`...), r.code)
		dst = appendString(append(dst, `,"ErrorMessage":`...), r.message)
		return append(dst, '}')
	}
	dst = append(dst, '{')
	if encrypted {
		dst = append(dst, `"EncryptionType":"KMS",`...)
	}
	dst = append(dst, `"SequenceNumber":"`...)
	dst = numberOf(r.shard, r.number).appendText(dst)
	dst = append(dst, `","ShardId":"`...)
	dst = shardid.Append(dst, r.shard.Index)
	return append(dst, `"}`...)
}

func (r *putResult) appendCBOR(dst []byte, encrypted bool) []byte {
	if r.code != "" {
		dst = appendCBORHead(dst, cboritem.Map, 2)
		dst = appendCBORText(appendCBORText(dst, "ErrorCode"), r.code)
		return appendCBORText(appendCBORText(dst, "ErrorMessage"), r.message)
	}
	members := 2
	if encrypted {
		members++
	}
	dst = appendCBORHead(dst, cboritem.Map, members)
	if encrypted {
		dst = appendCBORText(appendCBORText(dst, "EncryptionType"), catalogue.EncryptionKMS)
	}
	var text [64]byte
	number := numberOf(r.shard, r.number).appendText(text[:0])
	dst = cboritem.AppendString(appendCBORText(dst, "SequenceNumber"), cboritem.Text, number)
	return cboritem.AppendString(appendCBORText(dst, "ShardId"), cboritem.Text,
		shardid.Append(text[:0], r.shard.Index))
}
