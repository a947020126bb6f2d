package awscbor

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"
)

// plain is another protocol of AWS in CBOR. Only its bodies are used, and only those without times,
// which it has in seconds.
var plain = rpcv2.NewCBOR(schemas.Kinesis_20131202)

// operation is the part of a call that differs between GetRecords and PutRecords.
type operation struct {
	// repeats says that an attempt may be sent twice although the first one may have succeeded.
	repeats bool
	// encode writes an input in CBOR.
	encode func(
		ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable,
	) (io.Reader, error)
	// decode reads the body of an answer in CBOR.
	decode func(body []byte, schema *smithy.OperationSchema, out smithy.Deserializable) error
	// empty reports whether an output lacks what every answer has.
	empty func(out smithy.Deserializable) bool
	// reset clears an output.
	reset func(out smithy.Deserializable)
}

func encodePlain(
	ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable,
) (io.Reader, error) {
	req := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	err := plain.SerializeRequest(ctx, schema, in, req)
	return req.GetStream(), err
}

var reads = operation{
	repeats: true,
	encode:  encodePlain,
	decode: func(body []byte, _ *smithy.OperationSchema, out smithy.Deserializable) error {
		page, err := readPage(body)
		if err == nil {
			*out.(*kinesis.GetRecordsOutput) = page
		}
		return err
	},
	empty: func(out smithy.Deserializable) bool {
		page := out.(*kinesis.GetRecordsOutput)
		return page.NextShardIterator == nil && page.MillisBehindLatest == nil
	},
	reset: func(out smithy.Deserializable) {
		*out.(*kinesis.GetRecordsOutput) = kinesis.GetRecordsOutput{}
	},
}

var puts = operation{
	encode: func(
		ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable,
	) (io.Reader, error) {
		if put := in.(*kinesis.PutRecordsInput); put.DryRun == nil {
			return bytes.NewReader(encodePut(put)), nil
		}
		return encodePlain(ctx, schema, in)
	},
	decode: func(body []byte, schema *smithy.OperationSchema, out smithy.Deserializable) error {
		return plain.DeserializeResponse(context.Background(), schema, nil, &smithyhttp.Response{
			Response: &http.Response{
				StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)),
			},
		}, out)
	},
	empty: func(out smithy.Deserializable) bool {
		return out.(*kinesis.PutRecordsOutput).Records == nil
	},
	reset: func(out smithy.Deserializable) {
		*out.(*kinesis.PutRecordsOutput) = kinesis.PutRecordsOutput{}
	},
}
