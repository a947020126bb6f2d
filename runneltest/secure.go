package runneltest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server"
)

// WithTLS encrypts the connections: the endpoint is https://, over HTTP/2 and HTTP/1.1, with a
// new certificate. AWSConfig's clients trust it; other clients must trust CertificateAuthority.
func WithTLS() Option {
	return func(s *settings) error {
		authority, err := localca.New()
		if err != nil {
			return err
		}
		s.authority = authority
		return nil
	}
}

// WithCredentials accepts only calls that are signed with this access key. Given several times,
// it accepts each of the keys. AWSConfig's clients sign with the first key. Default: any client
// may do anything.
func WithCredentials(accessKeyID, secretAccessKey string) Option {
	return func(s *settings) error {
		s.keys = append(s.keys, wire.Key{
			AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey,
		})
		return nil
	}
}

// CertificateAuthority returns the certificate that clients must trust, as PEM; nil without
// WithTLS.
func (s *Server) CertificateAuthority() []byte {
	if s.authority == nil {
		return nil
	}
	return s.authority.PEM()
}

// secure applies the options above to the server's configuration.
func (s *settings) secure() error {
	if s.authority != nil {
		hosts := []string{"localhost", "127.0.0.1", "::1", memoryHost}
		if host, _, err := net.SplitHostPort(s.network.addr); err == nil {
			hosts = append(hosts, host)
		}
		s.server.TLS = s.authority.TLS(hosts...)
	}
	if len(s.keys) == 0 {
		return nil
	}
	if _, err := wire.NewCredentials(s.keys...); err != nil {
		return fmt.Errorf("runneltest: WithCredentials: %w", err)
	}
	s.server.Credentials = credentialsFile(s.keys)
	id := s.keys[0].AccessKeyID
	if account := s.server.Account; account != "" && account != id &&
		(account != wire.DefaultAccount || wire.IsAccount(id)) {
		return fmt.Errorf("runneltest: AWSConfig's clients sign as %s, whose world is not that of "+
			"the account %s: make the account's number the first access key id", id, account)
	}
	if wire.IsAccount(id) {
		s.server.Account = id
	}
	return nil
}

// credentialsFile returns the keys as the text of a credentials file. The keys hold no blanks and
// no line breaks.
func credentialsFile(keys []wire.Key) server.Credentials {
	var b strings.Builder
	for i, key := range keys {
		fmt.Fprintf(&b, "[key-%d]\naws_access_key_id = %s\naws_secret_access_key = %s\n", i,
			key.AccessKeyID, key.SecretAccessKey)
	}
	return server.Credentials(b.String())
}

// clientOptions returns the client options of AWSConfig that match the options above.
func (s *settings) clientOptions() ([]awsclient.ServerOption, error) {
	var options []awsclient.ServerOption
	if s.authority != nil {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(s.authority.PEM()) {
			return nil, errors.New("runneltest: the certificate authority cannot be read")
		}
		options = append(options, awsclient.Trusting(roots))
	}
	if len(s.keys) > 0 {
		options = append(options,
			awsclient.SignedWith(s.keys[0].AccessKeyID, s.keys[0].SecretAccessKey))
	}
	return options, nil
}
