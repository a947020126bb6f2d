package awscbor

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

const (
	// maxRecords is the most records of an answer, and maxElements the most elements of another
	// list in it. The API allows 10,000 records; a shard has two parents or children.
	maxRecords  = 100_000
	maxElements = 1000
	// leastRecord is the size of the smallest record that has all members. A record without members
	// has a byte, and costs a hundred in memory.
	leastRecord = 64
	// block is the size of the blocks in which the strings and blobs of small records lie. A record
	// that is kept keeps its block alive: so a block is small.
	block = 4 << 10
)

var (
	errText   = errors.New("a text in the answer is not UTF-8")
	errNumber = errors.New("a number in the answer is not a whole one")
	errLength = errors.New("a list in the answer is too long")
)

// page reads the answer of GetRecords. It copies all that it returns out of the document.
type page struct {
	cboritem.Scanner
	texts  strings.Builder
	data   []byte
	fields []fields
}

// fields are the members of a record to which types.Record has pointers.
type fields struct {
	key, number string
	arrival     time.Time
}

// readPage decodes an answer of GetRecords. Members that it does not know are ignored, null means
// absent, and of a repeated member the last one counts.
func readPage(document []byte) (kinesis.GetRecordsOutput, error) {
	p := page{Scanner: cboritem.NewScanner(document)}
	var out kinesis.GetRecordsOutput
	for left := p.Map(); p.More(&left); {
		switch name := p.Text(); {
		case p.Null():
		case string(name) == "Records":
			out.Records = p.records()
		case string(name) == "MillisBehindLatest":
			out.MillisBehindLatest = new(p.integer())
		case string(name) == "NextShardIterator":
			out.NextShardIterator = new(p.text())
		case string(name) == "ChildShards":
			out.ChildShards = list(&p, p.childShard)
		default:
			p.Skip()
		}
	}
	return out, p.End()
}

// list reads an array of few elements.
func list[T any](p *page, element func() T) []T {
	all := []T{}
	for left := p.Array(); p.More(&left); {
		if len(all) == maxElements {
			p.Fail(errLength)
		}
		all = append(all, element())
	}
	return all
}

func (p *page) records() []types.Record {
	left := p.Array()
	all := make([]types.Record, 0, min(max(0, int(left)), p.Left()/leastRecord+1))
	for p.More(&left) {
		if len(all) == maxRecords {
			p.Fail(errLength)
			break
		}
		all = append(all, types.Record{})
		p.record(&all[len(all)-1])
	}
	return all
}

func (p *page) record(r *types.Record) {
	if len(p.fields) == 0 {
		p.fields = make([]fields, min(64, p.Left()/leastRecord+1))
	}
	in := &p.fields[0]
	p.fields = p.fields[1:]
	for left := p.Map(); p.More(&left); {
		switch name := p.Text(); {
		case p.Null():
		case string(name) == "Data":
			r.Data = p.blob()
		case string(name) == "PartitionKey":
			in.key = p.text()
			r.PartitionKey = &in.key
		case string(name) == "SequenceNumber":
			in.number = p.text()
			r.SequenceNumber = &in.number
		case string(name) == "ApproximateArrivalTimestamp":
			in.arrival = p.time()
			r.ApproximateArrivalTimestamp = &in.arrival
		case string(name) == "EncryptionType":
			r.EncryptionType = encryption(p.Text())
		default:
			p.Skip()
		}
	}
}

// encryption returns the usual values without an allocation.
func encryption(text []byte) types.EncryptionType {
	switch string(text) {
	case string(types.EncryptionTypeKms):
		return types.EncryptionTypeKms
	case string(types.EncryptionTypeNone):
		return types.EncryptionTypeNone
	}
	return types.EncryptionType(text)
}

func (p *page) childShard() (c types.ChildShard) {
	for left := p.Map(); p.More(&left); {
		switch name := p.Text(); {
		case p.Null():
		case string(name) == "ShardId":
			c.ShardId = new(p.text())
		case string(name) == "ParentShards":
			c.ParentShards = list(p, p.text)
		case string(name) == "HashKeyRange":
			c.HashKeyRange = p.hashKeyRange()
		default:
			p.Skip()
		}
	}
	return c
}

func (p *page) hashKeyRange() *types.HashKeyRange {
	r := &types.HashKeyRange{}
	for left := p.Map(); p.More(&left); {
		switch name := p.Text(); {
		case p.Null():
		case string(name) == "StartingHashKey":
			r.StartingHashKey = new(p.text())
		case string(name) == "EndingHashKey":
			r.EndingHashKey = new(p.text())
		default:
			p.Skip()
		}
	}
	return r
}

// text copies a text string, a short one into a block of many.
func (p *page) text() string {
	text := p.Text()
	switch {
	case !utf8.Valid(text):
		p.Fail(errText)
		return ""
	case len(text) > block/8:
		return string(text)
	case p.texts.Cap()-p.texts.Len() < len(text):
		p.texts = strings.Builder{}
		p.texts.Grow(min(block, len(text)+p.Left()))
	}
	from := p.texts.Len()
	p.texts.Write(text)
	return p.texts.String()[from:]
}

// blob copies a byte string, a short one into a block of many. Its capacity ends with it.
func (p *page) blob() []byte {
	data := p.Bytes()
	if len(data) > block/8 {
		data = append([]byte(nil), data...)
		return data[:len(data):len(data)]
	}
	if cap(p.data)-len(p.data) < len(data) || p.data == nil {
		p.data = make([]byte, 0, min(block, len(data)+p.Left()))
	}
	from := len(p.data)
	p.data = append(p.data, data...)
	return p.data[from:len(p.data):len(p.data)]
}

func (p *page) integer() int64 {
	n, f, whole := p.Number()
	if whole {
		return n
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		p.Fail(errNumber)
		return 0
	}
	return int64(f)
}

// time reads a time. A whole number is milliseconds, as AWS sends it. A float is seconds, as RFC
// 8949 has it (a guess: AWS sends none).
func (p *page) time() time.Time {
	ms, seconds, whole := p.Number()
	if !whole {
		if math.IsNaN(seconds) || math.Abs(seconds) > 1<<40 {
			p.Fail(errNumber)
			return time.Time{}
		}
		ms = int64(math.Round(seconds * 1000))
	}
	return time.UnixMilli(ms).UTC()
}
