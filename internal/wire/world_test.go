package wire

import (
	"errors"
	"strings"
	"testing"
)

const signed = ", SignedHeaders=host;x-amz-date, Signature=0123abcd"

func TestParseWorld(t *testing.T) {
	fallback := World{DefaultAccount, DefaultRegion}
	for _, c := range []struct {
		header string
		want   World
		err    string
	}{
		{"", fallback, ""},
		{"Bearer token", fallback, ""},
		{
			"AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/kinesis/aws4_request" + signed,
			World{DefaultAccount, "eu-west-1"},
			"",
		},
		{"AWS4-HMAC-SHA256 Credential=123456789012/20260101/us-west-2/dynamodb/aws4_request" +
			signed, World{"123456789012", "us-west-2"}, ""},
		{"AWS4-HMAC-SHA256 Credential=12345678901x/20260101/us-west-2/dynamodb/aws4_request" +
			signed, World{DefaultAccount, "us-west-2"}, ""},
		{
			"AWS4-HMAC-SHA256 SignedHeaders=host,Signature=00,Credential=1/2/r-1/4/aws4_request",
			World{DefaultAccount, "r-1"},
			"",
		},
		{
			"AWS4-ECDSA-P256-SHA256 Credential=123456789012/20260101/kinesis/aws4_request" + signed,
			World{"123456789012", DefaultRegion},
			"",
		},
		{"AWS4-HMAC-SHA256", World{}, "requires 'Credential'"},
		{"AWS4-HMAC-SHA256 Signature=00", World{}, "requires 'Credential'"},
		{"AWS4-HMAC-SHA256 Credential=AKID", World{}, "must be of the form"},
		{"AWS4-HMAC-SHA256 Credential=AKID/20260101/kinesis/aws4_request", World{}, "no region"},
		{"AWS4-HMAC-SHA256 Credential=A/1/EU/kinesis/aws4_request", World{}, "no region"},
		{"AWS4-HMAC-SHA256 Credential=A/1//kinesis/aws4_request", World{}, "no region"},
	} {
		got, err := ParseWorld(c.header)
		var wire *Error
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: %v, %v; want %v", c.header, got, err, c.want)
		case c.err != "" && (!errors.As(err, &wire) || !strings.Contains(wire.Message, c.err) ||
			wire.Code != "IncompleteSignatureException"):
			t.Errorf("%q: %v, %v; want an error with %q", c.header, got, err, c.err)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for _, c := range []struct {
		target, service, operation string
		ok                         bool
	}{
		{"Kinesis_20131202.PutRecords", Kinesis, "PutRecords", true},
		{"DynamoDB_20120810.GetItem", DynamoDB, "GetItem", true},
		{"Kinesis_20131202.a.b", Kinesis, "a.b", true}, // an operation that does not exist
		{"", "", "", false},
		{"Kinesis_20131202", "", "", false},
		{"Kinesis_20131202.", "", "", false},
		{"kinesis_20131202.PutRecords", "", "", false},
		{"DynamoDBStreams_20120810.ListStreams", "", "", false},
	} {
		service, operation, ok := ParseTarget(c.target)
		if service != c.service || operation != c.operation || ok != c.ok {
			t.Errorf("%q: %q, %q, %v", c.target, service, operation, ok)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/kinesis/aws4_request"+signed,
		"Kinesis_20131202.PutRecords")
	f.Add("AWS4-ECDSA-P256-SHA256 Credential=1/2/3/aws4_request,Signature=x", "DynamoDB_20120810.X")
	f.Fuzz(func(t *testing.T, authorization, target string) {
		if world, err := ParseWorld(authorization); err == nil {
			if !IsAccount(world.Account) || !IsRegion(world.Region) {
				t.Errorf("%q is the world %+v", authorization, world)
			}
		}
		if service, operation, ok := ParseTarget(target); ok != (service != "" && operation != "") {
			t.Errorf("%q is the target %q %q %v", target, service, operation, ok)
		}
	})
}
