package runneltest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestWithTLS checks that the SDK's clients and clients with the authority trust the server, and
// that other clients do not.
func TestWithTLS(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithTLS(), runneltest.WithStream(stream, 2))
	if !strings.HasPrefix(server.Endpoint(), "https://127.0.0.1:") {
		t.Errorf("the endpoint is %s", server.Endpoint())
	}
	client := kinesis.NewFromConfig(server.AWSConfig())
	if err := put(t.Context(), client, "k", "hello"); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t.Context(), t, client); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("read %q", got)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.CertificateAuthority())
	for trusted, pool := range map[bool]*x509.CertPool{true: roots, false: x509.NewCertPool()} {
		transport := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		}
		answer, err := (&http.Client{Transport: transport}).Get(server.Endpoint() + "/health")
		if (err == nil) != trusted {
			t.Errorf("trusted: %v: %v", trusted, err)
		}
		if err == nil {
			answer.Body.Close()
			if answer.ProtoMajor != 2 {
				t.Errorf("over %s, want HTTP/2", answer.Proto)
			}
		}
		transport.CloseIdleConnections()
	}
}

func TestWithTLSInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.WithTLS(), runneltest.InMemory(),
			runneltest.WithStream(stream, 1))
		for range 3 { // over the certificate's renewal too
			if err := put(t.Context(), server.Kinesis(), "k", "hello"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * 24 * time.Hour)
		}
	})
}

func TestWithCredentials(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithCredentials("AKIDONE", "one"),
		runneltest.WithCredentials("111122223333", "two"), runneltest.WithStream(stream, 1))
	if err := put(t.Context(), server.Kinesis(), "k", "hello"); err != nil {
		t.Errorf("the first key: %v", err)
	}
	makeTable(t.Context(), t, dynamodb.NewFromConfig(server.AWSConfig()))
	for _, c := range []struct{ id, secret, want string }{
		{"111122223333", "two", "ResourceNotFoundException"}, // accepted, in its own account
		{"AKIDONE", "two", "InvalidSignatureException"},
		{"AKIDTWO", "two", "UnrecognizedClientException"},
	} {
		client := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider(c.id, c.secret, "")
		})
		if err := put(t.Context(), client, "k", "x"); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %s", c.id, c.secret, err, c.want)
		}
	}
}

func TestBadCredentials(t *testing.T) {
	for name, options := range map[string][]runneltest.Option{
		"no secret": {runneltest.WithCredentials("AKIDONE", "")},
		"another account": {
			runneltest.WithCredentials("AKIDONE", "x"),
			runneltest.WithWorld("111122223333", "eu-west-1"),
		},
		"the default account": {
			runneltest.WithCredentials("111122223333", "x"),
			runneltest.WithWorld("000000000000", "eu-west-1"),
		},
	} {
		if _, err := runneltest.Start(t.Context(), options...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	server := runneltest.NewServer(t, runneltest.WithStream(stream, 1),
		runneltest.WithCredentials("111122223333", "x"),
		runneltest.WithWorld("111122223333", "eu-west-1"))
	if err := put(t.Context(), server.Kinesis(), "k", "hello"); err != nil {
		t.Errorf("the account's own key: %v", err)
	}
}
