package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
)

// prepared sends prepared bodies and does not decode the answers. It leaves as much processor time
// as possible to the server, which shares the cores.
type prepared struct {
	*wire
	answers sync.Pool // of *bytes.Buffer
}

func newPrepared(endpoint string) *prepared {
	return &prepared{
		wire:    newWire(endpoint),
		answers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

const (
	kinesisTarget = "Kinesis_20131202."
	updateItem    = "DynamoDB_20120810.UpdateItem"
)

// ask makes a Kinesis call and passes its answer to look. look must not keep the answer.
func (c *prepared) ask(
	ctx context.Context, operation string, body []byte, look func(answer []byte) error,
) error {
	answer := c.answers.Get().(*bytes.Buffer)
	defer c.answers.Put(answer)
	answer.Reset()
	if err := c.call(ctx, kinesisTarget+operation, body, answer); err != nil {
		return err
	}
	return look(answer.Bytes())
}

func (c *prepared) putBatch(ctx context.Context, p *payload) error {
	return c.ask(ctx, "PutRecords", p.batchBody, func(answer []byte) error {
		// An error of a single record fails the whole call.
		if bytes.Contains(answer, []byte(`"ErrorCode":"`)) {
			return fmt.Errorf("PutRecords: records failed: %.300s", answer)
		}
		if !bytes.Contains(answer, []byte(`"SequenceNumber"`)) {
			return fmt.Errorf("PutRecords: an answer without records: %.300s", answer)
		}
		return nil
	})
}

func (c *prepared) putSingle(ctx context.Context, p *payload, i int) error {
	return c.call(ctx, kinesisTarget+"PutRecord", p.singleBody[i%len(p.singleBody)], nil)
}

func (c *prepared) iterator(ctx context.Context, shard int) (iterator string, err error) {
	body := fmt.Appendf(nil, `{"StreamName":%q,"ShardId":%q,"ShardIteratorType":"TRIM_HORIZON"}`,
		stream, shardID(shard))
	err = c.ask(ctx, "GetShardIterator", body, func(answer []byte) error {
		iterator = member(answer, "ShardIterator")
		if iterator == "" {
			return fmt.Errorf("GetShardIterator: no iterator in %.300s", answer)
		}
		return nil
	})
	return iterator, err
}

func (c *prepared) read(
	ctx context.Context, iterator string,
) (records int, next string, err error) {
	body := fmt.Appendf(nil, `{"ShardIterator":%q}`, iterator)
	err = c.ask(ctx, "GetRecords", body, func(answer []byte) error {
		if !bytes.Contains(answer, []byte(`"Records"`)) {
			return errors.New("GetRecords: an answer without Records")
		}
		records = bytes.Count(answer, []byte(`"PartitionKey"`))
		next = member(answer, "NextShardIterator")
		return nil
	})
	return records, next, err
}

func (c *prepared) advance(ctx context.Context, counter string, old int) error {
	body := fmt.Appendf(nil, `{"TableName":%q,"Key":{"id":{"S":%q}},`+
		`"UpdateExpression":"SET n = :new","ConditionExpression":"n = :old",`+
		`"ExpressionAttributeValues":{":new":{"N":"%d"},":old":{"N":"%d"}}}`,
		table, counter, old+1, old)
	return c.call(ctx, updateItem, body, nil)
}

// member returns a string member of a JSON object, "" if it is absent or null. The name must not
// occur elsewhere, and the string must have no escapes: an iterator is base64.
func member(object []byte, name string) string {
	_, rest, found := bytes.Cut(object, []byte(`"`+name+`"`))
	if !found {
		return ""
	}
	rest = bytes.TrimLeft(rest, ": \t\n")
	if len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	text, _, found := bytes.Cut(rest[1:], []byte(`"`))
	if !found {
		return ""
	}
	return string(text)
}
