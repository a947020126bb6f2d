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

// upstream is the endpoint behind, as the SDK's client finds and signs for it. It is safe for
// concurrent use.
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

// send passes a call on and returns the answer's head. The body is not to be changed before
// the answer's body is closed.
func (u *upstream) send(
	ctx context.Context, header http.Header, body []byte,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url+"/",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	copyHeader(request.Header, header)
	for _, name := range notPassed {
		request.Header.Del(name)
	}
	if request.Header.Get("Accept-Encoding") == "" {
		// Otherwise net/http asks for gzip by itself, and takes it off.
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

// notPassed are the headers of a request that are the client's and the proxy's own affair: its
// signature, which is for the proxy's host, and how the body came, which is sent unpacked.
var notPassed = []string{
	"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
	"Content-Encoding", "Content-Length", "Expect",
}

// hopByHop are the headers that are for one connection (RFC 9110, 7.6.1).
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "Http2-Settings": true,
}

// copyHeader copies what is not for one connection alone.
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
