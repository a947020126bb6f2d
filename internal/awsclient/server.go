package awsclient

import (
	"crypto/x509"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// ServerOption changes the configuration that ForServer makes.
type ServerOption func(*forServer)

type forServer struct {
	keys  aws.CredentialsProvider
	roots *x509.CertPool
}

// SignedWith signs requests with an access key of the server.
func SignedWith(accessKeyID, secretAccessKey string) ServerOption {
	return func(f *forServer) {
		f.keys = credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, "")
	}
}

// Trusting trusts certificates of these authorities only, instead of the system's.
func Trusting(roots *x509.CertPool) ServerOption {
	return func(f *forServer) { f.roots = roots }
}

// ForServer makes a configuration for one runnel server from the arguments alone, without the
// environment and the AWS files. account has 12 digits and becomes the access key, by which the
// server selects the account; "" selects its default. dial may be nil.
func ForServer(
	endpoint, account, region string, dial Dial, options ...ServerOption,
) aws.Config {
	f := forServer{keys: noValue}
	if account != "" {
		f.keys = credentials.NewStaticCredentialsProvider(account, "runnel", "")
	}
	for _, option := range options {
		option(&f)
	}
	at := place{endpoint, region, f.keys}
	where := places{at, at, at}
	return aws.Config{
		Region: region, Credentials: f.keys, BaseEndpoint: aws.String(endpoint),
		HTTPClient:     newHTTPClient(f.transport(), dial),
		Logger:         logging.Nop{},
		ServiceOptions: []func(string, any){where.serviceOptions},
	}
}

// transport returns one that trusts the roots, or nil for the default.
func (f *forServer) transport() *http.Transport {
	if f.roots == nil {
		return nil
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig.RootCAs = f.roots
	}).GetTransport()
}
