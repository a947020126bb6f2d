package awsclient

import (
	"crypto/x509"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// ServerOption changes what ForServer makes.
type ServerOption func(*forServer)

type forServer struct {
	keys  aws.CredentialsProvider
	roots *x509.CertPool
}

// SignedWith signs with an access key that the server knows.
func SignedWith(accessKeyID, secretAccessKey string) ServerOption {
	return func(f *forServer) {
		f.keys = credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, "")
	}
}

// Trusting trusts certificates of these authorities alone, in the place of the system's.
func Trusting(roots *x509.CertPool) ServerOption {
	return func(f *forServer) { f.roots = roots }
}

// ForServer makes a configuration for one endpoint from the arguments alone: no environment,
// no files, credentials of no value. The account, which may be empty, is a runnel server's: 12
// digits. dial may be nil.
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
	where := places{at, at}
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
