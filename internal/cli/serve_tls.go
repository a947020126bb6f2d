package cli

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/server"
)

// trust is the authority that clients must trust: none, or one of the server's own.
type trust struct {
	authority *localca.Authority
	file      string // has its certificate; "" in memory
}

// encrypt reads the TLS flags.
func (f *serveFlags) encrypt(cfg *server.Config) (trust, error) {
	switch {
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return trust{}, exit.Usage("--tls-cert and --tls-key belong together: give both, or " +
			"neither and --tls, which makes a certificate")
	case f.tlsCert != "":
		config, err := ownCertificate(f.tlsCert, f.tlsKey, time.Now())
		if err != nil {
			return trust{}, exit.Usage("--tls-cert %s --tls-key %s: %w", f.tlsCert, f.tlsKey, err)
		}
		cfg.TLS = config
		return trust{}, nil
	case !f.tls:
		return trust{}, nil
	}
	t, err := makeAuthority(cfg)
	if err != nil {
		return trust{}, exit.Outside(fmt.Errorf("--tls: %w", err))
	}
	cfg.TLS = t.authority.TLS(hosts(f.addr)...)
	return t, nil
}

// ownCertificate reads a certificate with its chain, and its key.
func ownCertificate(certificate, key string, now time.Time) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificate ran out on %s",
			pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}, nil
}

// makeAuthority opens the authority that the data folder keeps, or makes one for this run.
func makeAuthority(cfg *server.Config) (t trust, err error) {
	if cfg.Memory {
		t.authority, err = localca.New()
		return t, err
	}
	dir := filepath.Join(cfg.Dir, "tls")
	t.file = filepath.Join(dir, localca.PublicFile)
	t.authority, err = localca.Open(dir)
	return t, err
}

// hosts are the names and addresses by which clients reach a server that listens on addr.
func hosts(addr string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	host, _, _ := net.SplitHostPort(addr) // the listener checks the address
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return append(names, host)
	}
	addresses, _ := net.InterfaceAddrs() // without them the names remain
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok {
			names = append(names, network.IP.String())
		}
	}
	return names
}

// show prints the authority's certificate on standard output, as a PEM file that names where it
// is kept.
func (t trust) show(con *console.Console) {
	if t.authority == nil {
		return
	}
	where := "the certificate authority, made for this run alone"
	if t.file != "" {
		where = "the certificate authority, kept in " + t.file
	}
	_, _ = fmt.Fprintf(con.Out, "# %s\n%s", where, t.authority.PEM())
}
