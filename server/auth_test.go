package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestSignatures: the server serves only those of the SDK's requests that are signed with a known
// key, over each protocol.
func TestSignatures(t *testing.T) {
	for name, options := range map[string][]runneltest.Option{
		"http/1.1": nil, "h2": {runneltest.WithTLS()},
	} {
		t.Run(name, func(t *testing.T) {
			server := runneltest.NewServer(t, append(options,
				runneltest.WithCredentials("AKIDONE", "one"), runneltest.WithStream("s", 1))...)
			for _, c := range []struct {
				keys aws.CredentialsProvider
				want string
			}{
				{credentials.NewStaticCredentialsProvider("AKIDONE", "one", ""), "ok"},
				{
					credentials.NewStaticCredentialsProvider("AKIDONE", "guess", ""),
					"400 InvalidSignatureException",
				},
				{
					credentials.NewStaticCredentialsProvider("AKIDTWO", "one", ""),
					"400 UnrecognizedClientException",
				},
				{aws.AnonymousCredentials{}, "400 MissingAuthenticationTokenException"},
			} {
				streams := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
					o.Credentials, o.Retryer = c.keys, aws.NopRetryer{}
				})
				_, err := client{Client: streams}.put(t.Context(), strings.Repeat("x", 500_000))
				if got := code(err); got != c.want {
					t.Errorf("%v: %v, want %s", c.keys, err, c.want)
				}
				tables := dynamodb.NewFromConfig(server.AWSConfig(), func(o *dynamodb.Options) {
					o.Credentials, o.Retryer = c.keys, aws.NopRetryer{}
				})
				_, err = tables.ListTables(t.Context(), &dynamodb.ListTablesInput{})
				if got := code(err); got != c.want {
					t.Errorf("%v: DynamoDB: %v, want %s", c.keys, err, c.want)
				}
			}
			client{Client: server.Kinesis()}.wantStored(t, strings.Repeat("x", 500_000))
		})
	}
}

// TestHealthNeedsNoKey, since monitoring has none.
func TestHealthNeedsNoKey(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithCredentials("AKIDONE", "one"))
	answer, err := http.Get(server.Endpoint() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("health: %s", answer.Status)
	}
}
