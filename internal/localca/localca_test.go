package localca

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// handshake connects a client that trusts the PEM to a server, and returns the server's
// certificate.
func handshake(t *testing.T, server *tls.Config, trusted []byte, name string) (*x509.Certificate, error) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted) {
		t.Fatalf("no certificate in %q", trusted)
	}
	near, far := net.Pipe()
	defer near.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		_ = tls.Server(far, server).HandshakeContext(t.Context())
	}()
	client := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name})
	err := client.HandshakeContext(t.Context())
	near.Close()
	<-done
	if err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

func TestHosts(t *testing.T) {
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	config := a.TLS("localhost", "127.0.0.1", "::1", "", "localhost", "box.example")
	for host, trusted := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "box.example": true,
		"127.0.0.2": false, "other.example": false,
	} {
		if _, err := handshake(t, config, a.PEM(), host); (err == nil) != trusted {
			t.Errorf("%s: %v, want trusted: %v", host, err, trusted)
		}
	}
	other, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	_, err = handshake(t, config, other.PEM(), "localhost")
	if !errors.As(err, &unknown) {
		t.Errorf("another authority's client: %v", err)
	}
}

// TestRenewal: a server that runs for years never presents a certificate near its end.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New()
		if err != nil {
			t.Fatal(err)
		}
		config := a.TLS("localhost")
		seen := map[string]bool{}
		for range 400 {
			leaf, err := handshake(t, config, a.PEM(), "localhost")
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(leaf.NotAfter); left < 29*24*time.Hour {
				t.Fatalf("a certificate with %v left", left)
			}
			seen[leaf.SerialNumber.String()] = true
			time.Sleep(24 * time.Hour)
		}
		if len(seen) != 7 { // 400 days, 60 of each
			t.Errorf("%d certificates in 400 days, want 7", len(seen))
		}
	})
}

func TestOpenKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "tls")
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.PEM()) != string(second.PEM()) {
		t.Error("another authority after the second start")
	}
	if _, err := handshake(t, second.TLS("localhost"), first.PEM(), "localhost"); err != nil {
		t.Error(err)
	}
	public, err := os.ReadFile(filepath.Join(dir, PublicFile))
	if err != nil || string(public) != string(first.PEM()) {
		t.Errorf("the public file: %v, %q", err, public)
	}
	secret, err := os.Stat(filepath.Join(dir, SecretFile))
	if err != nil || secret.Mode().Perm() != 0o600 {
		t.Errorf("the secret file: %v, %v; want mode 0600", err, secret.Mode())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, want 2: %v, %v", len(entries), entries, err)
	}
	if strings.Contains(string(public), "PRIVATE") {
		t.Error("the public file holds the key")
	}
}

// TestOpenRepairs: a crash between the two files, and a public file of another authority.
func TestOpenRepairs(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(dir, PublicFile)
	for _, broken := range []func() error{
		func() error { return os.Remove(public) },
		func() error { return os.WriteFile(public, []byte("something else"), 0o600) },
	} {
		if err := broken(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(public); err != nil || string(text) != string(a.PEM()) {
			t.Errorf("%v, %q", err, text)
		}
	}
}

func TestOpenReplacesAnExpiringAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		old, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(authorityLife - renewBefore + time.Hour)
		renewed, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if string(old.PEM()) == string(renewed.PEM()) {
			t.Error("an authority that is about to run out was kept")
		}
		again, err := Open(dir)
		if err != nil || string(again.PEM()) != string(renewed.PEM()) {
			t.Errorf("the new one was not kept: %v", err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	ours, err := New()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := New()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := theirs.secretPEM()
	if err != nil {
		t.Fatal(err)
	}
	mixed := append(ours.PEM(), secret[len(theirs.PEM()):]...)
	for name, text := range map[string]string{
		"empty": "", "public alone": string(ours.PEM()), "mixed": string(mixed),
		"more": string(secret) + "x", "half": string(secret[:len(secret)-60]),
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, SecretFile)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		if !errors.Is(err, errNotAuthority) || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != text {
			t.Errorf("%s: the file was touched: %v", name, err)
		}
	}
}

// TestOpenRaces: processes that call Open at the same time all get the same authority.
func TestOpenRaces(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	seen := map[string]bool{}
	var racers sync.WaitGroup
	for range 8 {
		racers.Go(func() {
			a, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(a.PEM())] = true
		})
	}
	racers.Wait()
	if len(seen) != 1 {
		t.Errorf("%d authorities, want 1", len(seen))
	}
}

func FuzzParse(f *testing.F) {
	a, err := New()
	if err != nil {
		f.Fatal(err)
	}
	secret, err := a.secretPEM()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(secret)
	f.Add(a.PEM())
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := parse(text)
		if (err == nil) == (a == nil) {
			t.Errorf("%v, %v", a, err)
		}
		if err == nil {
			if _, err := a.secretPEM(); err != nil {
				t.Error(err)
			}
		}
	})
}
