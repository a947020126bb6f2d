package archive

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/runnel-stream/runnel"
)

// parseFast reads a line that has AppendRecord's fields in AppendRecord's order, and no escape in
// its strings. Nearly all lines are like this, and it takes a quarter of encoding/json's time
// (BenchmarkParseRecord). It accepts no line that encoding/json would refuse
// or read differently; the caller passes the lines that it does not accept to encoding/json.
func parseFast(line []byte) (runnel.Record, bool) {
	p := parser{rest: line, ok: true}
	var record runnel.Record
	record.PartitionKey = string(p.text(`{"partitionKey":"`))
	if p.has(`,"explicitHashKey":"`) {
		record.ExplicitHashKey = string(p.text(`,"explicitHashKey":"`))
	}
	record.Position.Sequence = runnel.SequenceNumber(p.text(`,"sequenceNumber":"`))
	record.Position.Sub = p.number(`,"subSequenceNumber":`)
	if p.has(`,"arrivalTime":"`) {
		arrival, err := readTime(string(p.text(`,"arrivalTime":"`)))
		p.ok = p.ok && err == nil
		record.ArrivalTime = arrival
	}
	record.ShardID = runnel.ShardID(p.text(`,"shardId":"`))
	record.Data = p.data()
	return record, p.ok && record.Position.IsRecord()
}

// parser takes one part of a line after another; ok turns false at the first part that differs.
type parser struct {
	rest []byte
	ok   bool
}

func (p *parser) has(prefix string) bool {
	return len(p.rest) >= len(prefix) && string(p.rest[:len(prefix)]) == prefix
}

// text takes the prefix, which ends with a quote, and the string without escapes behind it.
func (p *parser) text(prefix string) []byte {
	if !p.ok || !p.has(prefix) {
		p.ok = false
		return nil
	}
	rest := p.rest[len(prefix):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		p.ok = false
		return nil
	}
	for _, c := range rest[:end] {
		if c == '\\' || c < ' ' {
			p.ok = false
			return nil
		}
	}
	p.rest = rest[end+1:]
	p.ok = utf8.Valid(rest[:end])
	return rest[:end]
}

// number takes the prefix and a decimal integer without leading zeros.
func (p *parser) number(prefix string) int64 {
	if !p.ok || !p.has(prefix) {
		p.ok = false
		return 0
	}
	rest := p.rest[len(prefix):]
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	value, err := strconv.ParseInt(string(rest[:n]), 10, 64)
	p.ok = err == nil && (rest[0] != '0' || n == 1)
	p.rest = rest[n:]
	return value
}

// data takes the rest of the line: the data in either form, and the closing brace.
func (p *parser) data() []byte {
	const plain, encoded = `,"data":`, `,"dataBase64":"`
	last := len(p.rest) - 1
	if !p.ok || last < 0 || p.rest[last] != '}' {
		p.ok = false
		return nil
	}
	if p.has(plain) {
		value := p.rest[len(plain):last]
		p.ok = verbatim(value)
		return bytes.Clone(value)
	}
	text := p.text(encoded)
	if p.ok = p.ok && len(p.rest) == 1; !p.ok {
		return nil
	}
	value := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(value, text)
	p.ok = err == nil
	return value[:n]
}
