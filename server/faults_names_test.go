package server_test

import (
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestFaultOperations compares the operations that a rule of faults may name with those that the
// server answers, out of all operations of the SDK.
func TestFaultOperations(t *testing.T) {
	server := runneltest.NewServer(t)
	answered := []string{"PutMetricData", "GetCallerIdentity"} // these services have no others
	for _, service := range []struct {
		target, version string
		client          any
	}{
		{"Kinesis_20131202.", "1.1", &kinesis.Client{}},
		{"DynamoDB_20120810.", "1.0", &dynamodb.Client{}},
	} {
		for method := range reflect.TypeOf(service.client).Methods() {
			if method.Type.NumOut() != 2 || !method.Type.IsVariadic() {
				continue // no operation
			}
			answer := callEmpty(t, server.Endpoint(), service.target+method.Name, service.version)
			if !strings.Contains(answer, "UnknownOperation") {
				answered = append(answered, method.Name)
			}
		}
	}
	known := slices.Sorted(slices.Values(fault.Operations()))
	slices.Sort(answered)
	if len(answered) != 39+14+2 || !slices.Equal(answered, known) {
		t.Errorf("the server answers %d: %v; rules may name %d: %v", len(answered), answered,
			len(known), known)
	}
}

// callEmpty returns the answer to a call without members.
func callEmpty(t *testing.T, endpoint, target, version string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint,
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Amz-Target", target)
	request.Header.Set("Content-Type", "application/x-amz-json-"+version)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
