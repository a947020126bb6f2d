package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// upstream is the endpoint behind the proxy. It resolves the endpoint and signs calls with the
// options of the SDK's client. It is safe for concurrent use.
type upstream struct {
	url    string
	region string
	keys   aws.CredentialsProvider // nil: calls are not signed
	client kinesis.HTTPClient
	signer *v4.Signer
}

func newUpstream(ctx context.Context, o kinesis.Options) (*upstream, error) {
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(ctx, kinesis.EndpointParameters{
		Region: &o.Region, Endpoint: o.BaseEndpoint,
		UseDualStack: aws.Bool(
			o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		UseFIPS: aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
	})
	if err != nil {
		return nil, err
	}
	return &upstream{
		url: strings.TrimSuffix(endpoint.URI.String(), "/"), region: o.Region,
		keys: o.Credentials, client: o.HTTPClient, signer: v4.NewSigner(),
	}, nil
}

// send sends a call and returns after the answer's head. The caller must not change the body before
// it has closed the answer's body.
func (u *upstream) send(
	ctx context.Context, header http.Header, body []byte,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url+"/",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	copyHeader(request.Header, header)
	for _, name := range notForwarded {
		request.Header.Del(name)
	}
	if request.Header.Get("Accept-Encoding") == "" {
		// Without the header, net/http asks for gzip and unpacks the answer.
		request.Header.Set("Accept-Encoding", "identity")
	}
	if err := u.sign(ctx, request, body); err != nil {
		return nil, err
	}
	return u.client.Do(request)
}

func (u *upstream) sign(ctx context.Context, request *http.Request, body []byte) error {
	if u.keys == nil {
		return nil
	}
	keys, err := u.keys.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("the proxy's credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	return u.signer.SignHTTP(ctx, keys, request, hex.EncodeToString(sum[:]), "kinesis", u.region,
		time.Now())
}

// notForwarded are the headers that concern only the client and the proxy: the signature, which is
// for the proxy's host, and the body's encoding, since the body is sent unpacked.
var notForwarded = []string{
	"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
	"Content-Encoding", "Content-Length", "Expect",
}

// hopByHop are the headers for a single connection (RFC 9110, 7.6.1).
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "Http2-Settings": true,
}

// copyHeader copies all headers but those for a single connection.
func copyHeader(to, from http.Header) {
	named := map[string]bool{}
	for _, list := range from["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			named[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	for name, values := range from {
		if !hopByHop[name] && !named[name] {
			to[name] = values
		}
	}
}
