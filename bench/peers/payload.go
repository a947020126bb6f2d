package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// payload has the records of all puts, the same for every server and client, as values for the SDK
// and as prepared bodies. It is read only and so safe for concurrent use.
type payload struct {
	recordBytes int
	batch       *kinesis.PutRecordsInput
	batchBody   []byte
	single      []*kinesis.PutRecordInput
	singleBody  [][]byte
}

// newPayload makes records of one size, with random bytes and keys that spread over the shards.
func newPayload(recordBytes int) (*payload, error) {
	p := &payload{
		recordBytes: recordBytes, batch: &kinesis.PutRecordsInput{StreamName: aws.String(stream)},
	}
	for i := range batchRecords {
		data, key := make([]byte, recordBytes), aws.String(fmt.Sprintf("key-%d", i))
		_, _ = rand.Read(data) // it does not fail
		p.batch.Records = append(p.batch.Records, types.PutRecordsRequestEntry{
			Data: data, PartitionKey: key,
		})
		p.single = append(p.single, &kinesis.PutRecordInput{
			StreamName: aws.String(stream), Data: data, PartitionKey: key,
		})
	}
	return p, p.encode()
}

// encode makes the bodies in the SDK's form: without the members that are not set.
func (p *payload) encode() error {
	type entry struct {
		Data         []byte
		PartitionKey string
		StreamName   string `json:",omitempty"`
	}
	batch := struct {
		Records    []entry
		StreamName string
	}{StreamName: stream}
	for _, r := range p.batch.Records {
		e := entry{Data: r.Data, PartitionKey: *r.PartitionKey}
		batch.Records = append(batch.Records, e)
		e.StreamName = stream
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		p.singleBody = append(p.singleBody, body)
	}
	body, err := json.Marshal(batch)
	p.batchBody = body
	return err
}
