// Package localca makes certificates for a self-hosted server: its own certificate authority,
// which its clients must trust, and certificates signed by that authority.
package localca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	backdated     = time.Hour // clients' clocks differ
)

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey // P-256
}

// New makes an authority that is kept in memory only and is valid for ten years.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		// The random part distinguishes several authorities in a list of trusted ones.
		Subject: pkix.Name{
			Organization: []string{"runnel"},
			CommonName:   fmt.Sprintf("runnel local CA %x", serial.Bytes()[:4]),
		},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs servers' certificates, not further authorities
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// newSerial returns a random serial number of 16 bytes; the first byte is not 0.
func newSerial() (*big.Int, error) {
	var number [16]byte
	if _, err := rand.Read(number[:]); err != nil {
		return nil, err
	}
	number[0] = number[0]&0x7f | 0x40 // positive, and of full length
	return new(big.Int).SetBytes(number[:]), nil
}

// PEM returns the authority's certificate, for clients to trust. It holds no secret.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: a.certificate.Raw})
}

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY" // PKCS #8
)

// secretPEM returns the certificate and the key.
func (a *Authority) secretPEM() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(a.PEM(), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: key})...), nil
}

// errNotAuthority is the error of parse for any text other than that of secretPEM.
var errNotAuthority = errors.New("not a certificate authority's certificate and key")

// parse parses the text of secretPEM.
func parse(text []byte) (*Authority, error) {
	first, rest := pem.Decode(text)
	if first == nil || first.Type != certificateBlock {
		return nil, errNotAuthority
	}
	second, rest := pem.Decode(rest)
	if second == nil || second.Type != keyBlock || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errNotAuthority
	}
	certificate, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAuthority, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(second.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAuthority, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !certificate.IsCA || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errNotAuthority
	}
	return &Authority{certificate: certificate, key: key}, nil
}
