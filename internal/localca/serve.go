package localca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// leafLife is the validity of a server's certificate. It is renewed with a third of that left.
// (Apple's clients refuse more than 825 days.)
const leafLife = 90 * 24 * time.Hour

// TLS returns the configuration of a server with these hosts: names and IP addresses. The
// server's certificate is made at the first connection and renewed before it ends; its key stays
// in memory.
func (a *Authority) TLS(hosts ...string) *tls.Config {
	l := &leaves{authority: a, hosts: slices.Compact(slices.Sorted(slices.Values(hosts)))}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, // older ones are broken, and HTTP/2 refuses them
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return l.current()
		},
	}
}

// leaves makes a server's certificates, one after another.
type leaves struct {
	authority *Authority
	hosts     []string

	mu   sync.Mutex
	leaf *tls.Certificate // nil at first
}

// current returns a certificate with enough validity left.
func (l *leaves) current() (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.leaf != nil && now.Before(l.leaf.Leaf.NotAfter.Add(-leafLife/3)) {
		return l.leaf, nil
	}
	leaf, err := l.authority.sign(l.hosts)
	if err != nil {
		return nil, fmt.Errorf("make a server's certificate: %w", err)
	}
	l.leaf = leaf
	return leaf, nil
}

// sign makes a server's key and certificate.
func (a *Authority) sign(hosts []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"runnel"}, CommonName: "runnel"},
		NotBefore:    now.Add(-backdated),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The chain includes the authority, for clients that check the whole chain.
	chain := [][]byte{der, a.certificate.Raw}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}
